"""`spcacore info`: what it says of a matrix."""

import re

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from hypothesis import strategies as st
from in_turn import of_examples

from spcacore import cli
from spcacore.cli import runs
from spcacore.cli.source import Table


@pytest.mark.parametrize("orientation", ["rows", "columns"])
@pytest.mark.parametrize("form", ["dense", "fortran", "csr", "csc"])
def test_info_counts_what_numpy_counts(as_json, output, tmp_path, X, form, orientation, with_limits):
    with_limits(runs, INFO_ENTRIES=40)
    X[np.abs(X) < 1] = 0
    X[:, 5] = X[1:, 6] = 2.5
    X[0, 6] = 0
    X[3, 2] = X[4, 7] = X[2, 7] = np.nan
    X[6, 0] = -np.inf
    X[:, 8] = np.nan
    if form in ("csr", "csc"):
        path = tmp_path / "m.npz"
        scipy.sparse.save_npz(path, scipy.sparse.csr_array(X).asformat(form))
    else:
        path = tmp_path / "m.npy"
        np.save(path, np.asfortranarray(X) if form == "fortran" else X)
    facts = as_json("info", path, "--orientation", orientation)
    X = X.T if orientation == "columns" else X
    known = np.ma.masked_invalid(X)
    count = known.count(axis=0)
    low, high = known.min(axis=0).filled(np.nan), known.max(axis=0).filled(np.nan)
    assert (facts["samples"], facts["variables"]) == X.shape
    assert facts["missing"] == np.isnan(X).sum()
    assert facts["infinite"] == np.isinf(X).sum() == 1
    constant = (low == high) | (count < 2)
    assert facts["constant_variables"] == [f"x{j + 1}" for j in np.flatnonzero(constant)]
    variances = known.var(axis=0, ddof=1).filled(np.nan)[(count > 1) & (low != high)]
    for name, function in (("smallest", np.min), ("median", np.median), ("largest", np.max)):
        assert facts[f"{name}_variance"] == pytest.approx(function(variances), rel=1e-12)
    assert facts["sparse"] == (form in ("csr", "csc"))
    text = output("info", path, "--orientation", orientation)
    assert "missing entries of dense data are left out" in text


@pytest.mark.parametrize("size", [1e-150, 1, 1e150])
def test_info_of_numbers_of_any_size(as_json, tmp_path, X, size):
    np.save(tmp_path / "m.npy", X * size + 1e6 * size)
    facts = as_json("info", tmp_path / "m.npy")
    variance = np.var(X + 1e6, axis=0, ddof=1).max()
    assert facts["largest_variance"] == pytest.approx(variance * size * size, rel=1e-6)
    assert facts["smallest_variance"] > 0


def test_info_advises(output, pitprops, tmp_path, X):
    text = output("info", pitprops[0])
    assert re.search("symmetric +True", text)
    assert "if it holds covariances or correlations, say --covariance" in text
    assert "topdiam, length, moist, testsg, ovensg, ... (13)" in text
    X[:, 4] *= 100
    np.save(tmp_path / "m.npy", X)
    variances = np.var(X, axis=0, ddof=1)
    text = output("info", tmp_path / "m.npy")
    assert f"the largest variance is {variances.max() / np.median(variances):.2g} times the median" in text
    assert "--scale" in text


@of_examples(60, st.data())
def test_info_never_fails_on_numbers(tmp_path_factory, data):
    """Whatever finite and other numbers a matrix holds."""
    n, p = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    cells = st.floats(width=64) | st.sampled_from([0.0, 1.0, np.nan, np.inf, 1.7e308, 5e-324])
    X = np.array([[data.draw(cells) for _ in range(p)] for _ in range(n)])
    path = tmp_path_factory.getbasetemp() / "numbers.npy"
    np.save(path, X)
    facts = runs.facts_of(Table(X))
    assert facts["missing"] + facts["infinite"] == np.count_nonzero(~np.isfinite(X))
    assert cli.main(["info", str(path)]) == 0
    assert cli.main(["info", str(path), "--json"]) == 0
