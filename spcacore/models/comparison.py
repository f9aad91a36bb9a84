"""Results side by side: what each explains, of which variables, and how far they agree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._labels import columns_of, reordered
from .._limits import ALL_VECTORS_ORDER, READ_COMPONENTS
from .._messages import brief, counted, few
from .._records import NO_PANDAS, filled, frozen_record
from .._rendering import (
    Part,
    html_page,
    loadings_parts,
    name_of,
    printable,
    shortened,
    table_of,
)
from .._types import AnyArray, Array, Index, Kind, Names, OperatorLike, Weights
from .._validation import check_choice, integer
from ..linalg.orthogonal import matched_columns, symmetrized
from ..linalg.scaling import divisor, roots
from ..operators.gram import dense_shares
from ..operators.inputs import as_problem
from ..operators.problem import Problem
from ..readable import Listing, Tabular, as_result
from .variance import VARIANCE_DEFINITIONS, checked_loadings, images_of, operator_variances

PerResult = tuple[AnyArray, ...]


@filled(
    {
        "example": """\
Examples
--------
>>> import spcacore
>>> A = spcacore.datasets.load_pitprops().correlation
>>> few, many = (spcacore.sparse_pca(A, 2, cardinality=k, kind="covariance") for k in (3, 5))""",
        "no_pandas": NO_PANDAS,
    }
)
@frozen_record
class Comparison(Tabular):
    """Results side by side, from `compare`.

    Each attribute that is a tuple has one array for each result, in the order of `labels`. Such an array has
    one number for each component of the result. Each component is matched with one component of the
    reference, or with none. Signs are chosen so that the cosine of a matched pair is positive. The
    components of the reference are matched with themselves.

    `to_frame()` has a row for each component of each result: component and matched (both count from 1; 0 for
    none), sign, nonzeros, shared, overlap, angle and correlation; then variance_NAME for each definition and,
    if the total is known, ratio_NAME.

    Attributes
    ----------
    labels : tuple of str
    reference : int
        The place of the result that the others are matched with.
    kind : str
    n_variables : int
        p, the number of variables.
    variables : ndarray of shape (q,), int
        Indices of the variables that at least one component uses, ascending.
    names : tuple of q str or None
        Names of these variables.
    loadings : tuple of ndarray of shape (q, r)
        Loadings of these variables, at unit length, with the signs that were given.
    explained_variance : dict of tuple of ndarray of shape (r,)
        Variances by each definition of the function `explained_variance`.
    explained_variance_ratio : dict of tuple of ndarray of shape (r,), or None
        The same as proportions of the total variance. None if the total is unknown, because X is known only
        by its products.
    total_variance : float or None
    dense_ratio : ndarray of shape (r,) or None
        Shares of the variance of ordinary principal components, as many as the longest result has.
    cardinality : tuple of ndarray of shape (r,), int
        Number of nonzeros of each loading.
    matched : tuple of ndarray of shape (r,), int
        Index of the matched component of the reference, from 0; -1 for none.
    sign : tuple of ndarray of shape (r,), int
        1 or -1, which multiplies a loading before it is compared.
    angle : tuple of ndarray of shape (r,)
        Angle between the loading and the matched one, in degrees, at most 90; 90 for none.
    shared : tuple of ndarray of shape (r,), int
        Number of variables that both components use.
    overlap : tuple of ndarray of shape (r,)
        The same as a proportion of the variables that at least one of the two uses (Jaccard's index).
    correlation : tuple of ndarray of shape (r,)
        Correlation of the two scores; 0 if a score does not vary.
    subspace_angles : tuple of ndarray
        Principal angles between the spans of the result and of the reference, in degrees, largest first.

    {example}
    >>> table = spcacore.compare({"few": few, "many": many}, A)
    >>> table.labels, [count.tolist() for count in table.shared]
    (('few', 'many'), [[3, 3], [3, 2]])
    """

    labels: tuple[str, ...]
    reference: int
    kind: str
    n_variables: int
    variables: Index
    names: Names
    loadings: PerResult
    explained_variance: dict[str, PerResult]
    explained_variance_ratio: dict[str, PerResult] | None
    total_variance: float | None
    dense_ratio: Array | None
    cardinality: PerResult
    matched: PerResult
    sign: PerResult
    angle: PerResult
    shared: PerResult
    overlap: PerResult
    correlation: PerResult
    subspace_angles: PerResult

    def columns(self) -> tuple[list[str], dict[str, Any]]:
        """The content of `to_frame`, without pandas.

        Returns
        -------
        index : list of str
            The label of each row.
        columns : dict of str to ndarray

        {example}
        >>> index, columns = spcacore.compare({"few": few, "many": many}, A).columns()
        >>> index, columns["nonzeros"].tolist()
        (['few', 'few', 'many', 'many'], [3, 3, 5, 5])
        """
        columns: dict[str, Any] = {
            "component": np.concatenate([1 + np.arange(len(m)) for m in self.matched]),
            "matched": 1 + np.concatenate(self.matched),
            "sign": np.concatenate(self.sign),
            "nonzeros": np.concatenate(self.cardinality),
            **{name: np.concatenate(getattr(self, name)) for name in _MEASURES},
        }
        for kind, table in (("variance", self.explained_variance), ("ratio", self.explained_variance_ratio)):
            columns |= {f"{kind}_{name}": np.concatenate(values) for name, values in (table or {}).items()}
        index = [label for label, m in zip(self.labels, self.matched, strict=True) for _ in m]
        return index, columns

    def __str__(self) -> str:
        return self.summary()

    def _facts(self) -> list[str]:
        return [f"labels={few(map(repr, self.labels))}", f"reference={brief(self.labels[self.reference])!r}"]

    def _table(self) -> Listing:
        return Listing("result", *self.columns())

    def _parts(self) -> list[Part]:
        """Return a table with a row for each result, and one with a row for each component."""
        known, p = self.explained_variance_ratio, self.n_variables
        columns: dict[str, list[Any]] = {
            "components": [v.shape[1] for v in self.loadings],
            "nonzeros": [int(count.sum()) for count in self.cardinality],
            "variables": [int(np.count_nonzero(v.any(axis=1))) for v in self.loadings],
        }
        for name, values in (self.explained_variance if known is None else known).items():
            unit, size = ("", 1) if known is None else (" %", 100)
            columns[name + unit] = [size * float(v.sum()) for v in values]
        columns["largest angle"] = [angles.max(initial=0) for angles in self.subspace_angles]
        index = [*self.labels]
        if self.dense_ratio is not None:
            r, share = len(self.dense_ratio), 100 * float(self.dense_ratio.sum())
            for column, one in zip(columns.values(), [r, r * p, p, *[share] * len(columns)], strict=False):
                column.append(one)
            columns["largest angle"][-1] = None
            index.append("ordinary")
        rows, each = self.columns()
        few_columns = {name: each[name] for name in [*each][:9]}
        return [
            *table_of("result", index, columns),
            *table_of("result", rows, few_columns, self._by_match().tolist(), "component"),
        ]

    def _repr_html_(self) -> str:
        """The summary in HTML, with loadings side by side."""
        return html_page(self._title(), [*self._parts(), *self._side_by_side()])

    def _by_match(self) -> Index:
        """Return the rows of the frame that match each component of the reference, and then the rest."""
        matched = np.concatenate(self.matched)
        return np.argsort(np.where(matched < 0, len(matched), matched), kind="stable")

    def _title(self) -> str:
        both = f"{counted(len(self.labels), 'result')} for {counted(self.n_variables, 'variable')}"
        return f"{both}, matched with {_label(self.labels[self.reference])}"

    def _side_by_side(self) -> list[Part]:
        """Return the loadings in HTML; matched ones stand in adjacent columns and have one sign."""
        index, columns = self.columns()
        order = self._by_match()
        chosen = order[:READ_COMPONENTS]
        V = (np.hstack(self.loadings) * columns["sign"])[:, chosen]
        titles = [f"{_label(index[i])} {columns['component'][i]}" for i in chosen]
        parts = loadings_parts(V, titles, self._name)
        if parts and len(order) > len(chosen):
            parts.insert(1, f"and {counted(len(order) - len(chosen), 'more column')}")
        return parts

    def _name(self, j: int) -> str:
        """Return the name of a variable for a table."""
        return f"x{self.variables[j] + 1}" if self.names is None else name_of(self.names, j)


_MEASURES = ("shared", "overlap", "angle", "correlation")


def _label(label: str) -> str:
    """Return a label for a table."""
    return printable(shortened(label))


def compare(
    results: object,
    X: OperatorLike,
    *,
    reference: int | str = 0,
    kind: Kind | None = None,
    center: bool | ArrayLike | None = None,
    scale: bool | ArrayLike | None = None,
    sample_weight: Weights = None,
) -> Comparison:
    """Compare methods or parameters: variances, supports, scores and angles side by side.

    The components of each result are matched one to one with the components of the reference. The matching
    maximizes the sum of the magnitudes of the cosines.

    Parameters
    ----------
    results : sequence or mapping
        Results, fitted estimators with `components_`, other objects with `loadings` or `loading`, or arrays
        of shape (p, r) or (p,), all for the same variables.
        The keys of a mapping are the labels. The labels of a sequence are the names of the methods, with
        numbers if they repeat.
    X : array-like of shape (n, p), sparse matrix or LinearOperator
        Data or, with ``kind="covariance"``, a symmetric matrix, as in `sparse_pca`. Not copied. Variances
        and correlations are computed for this X, which need not be the one of the fits.
    reference : int or str, default 0
        The place or the label of the result that the others are matched with.
    kind, center, scale : optional
        How to read X, as in `sparse_pca`. Default: as in the calls that made the results, by the same
        vectors where these were given. If the results do not say, "data", True and False.
    sample_weight
        As in `sparse_pca`.

    Returns
    -------
    Comparison
        It has `to_frame()` and `summary()`, shows tables in notebooks, and `plot.comparison` draws it.

    Raises
    ------
    ValueError
        For results with other variables than X; for results that read their data in different ways, if
        no option says how to read X; for invalid X.
    TypeError
        If `results` is neither a sequence nor a mapping, or a result has no loadings.

    References
    ----------
    A. Bjorck and G. H. Golub (1973). Numerical methods for computing angles between linear subspaces.
    Mathematics of Computation 27, 579-594. H. W. Kuhn (1955). The Hungarian method for the assignment
    problem. Naval Research Logistics Quarterly 2, 83-97.

    Examples
    --------
    >>> import spcacore
    >>> A = spcacore.datasets.load_pitprops().correlation
    >>> results = {
    ...     method: spcacore.sparse_pca(A, 2, cardinality=4, method=method, kind="covariance")
    ...     for method in ("thresholding", "branch_and_bound")
    ... }
    >>> print(spcacore.compare(results, A))
    2 results for 13 variables, matched with thresholding
    <BLANKLINE>
    result            components  nonzeros  variables  cumulative %  adjusted %  raw %  regression %  largest angle
    thresholding               2         8          8         37.43       37.10  37.43         47.43          0.000
    branch_and_bound           2         8          8         40.14       38.00  40.14         46.23          86.65
    ordinary                   2        26         13         50.74       50.74  50.74         50.74
    <BLANKLINE>
    result            component  matched  sign  nonzeros  shared  overlap  angle  correlation  variance cumulative
    thresholding              1        1     1         4       4    1.000  0.000        1.000                2.883
    branch_and_bound          1        1     1         4       3   0.6000  38.11       0.9595                2.937
    thresholding              2        2     1         4       4    1.000  0.000        1.000                1.983
    branch_and_bound          2        2    -1         4       1   0.1429  86.46     -0.01304                2.280
    """  # noqa: E501
    # What is compared, and how X is read
    labels, given = _labeled(results)
    if isinstance(reference, str):
        place = labels.index(check_choice(reference, "reference", labels))
    else:
        place = integer(reference, "reference", 0, len(labels) - 1)
    options: dict[str, Any] = {
        name: _common_option(name, labels, given, columns_of(X)) if value is None else value
        for name, value in (("kind", kind), ("center", center), ("scale", scale))
    }
    problem = as_problem(X, sample_weight=sample_weight, definite=False, **options)
    labeled = zip(labels, given, strict=True)
    V = [_unit_loadings(result, label, problem.p, problem.names) for label, result in labeled]
    # Variances by each definition
    variances = {
        name: tuple(operator_variances(problem, v, name) for v in V) for name in VARIANCE_DEFINITIONS
    }
    problem.reported(np.concatenate([v for values in variances.values() for v in values]))  # warns once
    total = None if problem.diagonal is None else problem.trace
    ratios = None
    if total is not None and total > 0:
        ratios = {name: tuple(v / total for v in values) for name, values in variances.items()}
    # Agreement with the reference
    correlations = _correlations(problem, V, place)
    pairs = [_pairing(v, V[place], c) for v, c in zip(V, correlations, strict=True)]
    used = np.flatnonzero(np.any([v.any(axis=1) for v in V], axis=0))
    names = next(
        (n for n in (problem.names, *(getattr(x, "names", None) for x in given)) if n is not None), None
    )
    dense = None
    if total and (not problem.operator.by_passes or problem.p <= ALL_VECTORS_ORDER):
        dense = dense_shares(problem, max(v.shape[1] for v in V))()
    return Comparison(
        labels=labels, reference=place, kind=options["kind"], n_variables=problem.p, variables=used,
        names=None if names is None else tuple(names[j] for j in used), loadings=tuple(v[used] for v in V),
        explained_variance={
            name: tuple(np.asarray(problem.in_units(v)) for v in values) for name, values in variances.items()
        },
        explained_variance_ratio=ratios, total_variance=problem.total_variance, dense_ratio=dense,
        cardinality=tuple(np.count_nonzero(v, axis=0) for v in V),
        **{name: tuple(pair[name] for pair in pairs) for name in pairs[0]},
        subspace_angles=tuple(_subspace_angles(v[used], V[place][used]).round(12) for v in V),
    )  # fmt: skip


# ---- what is compared -----------------------------------------------------------------------------------


def _labeled(results: Any) -> tuple[tuple[str, ...], list[Any]]:
    """Return a different label for each result, and the results."""
    if isinstance(results, Mapping):
        labels, given = [str(label) for label in results], [as_result(x) for x in results.values()]
    elif isinstance(results, (list, tuple)):
        given = [as_result(x) for x in results]
        methods = [str(getattr(result, "method", "loadings")) for result in given]
        labels = [
            method if methods.count(method) == 1 else f"{method} {methods[: i + 1].count(method)}"
            for i, method in enumerate(methods)
        ]
    else:
        raise TypeError(f"results must be a list or a mapping of results, not {type(results).__name__}")
    if not given:
        raise ValueError("results is empty")
    if len(set(labels)) < len(labels):
        raise ValueError("results must have different labels")
    return tuple(labels), given


def _unit_loadings(result: Any, label: str, p: int, names: Names) -> Array:
    """Return the loadings of a result at unit length; errors name the result."""
    try:
        return checked_loadings(result, p, names, (1, 2))
    except (TypeError, ValueError) as error:
        raise type(error)(f"results[{label!r}]: {error}") from None


def _option_of(result: Any, name: str, names: Names) -> Any:
    """Return how a result read its data: `kind`, or `center` or `scale`, a vector in the order of `names`."""
    if name == "kind":
        return getattr(result, "kind", "data")
    used: Any = getattr(result, "mean" if name == "center" else name, None)
    if name in getattr(result, "given", ()):
        return reordered(used, result.names, names, name)
    return used is not None or (name == "center" and not hasattr(result, "mean"))


def _common_option(name: str, labels: tuple[str, ...], given: list[Any], names: Names) -> Any:
    """Return what all results say about an option, or its default; raise ValueError if they differ."""
    found: list[tuple[Any, str]] = []
    for label, result in zip(labels, given, strict=True):
        if getattr(result, "row_shift", None) is not None:
            raise ValueError(
                f"results[{label!r}] is of data scaled by degrees: pass its loadings, and X so scaled"
            )
        says = hasattr(result, "loadings") and hasattr(result, "mean")
        if says and not (name == "center" and getattr(result, "kind", "data") == "covariance"):
            found.append((_option_of(result, name, names), label))
    if not found:
        return {"kind": "data", "center": True, "scale": False}[name]
    common, first = found[0]
    for value, label in found:
        if not np.array_equal(value, common):
            a, b = (repr(x) if np.ndim(x) == 0 else "a vector" for x in (common, value))
            b = "another vector" if a == b else b
            raise ValueError(
                f"say {name}=, how to read X: {first!r} has {name}={a}, and {label!r} {name}={b}"
            )
    return common


# ---- how far they agree ---------------------------------------------------------------------------------


def _correlations(problem: Problem, V: list[Array], place: int) -> list[Array]:
    """Return the correlations of the scores of each result with those of the reference, from V'AV.

    They are 0 where a score does not vary.
    """
    op = problem.operator
    together = np.concatenate(V, axis=1)
    if op.by_passes:  # read the rows in blocks once
        M = together.T @ op.apply_block(together)
    else:  # read only the columns in use
        images = images_of(op, together)
        M = images @ (together if op.symmetric_form else images.T)
    M = symmetrized(M)
    deviation = roots(M.diagonal())
    inverse = np.where(deviation > 0, 1 / divisor(deviation), 0)
    R = (inverse[:, None] * M * inverse).clip(-1, 1)
    ends = np.cumsum([v.shape[1] for v in V])[:-1]
    return np.split(np.split(R, ends, axis=1)[place], ends)


def _pairing(V: Array, W: Array, correlation: Array) -> dict[str, AnyArray]:
    """Match each column of V with a column of W or none, and return how far they agree."""
    cosine = V.T @ W
    r = V.shape[1]
    matched, sign = np.full(r, -1), np.ones(r, np.intp)
    mine, theirs, turned = matched_columns(cosine)
    matched[mine], sign[mine] = theirs, turned
    v, w = sign[mine] * V[:, mine], W[:, theirs]
    # tan(angle/2) = |v - w|/|v + w|, which keeps the digits of small angles
    tangent = np.arctan2(np.linalg.norm(v - w, axis=0), np.linalg.norm(v + w, axis=0))
    angle, overlap, found, shared = np.full(r, 90.0), np.zeros(r), np.zeros(r), np.zeros(r, np.intp)
    angle[mine] = np.where(v.any(axis=0) & w.any(axis=0), np.degrees(2 * tangent), 90.0)
    shared[mine] = ((v != 0) & (w != 0)).sum(axis=0)
    overlap[mine] = shared[mine] / np.maximum(1, ((v != 0) | (w != 0)).sum(axis=0))
    found[mine] = sign[mine] * correlation[mine, theirs]
    return {
        "matched": matched, "sign": sign, "angle": angle, "shared": shared, "overlap": overlap,
        "correlation": found,
    }  # fmt: skip


def _subspace_angles(V: Array, W: Array) -> Array:
    """Return the principal angles in degrees, descending; none if a span is empty."""
    from scipy.linalg import subspace_angles

    return np.degrees(subspace_angles(V, W)) if V.any() and W.any() else np.zeros(0)
