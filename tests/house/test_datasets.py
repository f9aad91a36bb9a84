"""The embedded data against where they come from."""

import re
import sys

import numpy as np
import pytest
from files import arrays
from numpy.testing import assert_allclose, assert_array_equal

import spcacore
from spcacore import datasets


def test_stocks_are_those_of_the_file():
    stocks = datasets.load_stocks()
    file = arrays("snp500_correlation.npz")
    assert_allclose(stocks.correlation, file["A"], atol=5.1e-5)
    assert list(stocks.names) == file["tickers"].tolist()
    assert_array_equal(stocks.correlation, stocks.correlation.T)
    assert repr(stocks) == "Correlation(423 variables)"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_blood_cells_are_those_of_scanpy():
    scanpy = pytest.importorskip("scanpy", reason="needs scanpy")
    cells, source = datasets.load_blood_cells(), scanpy.datasets.pbmc68k_reduced()
    genes = [source.raw.var_names.get_loc(name) for name in cells.names]
    X = source.raw.X.toarray()
    assert_allclose(cells.data.toarray(), X[:, genes], atol=5.1e-4)
    assert list(cells.samples) == source.obs["bulk_labels"].tolist()
    others = np.delete(X.var(axis=0), genes)
    assert X[:, genes].var(axis=0).min() >= others.max()


@pytest.mark.skipif(sys.version_info[:3] != (3, 11, 7), reason="the topics are those of Python 3.11.7")
def test_help_topics_are_those_of_python():
    from pydoc_data.topics import topics

    text = datasets.load_help_topics()
    X = text.data.toarray()
    for i in range(0, len(text.samples), 7):
        words = [w for w in re.split(r"[^a-z]+", topics[text.samples[i]].lower()) if len(w) >= 3]
        for j in range(0, len(text.names), 11):
            assert X[i, j] == words.count(text.names[j])


@pytest.mark.parametrize("load", [datasets.load_blood_cells, datasets.load_help_topics])
def test_samples_say_where_they_come_from(load):
    found = load()
    assert found.source
    assert re.match(r"CC BY 4\.0|PSF-2\.0", found.license)
    assert found.data.shape == (len(found.samples), len(found.names))
    assert len(set(found.names)) == len(found.names)
    assert not (found.data.data == 0).any()
    result = spcacore.sparse_pca(found.data, 1, cardinality=3)
    assert result.cardinality.tolist() == [3]
