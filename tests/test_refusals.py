"""What is refused only here and there, by name; and what results say of themselves."""

import runpy
import sys
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from calls import COVARIANCE, LABELS, SPARSE, V0, X0, N, P, R
from extras import optional
from scipy.sparse.linalg import LinearOperator, aslinearoperator

import spcacore
from spcacore import datasets
from spcacore.linalg.lapack import interruptible
from spcacore.linalg.threads import Stopped, in_threads
from spcacore.models.priors import _square
from spcacore.operators.inputs import as_problem

OPERATOR = aslinearoperator(X0)
FIT = spcacore.sparse_pca(X0, R, cardinality=3)
HOLLOW = np.diag([0.0, *np.ones(P - 1)]) + 0.1 * (np.eye(P, k=1) + np.eye(P, k=-1))
MIXED = np.eye(P) + 2 * (np.eye(P, k=1) + np.eye(P, k=-1))


def holes(*filled):
    """Data of which only some rows have entries."""
    X = np.full((N, P), np.nan)
    X[list(filled)] = X0[list(filled)]
    return X


def spiked(**options):
    return lambda: datasets.make_spiked(9, P, **options)


def nonfinite(shape):
    return LinearOperator(shape, dtype=float, matvec=lambda v: np.full(shape[0], np.nan))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: spcacore.tpower(aslinearoperator(np.empty((0, P))), 3),
            ValueError,
            r"empty: shape \(0, 12\)",
        ),
        (lambda: FIT.transform(nonfinite((N, P))), ValueError, "an operator, returned NaN or infinity"),
        (lambda: FIT.reconstruct(np.ones((3, R + 1))), ValueError, "3 columns for 2 components"),
        (
            lambda: FIT.transform(spcacore.row_blocks(X0[:, :-1])),
            ValueError,
            r"\(40, 11\) where \(m, 12\) is needed",
        ),
        (lambda: spcacore.tpower(X0, 3, start=V0[:, 0], n_starts=2), ValueError, "goes with start=None"),
        (lambda: spcacore.tpower(OPERATOR, 3, start="diagonal"), ValueError, "'diagonal' needs the entries"),
        (
            lambda: spcacore.spca(aslinearoperator(np.zeros((N, P))), R, cardinality=3, ridge=1.0),
            ValueError,
            "X has no variance",
        ),
        (lambda: spcacore.sparse_cca(OPERATOR, X0, l1_bound=2), TypeError, "X must have entries"),
        (lambda: spcacore.sparse_cca(X0, OPERATOR, l1_bound=2), TypeError, "Y must have entries"),
        (
            lambda: spcacore.sparse_pca(
                X0, R, penalty=0.1, method="gpower", block=True, constraint="orthogonal"
            ),
            ValueError,
            "leave deflation and constraint out",
        ),
        (
            lambda: spcacore.sparse_pca(X0, R, penalty=0.1, method="gpower", block=True, certify=True),
            ValueError,
            "certify=True bounds one component after another",
        ),
        (
            lambda: spcacore.sparse_pca(X0, R, penalty=0.1, method="gpower", mu=[1.0, 0.5]),
            ValueError,
            "mu weights the components of block=True",
        ),
        (
            lambda: spcacore.sparse_pca(X0, R, penalty=0.1, method="gpower", block=True, mu=[1.0, 0.0]),
            ValueError,
            r"mu\[1\] must be positive and finite, not 0",
        ),
        (spiked(cardinality=P), ValueError, "of 12 variables do not fit into 12"),
        (spiked(cardinality=2, variances=[3.0, 0.5]), ValueError, "at least the noise, 1"),
        (spiked(cardinality=2, dtype=np.int32), ValueError, "float32 or float64, not int32"),
        (
            lambda: spcacore.deflate(X0, V0[:, 0], "hotelling", kind="data"),
            ValueError,
            "of data does not exist",
        ),
        (
            lambda: spcacore.sparse_eigen(COVARIANCE, HOLLOW, cardinality=3),
            ValueError,
            "a row with diagonal entry 0 is not zero",
        ),
        (lambda: spcacore.sparse_eigen(COVARIANCE, MIXED, cardinality=3), ValueError, "semidefinite"),
        (lambda: spcacore.kernel_pca(X0, R).transform(X0[:, :-1]), ValueError, r"\(n, 12\) is needed"),
        (
            lambda: spcacore.ppca(holes(3), 1, center=False),
            ValueError,
            "fewer than 2 samples with observed entries",
        ),
        (lambda: spcacore.explained_variance(OPERATOR, SPARSE, ratio=True), ValueError, "does not tell"),
        (
            lambda: spcacore.explained_variance(np.ones((N, P)), SPARSE, ratio=True),
            ValueError,
            "positive total variance",
        ),
        (lambda: spcacore.nothing, AttributeError, "module 'spcacore' has no attribute 'nothing'"),
    ],
)
def test_refusals(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (lambda: spcacore.sparsity_path(X0, cardinality=[P, 3]), "2 values of cardinality from 3 to 12"),
        (lambda: spcacore.sca(X0, R, l1_bound=3), "p=12, 2 components, nonzeros="),
        (lambda: spcacore.sparse_eigen(COVARIANCE, np.eye(P), cardinality=3), "p=12"),
        (
            lambda: spcacore.random_fourier_features(X0, 20, bandwidth=2.0),
            "p=12, n_features=20, bandwidth=2)",
        ),
        (lambda: spcacore.sparse_lda(X0, LABELS, cardinality=3), "p=12"),
        (lambda: spcacore.ppca(np.where(X0.max() == X0, np.nan, X0), 1, tol=1e-3), "converged in"),
        (lambda: spcacore.select_n_components(X0, 2, cardinality=3, n_folds=3), "n_components"),
    ],
)
def test_results_say_what_they_are(result, words):
    assert words in repr(result())


def test_a_path_counts_its_results_and_components():
    path = spcacore.sparsity_path(X0, n_components=R, cardinality=[6, 3])
    assert (len(path), path.n_components) == (2, R)


def test_scaled_models_answer_in_the_units_of_the_data():
    """What a model of Z = (X - mean) / sd says of X, by hand."""
    sd, mean = X0.std(axis=0, ddof=1), X0.mean(axis=0)
    scaled, plain = spcacore.ppca(X0, R, scale=True), spcacore.ppca((X0 - mean) / sd, R)
    np.testing.assert_allclose(scaled.sample(5, rng=0), mean + sd * plain.sample(5, rng=0), rtol=1e-9)
    some = X0[:4].copy()
    some[1, 2] = np.nan
    filled = mean + sd * plain.impute((some - mean) / sd)
    np.testing.assert_allclose(scaled.impute(some), filled, rtol=1e-9)


def test_lapack_is_called_where_it_is_and_its_errors_are_raised():
    def fail():
        raise np.linalg.LinAlgError("singular")

    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        interruptible(fail)
    where = []
    thread = threading.Thread(target=lambda: where.append(interruptible(threading.current_thread)))
    thread.start()
    thread.join()
    assert where == [thread]


def test_the_first_error_ends_the_other_tasks():
    stopped, begun = [], threading.Event()

    def task(item, report):
        if item == "fail":
            begun.wait(10)
            raise KeyError(item)
        try:
            while True:
                begun.set()
                report()
        except Stopped:
            stopped.append(item)
            raise

    with pytest.raises(KeyError, match="fail"):
        in_threads(task, ["go on", "fail"], 2)
    assert stopped == ["go on"]


def test_a_sparse_penalty_is_scaled_as_a_dense_one():
    L = np.array([[4.0, -1.0], [-1.0, 2.0]])
    for dense, sparse in zip(_square(L, "penalty", 2), _square(sp.csr_array(L), "penalty", 2), strict=True):
        np.testing.assert_array_equal(dense, sparse)


def test_python_m_is_the_command(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["spcacore", "--version"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("spcacore.cli", run_name="__main__")
    assert not ended.value.code
    assert capsys.readouterr().out.split() == ["spcacore", spcacore.__version__]


def test_blocks_without_rows_add_nothing():
    whole = as_problem(X0)
    array = optional("dask.array", "from_array")
    parts = as_problem(array(X0, chunks=((0, 7, 0, N - 7), P)))
    np.testing.assert_allclose(parts.diagonal, whole.diagonal, rtol=1e-12)
    v = np.ones(P)
    np.testing.assert_allclose(parts.operator.apply(None, v), whole.operator.apply(None, v), rtol=1e-12)


def test_names_that_the_package_lacks():
    with pytest.raises(AttributeError, match="module 'spcacore' has no attribute 'nothing'"):
        spcacore.nothing  # noqa: B018
