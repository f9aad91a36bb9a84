"""Methods of the command besides those of `sparse_pca`: each a function of the package."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any, NoReturn

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from .._messages import listed
from .._records import record
from ..choice import Choice
from .table import Arguments, UserError

__all__ = [
    "MODELS", "RESAMPLED", "Model", "check_model", "fit", "flag_of", "given", "options_of", "refuse",
    "weights_of",
]  # fmt: skip
__dir__ = __all__.copy


@record
class Model:
    """Where the function is, what says how sparse its loadings are, its further options, and what it may be
    told of the variables and of the data."""

    module: str
    sparsity: tuple[str, ...] = ()
    needs: str | None = None
    options: tuple[str, ...] = ("max_iter", "tol")
    covariance: bool = True
    missing: bool = False
    choice: tuple[str, ...] = ()
    data: tuple[str, ...] = ("center", "scale")


MODELS = {
    "spca": Model(
        "elastic_net", ("cardinality", "penalty"), "cardinality", ("ridge", "max_iter", "tol", "nonnegative"),
        choice=("include", "exclude", "groups", "count"),
    ),
    "sca": Model("rotated", ("l1_bound",)),
    "sma": Model("rotated", ("l1_bound", "sample_l1_bound"), covariance=False),
    "ppca": Model("probabilistic", missing=True),
    "oppca": Model("structured", options=("max_iter", "tol", "rng")),
    "soppca": Model(
        "structured", ("cardinality",), "cardinality", ("max_iter", "tol", "rng"),
        choice=("include", "exclude", "groups", "count"),
    ),
}  # fmt: skip
RESAMPLED = {name: MODELS[name] for name in ("spca", "sca", "soppca")} | {
    "sparse_cca": Model(
        "cca", ("cardinality", "l1_bound"), options=("ridge", "max_iter", "tol"), covariance=False,
        data=("other", "scale"),
    ),
    "sparse_lda": Model(
        "lda", ("cardinality",), "cardinality", ("shrinkage", "max_iter", "tol"), covariance=False,
        data=("labels",),
    ),
}  # fmt: skip


def flag_of(name: str) -> str:
    short = {"cardinality": "-k/", "n_components": "-n/"}.get(name, "")
    return f"{short}--{name.replace('_', '-')}"


def check_model(args: Arguments, models: dict[str, Model] = MODELS, also: str = "") -> None:
    """Refuse what the method does not take, nor the command `also`."""
    model = models[args.method]
    takes = {*model.sparsity, *model.options, *model.choice, *model.data, also}
    for name in (
        "cardinality", "explained", "explained_of", "l1_bound", "sample_l1_bound", "penalty", "ridge",
        "objective", "deflation", "constraint", "refine", "certify", "support", "total_cardinality",
        "include", "exclude", "groups", "count", "nonnegative", "strategy", "norm",
        "relative", "block", "time_limit", "max_iter", "tol", "rng", "shrinkage", "other", "labels", "scale",
    ):  # fmt: skip
        value = getattr(args, name, None)
        if name not in takes and value is not None and value is not False:
            refuse(args, name, models)
    if not args.center and "center" not in takes:
        raise UserError(f"argument --no-center: not for method {args.method}, which centers in any case")
    for name in ("l1_bound", "sample_l1_bound"):
        if isinstance(getattr(args, name, None), list) and "other" not in takes:
            raise UserError(f"argument {flag_of(name)}: method {args.method} takes one number")
    if args.cardinality is not None and args.penalty is not None:
        raise UserError(f"argument --penalty: method {args.method} takes it or -k, not both")
    if args.covariance and not model.covariance:
        raise UserError(f"argument --covariance: not for method {args.method}")
    if args.covariance and args.scores:
        raise UserError("argument --scores: a covariance has no samples to score")


def refuse(args: Arguments, name: str, models: dict[str, Model]) -> NoReturn:
    """An option that the method does not take."""
    others = [
        method for method, one in models.items() if name in (*one.sparsity, *one.options, *one.data)
    ]  # fmt: skip
    told = ("sample_l1_bound", "ridge", "shrinkage", "other", "labels")
    instead = f", but {listed(others)}" if others and name in told else ""
    raise UserError(f"argument {flag_of(name)}: not for method {args.method or 'tpower'}{instead}")


def given(args: Arguments, p: int) -> dict[str, Any]:
    """What says how sparse the loadings are."""
    model = (MODELS | RESAMPLED)[args.method]
    values = {name: getattr(args, name) for name in model.sparsity if getattr(args, name) is not None}
    if model.needs is not None and not values:
        values[model.needs] = min(10, p)
    return values


def fit(args: Arguments, X: Any, r: int, choice: Choice | None, progress: Any, **treatment: Any) -> Any:
    """The result of the method, by the function of its name."""
    model = MODELS[args.method]
    function = getattr(import_module(f"..models.{model.module}", __package__), args.method)
    options = options_of(args, model)
    if not model.covariance:
        del treatment["kind"]
    if choice is not None:
        options["choice"] = choice
    return function(X, r, callback=progress, **given(args, X.shape[1]), **options, **treatment)


def options_of(args: Arguments, model: Model) -> dict[str, Any]:
    """Those options of the function that were given; signs are known of the variables."""
    return {
        name: getattr(args, name)
        for name in model.options
        if name != "nonnegative" and getattr(args, name) is not None
    }


def weights_of(result: Any) -> NDArray[Any]:
    """What the centered and scaled data are multiplied by for the scores, (p, r)."""
    eye = scipy.sparse.csr_array(scipy.sparse.identity(len(result.loadings), format="csr"))
    plain = replace(result, mean=None, scale=None)
    return np.asarray(plain.transform(eye)).astype(result.loadings.dtype)
