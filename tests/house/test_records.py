"""Signatures, and records: of methods, which do what their names do, of what is known, of how sparse."""

import copy
import dataclasses
import importlib
import inspect
import pickle
import statistics
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oracles import covariance, normal

import spcacore
from spcacore import methods

X = normal(0, 40, 12) * np.linspace(1, 2, 12)
NEEDS = {"penalty": 0.3, "l1_bound": 1.8, "cardinality": None}
RECORDS = {
    name: one() if one.sparsity == "cardinality" else one(NEEDS[one.sparsity])
    for name, one in methods.METHODS.items()
}
every_method = pytest.mark.parametrize("name", RECORDS)


def public():
    """What is called: functions, estimators and records, but results."""
    for module in ("", ".anndata", ".sklearn", ".plot", ".datasets"):
        try:
            part = importlib.import_module(f"spcacore{module}")
        except ImportError:  # of what it needs
            continue
        for name in part.__all__:
            one = getattr(part, name)
            result = dataclasses.is_dataclass(one) and not module and one.__module__ != "spcacore.methods"
            if callable(one) and not result:
                yield f"{part.__name__}.{name}", len(inspect.signature(one).parameters)


def test_few_parameters():
    counts = dict(public())
    assert {name: count for name, count in counts.items() if count > 14} == {}
    assert statistics.median(counts.values()) <= 7


@every_method
def test_a_name_is_the_record_with_its_defaults(name):
    """Of the records that need no number; and by place as by name."""
    record = RECORDS[name]
    if record.sparsity == "penalty":
        with pytest.raises(TypeError, match=r"needs penalty, .*: method=GPower\(penalty=...\)"):
            spcacore.sparse_pca(X, 2, method=name)
        return
    k = 4 if record.sparsity == "cardinality" else None
    by_name = spcacore.sparse_pca(X, 2, k, method=name)
    by_record = spcacore.sparse_pca(X, n_components=2, cardinality=k, method=type(record)())
    assert_array_equal(by_name.loadings, by_record.loadings)


@every_method
def test_what_is_given_twice_or_for_another_method_is_refused(name):
    record = RECORDS[name]
    if record.sparsity != "cardinality":
        with pytest.raises(TypeError, match=f"takes {record.sparsity}, not cardinality"):
            spcacore.sparse_pca(X, 2, 4, method=record)
        function = getattr(spcacore, name)
        with pytest.raises(TypeError, match=f"{record.sparsity} is given twice"):
            function(X, NEEDS[record.sparsity], options=record)
    for other, another in RECORDS.items():
        if other != name and hasattr(spcacore, name):
            with pytest.raises(TypeError, match=rf"options must be {type(record).__name__}\(\.\.\.\), not"):
                getattr(spcacore, name)(X, 2, options=another)


@every_method
def test_records_are_frozen_copied_and_pickled(name):
    record = RECORDS[name]
    with pytest.raises(dataclasses.FrozenInstanceError):
        record.screening = "none"
    for other in (copy.copy(record), pickle.loads(pickle.dumps(record))):
        assert type(other) is type(record)
        assert vars(other) == vars(record)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: spcacore.tpower(X, 2, max_iter=5), r"say options=TPower\(max_iter=...\)"),
        (lambda: spcacore.oppca(X, 1, prior_precision=np.eye(12)), r"say prior=Prior\(precision=...\)"),
        (lambda: spcacore.sparse_pca(X, 2, method=spcacore.TPower), r"the class TPower: call it, TPower\(\)"),
        (lambda: spcacore.sparse_pca(X, 2, choice={"include": [1]}), r"choice must be Choice\(...\), not"),
        (lambda: spcacore.sparse_pca(lambda v: v, 2), r"LinearOperator\(shape, matvec=X\)"),
    ],
)
def test_what_belongs_to_a_record_says_how_it_is_written(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_signs_by_a_number_are_those_of_an_array():
    A = np.abs(covariance(X))
    for sign in (1, -1):
        one = spcacore.sparse_pca(A, 2, 4, choice=spcacore.Choice(signs=sign), kind="covariance")
        all_ = spcacore.Choice(signs=np.full(12, sign))
        other = spcacore.sparse_pca(A, 2, 4, choice=all_, kind="covariance")
        assert (sign * one.loadings >= 0).all()
        assert_allclose(one.explained_variance, other.explained_variance, rtol=1e-6)


def test_one_default_cardinality():
    """The root of the number of variables, rounded up, whatever fits."""
    for result in (
        spcacore.sparse_pca(X, 2),
        spcacore.spca(X, 2),
        spcacore.soppca(X, 2),
        spcacore.sparse_lda(X, np.arange(40) % 3),
        spcacore.sparse_eigen(covariance(X), np.eye(12), 2),
        spcacore.stability(X, partial(spcacore.sparse_pca, n_components=2), n_resamples=4).result,
    ):
        assert result.cardinality.tolist() == [4, 4]
    pair = spcacore.sparse_cca(X, X[:, :5], method="generalized", ridge=0.1)
    assert (pair.cardinality_x.tolist(), pair.cardinality_y.tolist()) == ([4], [3])


@pytest.mark.parametrize("name", ["projection", "orthogonal", "uncorrelated", "generalized"])
def test_a_result_says_the_deflation_that_was_asked(name):
    A = covariance(X)
    found = spcacore.sparse_pca(A, 2, 4, deflation=name, kind="covariance")
    assert found.deflation == name
    assert found.extend(A, 1).deflation == name
    model = partial(spcacore.sparse_pca, n_components=2, deflation=name, kind="covariance")
    path = spcacore.sparsity_path(A, model, [3, 5])
    assert {path.deflation, *(one.deflation for one in path)} == {name}
