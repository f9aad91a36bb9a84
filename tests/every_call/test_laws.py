"""The table of laws is whole and is on its page; and laws about samples, of every call that obeys them."""

import ast
from pathlib import Path

import laws
import numpy as np
import pytest
from calls import CALLS, LABELS, X0, K, N, P, answer, numbers
from every_call.test_calls import assert_near
from every_call.test_inputs import stated
from in_turn import in_turn
from laws import LAWS
from operators.test_weights import stored

from spcacore import sparse_lda

pytestmark = pytest.mark.usefixtures("few_starts")

LAYOUTS = {"C": None, "csr": "sparse", "F": None, "csc": "sparse", "blocks": "row blocks"}
WEIGHTS = np.random.default_rng(1).integers(0, 4, N)
OF_ROWS = {
    "n_samples",
    "sample_loading",
    "screening",
    "_samples",
    "coefficients",
    "total_weight",
}  # which count rows, or whose sums over rows are what counts
MEANS = {"mean", "mean_x", "mean_y", "means", "centroids", "centers", "shift"}
FLAT = {
    "scotlass": 1e-5,
    "pmd": 1e-5,
    "oppca": 1e-6,
    "soppca": 1e-6,
}  # maxima near which rounding ends the steps


def test_the_page_has_this_table():
    assert laws.parts()[1] == laws.table(), "python tests/laws.py writes it"


def test_every_reason_is_of_a_call_and_every_law_is_asked():
    names = {laws.plain(call) for call in CALLS}
    for law in LAWS.values():
        assert set(law.reasons) <= {laws.plain(call) for call in CALLS if law.applies(call)} <= names
        file, test = law.asked_by.split("::")
        trees = [ast.parse(one.read_text()) for one in Path(__file__).parents[1].rglob(f"{file}.py")]
        assert test in {n.name for tree in trees for n in tree.body if isinstance(n, ast.FunctionDef)}


def near(call, out, expected, but=()):
    assert_near(out, expected, FLAT.get(call.function, 1e-7), but)


@pytest.mark.share(3)
@pytest.mark.filterwarnings("ignore:not converged")
@pytest.mark.parametrize(("call", "layout"), in_turn(LAWS["weights"].calls(), list(LAYOUTS)))
def test_weights_are_repeated_rows(call, layout):
    storage = LAYOUTS[layout]
    if storage and (call.function == "sparse_cca" or stated(call)[storage] == "no"):
        pytest.skip("does not take this storage, or the table of calls takes slices of it")
    out = numbers(call.run(stored(X0, layout), sample_weight=WEIGHTS))
    rows = np.repeat(np.arange(N), WEIGHTS)
    run = call.run
    if call.function == "sparse_lda":

        def run(X):
            return sparse_lda(X, LABELS[rows], cardinality=K)

    out = {name: v.take(rows, 0) if v.shape[:1] == (N,) else v for name, v in out.items()}
    near(call, out, numbers(run(X0[rows])), OF_ROWS)


@pytest.mark.share(6)
@pytest.mark.parametrize(("call", "layout"), in_turn(LAWS["vectors"].calls(), list(LAYOUTS)))
def test_vectors_for_center_and_scale(call, layout):
    if LAYOUTS[layout] and stated(call)[LAYOUTS[layout]] == "no":
        pytest.skip("does not take this storage")
    middle, unit = np.linspace(-1, 1, P), 1.0 + np.arange(P) % 4
    out = numbers(call.run(stored(X0, layout), center=middle, scale=unit))
    expected = numbers(call.run((X0 - middle) / unit, center=False))
    of_units = {"options", "log_likelihood", "bic", "screening"}
    near(call, out, expected, of_units)


def rotation():
    """An orthogonal matrix that leaves the mean of the samples where it is."""
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(np.column_stack([np.ones(N), rng.standard_normal((N, N - 1))]))[0]
    turn = np.eye(N)
    turn[1:, 1:] = np.linalg.qr(rng.standard_normal((N - 1, N - 1)))[0]
    return basis @ turn @ basis.T


@pytest.mark.share(3)
@pytest.mark.parametrize("call", LAWS["rotation"].calls(), ids=repr)
def test_samples_rotated_about_their_mean(call):
    Q = rotation()
    expected = numbers(answer(call))
    expected = {name: Q @ v if v.shape[:1] == (N,) else v for name, v in expected.items()}
    near(call, numbers(call.run(Q @ X0)), expected)


@pytest.mark.share(6)
@pytest.mark.parametrize("call", LAWS["constant column"].calls(), ids=repr)
def test_the_value_of_a_constant_column_changes_nothing(call):
    zero, other = X0.copy(), X0.copy()
    zero[:, -1], other[:, -1] = 0, 5.5
    out = numbers(call.run(other))
    near(call, out, numbers(call.run(zero)), MEANS)
    for name in ("loading", "loadings"):
        if name in out and len(out[name]) == P:
            assert not np.any(out[name][-1]), name


@pytest.mark.share(6)
@pytest.mark.parametrize("call", LAWS["signs"].calls(), ids=repr)
def test_other_signs_of_columns(call):
    signs = np.where(np.random.default_rng(2).random(P) < 0.5, -1, 1)
    X = call.clean() * (signs if call.takes == "data" else np.outer(signs, signs))
    out, expected = (
        {name: abs(v) if v.dtype.kind == "f" else v for name, v in numbers(result).items()}
        for result in (call.run(X), answer(call))
    )
    near(call, out, expected)
    if call.function == "sparse_pca":
        first, second = (np.sign(one.loadings[:, 0]) for one in (call.run(X), answer(call)))
        assert np.array_equal(np.outer(first, first * signs), np.outer(second * signs, second))
