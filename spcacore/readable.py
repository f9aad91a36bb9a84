"""How every result is shown: as a line, as a summary, in a notebook, and as a table of pandas."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ._messages import counted, few, other_words
from ._records import NO_PANDAS, filled
from ._types import AnyArray, Array, MatrixLike, Names
from ._validation import LARGEST, check_bool, group_places, integer

if TYPE_CHECKING:
    from pandas import DataFrame

    from ._rendering import Part


def _unwritable(value: Any) -> Any:
    """Return a view of an array that cannot be written to; for a tuple of arrays, views of each."""
    if type(value) is tuple and any(isinstance(one, np.ndarray) for one in value):
        return tuple(map(_unwritable, value))
    if not isinstance(value, np.ndarray):
        return value
    view = value.view()
    view.flags.writeable = False
    return view


class WhenAsked:
    """An attribute of a result that may be given as a function, which is called when it is first read."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __set__(self, result: Any, value: Any) -> None:
        result.__dict__[self.name] = value

    def __get__(self, result: Any, owner: type | None = None) -> Any:
        value = None if result is None else result.__dict__[self.name]
        if callable(value):
            value = result.__dict__[self.name] = _unwritable(value())
        return value


def when_asked() -> Any:
    """Return the default of such an attribute, of any type."""
    return WhenAsked()


class Result:
    """The base of what every public function returns.

    A subclass defines `_facts`, and `_parts` if its summary has more than a line.
    """

    def __post_init__(self) -> None:
        self.__setstate__(self.__dict__)

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dict__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Set the fields, arrays as views that cannot be written to: nothing of a result can change."""
        self.__dict__.update({name: _unwritable(value) for name, value in state.items()})

    def _facts(self) -> Iterable[str]:
        """Return what the line says, each fact bounded in length."""
        raise NotImplementedError

    def _title(self) -> str:
        """Return the first line of the summary."""
        return f"{type(self).__name__}: {', '.join(self._facts())}"

    def _parts(self) -> list[Part]:
        """Return the tables and notes below the title."""
        return []

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join([*self._facts(), *self._notes()])})"

    def _notes(self) -> list[str]:
        """Return notes about what was done to the data that the caller may not know."""
        missing = getattr(self, "missing_entries", 0)
        return [counted(missing, "missing entry")] if missing else []

    def summary(self) -> str:
        """A short report, as plain text: the line of the result, and tables of what it holds.

        Returns
        -------
        str

        Examples
        --------
        >>> from functools import partial
        >>> import spcacore
        >>> A = spcacore.datasets.load_pitprops().correlation
        >>> model = partial(spcacore.sparse_pca, kind="covariance")
        >>> print(spcacore.sparsity_path(A, model, [2, 4, 8]).summary())
        SparsityPath: method='tpower', 1 component, 3 values of cardinality from 2 to 8, 15.0 to 31.3 % of the variance explained
        <BLANKLINE>
        cardinality  nonzeros  % of the variance  index of sparseness
        2                   2               15.0              0.04127
        4                   4               22.6              0.05076
        8                   8               31.3              0.03906
        """  # noqa: E501
        from . import _rendering

        return _rendering.text_page(self._title(), self._parts())

    def _repr_html_(self) -> str:
        """The summary in HTML, for notebooks."""
        from . import _rendering

        return _rendering.html_page(self._title(), self._parts())


class Judged(Result):
    """The base of results that judge components, or say how many to keep, and that have the components."""

    result: Any

    def transform(self, X: MatrixLike, Y: MatrixLike | None = None) -> AnyArray:
        """Scores of the rows of X by the components, `result`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, p)
        Y : array-like or sparse matrix of shape (m, q), optional
            The other side, of canonical pairs.

        Returns
        -------
        ndarray of shape (m, r); of canonical pairs a tuple of two

        Raises
        ------
        ValueError
            If no component was chosen.
        TypeError
            For canonical pairs without Y, or Y with other components.

        Examples
        --------
        >>> import spcacore
        >>> X, planted = spcacore.datasets.make_spiked(100, 50, cardinality=5, rng=0)
        >>> found = spcacore.select_sparsity(X, spcacore.sparse_pca, [2, 5, 20])
        >>> found.transform(X).shape
        (100, 1)
        """
        if self.result is None:
            raise ValueError("no component was chosen, so that there are no scores")
        if (Y is None) == hasattr(self.result, "loadings_y"):
            raise TypeError("Y must be given, as the other side, for canonical pairs and only for them")
        scores: AnyArray = self.result.transform(*(side for side in (X, Y) if side is not None))
        return scores


class Listing(NamedTuple):
    """A table: what a row is, the name of each row, and the columns by name."""

    of: str
    rows: Sequence[Any]
    columns: dict[str, Any]


@filled({"no_pandas": NO_PANDAS})
class Tabular(Result):
    """The base of results that are one table."""

    def _table(self) -> Listing:
        """Return the table."""
        raise NotImplementedError

    def _parts(self) -> list[Part]:
        from . import _rendering

        return _rendering.table_of(*self._table())

    def to_frame(self) -> DataFrame:
        """The table of the summary as a pandas DataFrame, with all its rows.

        Returns
        -------
        pandas.DataFrame
            The docstring of the class says what the rows and the columns are.

        {no_pandas}

        Examples
        --------
        >>> from functools import partial
        >>> import spcacore
        >>> A = spcacore.datasets.load_pitprops().correlation
        >>> path = spcacore.sparsity_path(A, partial(spcacore.sparse_pca, kind="covariance"), [2, 4, 8])
        >>> path.to_frame()["explained_variance_ratio"].round(2).tolist()
        [0.15, 0.23, 0.31]
        """
        table = self._table()
        return frame(table.columns, table.rows, table.of)


class Side(NamedTuple):
    """The loadings of one set of variables, (p, r); `mark` says which set, if there are two."""

    mark: str
    loadings: AnyArray
    names: Names

    def frame(self) -> Any:
        """Return the loadings as a pandas DataFrame."""
        return component_frame(self.loadings, labels(self.names, len(self.loadings)), "variable")


class HasLoadings(Result):
    """The base of results with loadings of one set of variables, or of two."""

    def _sides(self) -> list[Side]:
        """Return the loadings of each set."""
        raise NotImplementedError

    def _title(self) -> str:
        from . import _rendering

        return _rendering.title_of(self)

    def _parts(self) -> list[Part]:
        from . import _rendering

        return _rendering.parts_of(self)

    def summary(self, n_variables: int = 5) -> str:
        """A short report of the components, as plain text.

        It has one line for each component: nonzeros, variance, share of the total, cumulative share, the
        cumulative share of ordinary principal components if it is known, and the upper bound and gap of a
        certificate. Below are the leading variables of each component, with their contributions in percent.

        Parameters
        ----------
        n_variables : int, default 5
            How many variables to list for each component, at most: those with the largest loadings.

        Returns
        -------
        str

        Examples
        --------
        >>> import spcacore
        >>> A = spcacore.datasets.load_pitprops().correlation
        >>> print(spcacore.sparse_pca(A, 2, cardinality=3, kind="covariance").summary())
        SparsePCAResult by tpower: 2 components of 13 variables, 36.0 % of the variance
        <BLANKLINE>
        component  nonzeros  variance     %  cumulative %  ordinary, cumulative %
        1                 3     2.475  19.0          19.0                    32.5
        2                 3     2.204  17.0          36.0                    50.7
        <BLANKLINE>
        contributions, % of the sum of magnitudes
        1: x2 35.5, x1 34.9, x9 29.6
        2: x7 38.4, x6 32.5, x10 29.1
        """
        from . import _rendering

        parts = _rendering.contributions_of(self, integer(n_variables, "n_variables", 0, LARGEST))
        return _rendering.text_page(self._title(), parts)


@filled({"no_pandas": NO_PANDAS})
class Named(HasLoadings):
    """The base of results with loadings of one set of named variables, of shape (p, r)."""

    names: Names
    loadings: AnyArray

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError; for a name of another package it says where to look."""
            plain = name[:-1] if name.endswith("_") and not name.startswith("_") else ""
            here = plain in getattr(type(self), "__dataclass_fields__", {}) or hasattr(type(self), plain)
            known = plain if plain and here else None
            hint = f"{known} has no underscore here" if known else other_words("attributes").get(name)
            message = f"{type(self).__name__!r} object has no attribute {name!r}"
            raise AttributeError(f"{message}: {hint}" if hint else message, name=name, obj=self)

    def _sides(self) -> list[Side]:
        return [Side("", self.loadings, self.names)]

    @property
    def n_components(self) -> int:
        """Number of components."""
        return self.loadings.shape[1]

    def _sizes(self, noun: str = "component") -> list[str]:
        """Return facts about sizes: p, the number of components, and their cardinalities."""
        p, r = self.loadings.shape
        sizes = few(np.count_nonzero(self.loadings, axis=0))
        return [f"p={p}", counted(r, noun), f"cardinality={sizes}"]

    def to_frame(self) -> DataFrame:
        """The loadings as a pandas DataFrame, with the names of the variables.

        Returns
        -------
        pandas.DataFrame of shape (p, r)
            The index has the names, or x1, x2, ...; the columns are component_1, component_2, ...

        {no_pandas}

        Examples
        --------
        >>> import spcacore
        >>> A = spcacore.datasets.load_pitprops().correlation
        >>> result = spcacore.sparse_pca(A, 2, cardinality=3, kind="covariance")
        >>> result.to_frame()["component_1"].head(3).round(2).tolist()
        [0.6, 0.61, 0.0]
        """
        return self._sides()[0].frame()

    def contributions(self) -> Array:
        """The loadings in percent, with their signs. The magnitudes of each component add up to 100.

        Returns
        -------
        ndarray of shape (p, r)
            `100 v_jt / sum_j |v_jt|`; zeros where a component has no nonzero loading.

        Examples
        --------
        >>> import spcacore
        >>> props = spcacore.datasets.load_pitprops()
        >>> result = spcacore.sparse_pca(props.correlation, 2, cardinality=3, kind="covariance")
        >>> result.contributions()[:3].round(1)
        array([[34.9,  0. ],
               [35.5,  0. ],
               [ 0. ,  0. ]])
        """
        from . import _rendering

        return _rendering.percentages(self.loadings)

    def group_contributions(
        self, groups: Sequence[Hashable] | Mapping[str, Hashable], *, signed: bool = False
    ) -> dict[Hashable, Array]:
        """Contributions in percent, summed over groups of variables.

        Parameters
        ----------
        groups : sequence of p labels, or mapping of names to labels
            The group of each variable. A mapping must have the names of all variables.
        signed : bool, default False
            Add contributions with their signs. The default adds magnitudes, which add up to 100 for each
            component.

        Returns
        -------
        dict of ndarray of shape (r,)
            The sums of each group, in the order in which the groups first appear.

        Raises
        ------
        ValueError
            If the number of labels is not p, or a variable has no group.
        TypeError
            If `groups` is neither a sequence nor a mapping.

        Examples
        --------
        >>> import spcacore
        >>> props = spcacore.datasets.load_pitprops()
        >>> result = spcacore.sparse_pca(props.correlation, 2, cardinality=3, kind="covariance")
        >>> groups = ["size"] * 2 + ["wood"] * 5 + ["shape"] * 6
        >>> {group: share.round().tolist() for group, share in result.group_contributions(groups).items()}
        {'size': [70.0, 0.0], 'wood': [0.0, 71.0], 'shape': [30.0, 29.0]}
        """
        shares = self.contributions()
        index, labels = group_places(groups, self.names, len(shares))
        sums = np.zeros((len(labels), shares.shape[1]))
        np.add.at(sums, index, shares if check_bool(signed, "signed") else np.abs(shares))
        return dict(zip(labels, sums, strict=True))


@dataclass
class _Fitted:
    """What is read from a fitted estimator of another package."""

    loadings: Any
    names: Names
    mean: Any
    explained_variance_ratio: Any
    method: str


def is_table(x: Any) -> bool:
    """Whether x is an array or a dataframe, whose attributes may be its columns."""
    return isinstance(x, np.ndarray) or hasattr(x, "iloc")


def as_result(x: Any) -> Any:
    """Return what holds the loadings: the result of an estimator or a selection; anything else unchanged.

    An estimator of another package has `components_`, of shape (r, p), and perhaps `mean_`,
    `explained_variance_ratio_` and `feature_names_in_`, as scikit-learn calls them.
    """
    if is_table(x):
        return x
    named = getattr(x, "feature_names_in_", None)
    names = None if named is None else tuple(map(str, named))
    for attribute in ("result", "result_"):
        own = getattr(x, attribute, None)
        if isinstance(own, Result) and own is not x:
            own = as_result(own)
            return replace(own, names=names) if names and getattr(own, "names", names) is None else own
    components = getattr(x, "components_", None)
    if components is not None:
        return _Fitted(
            np.asarray(components).T, names, getattr(x, "mean_", None),
            getattr(x, "explained_variance_ratio_", None), type(x).__name__,
        )  # fmt: skip
    if hasattr(x, "fit") and not hasattr(x, "loadings"):
        raise ValueError(
            f"{type(x).__name__} has no components_: fit it first; of a pipeline, give the step that has them"
        )
    return x


def loadings_in(x: Any) -> Any:
    """Return the loadings of a result; something that is no result is taken as loadings itself."""
    for name in () if is_table(x) else ("loadings", "loading"):
        if (V := getattr(x, name, None)) is not None:
            if isinstance(x, Result) and isinstance(V, tuple):
                raise TypeError(f"{type(x).__name__} has the loadings of several results: give one of these")
            return V
    if isinstance(x, HasLoadings):
        raise TypeError(
            f"{type(x).__name__} has loadings of two sets of variables: loadings_x and loadings_y"
        )
    if isinstance(x, Result):
        raise TypeError(f"{type(x).__name__} has no loadings")
    return x


def labels(names: Sequence[str] | None, count: int, letter: str = "x") -> list[str]:
    """Return the names of `count` variables, or x1, x2, ... if they have none."""
    return [f"{letter}{j + 1}" for j in range(count)] if names is None else list(names)


def names_of_sides(result: HasLoadings) -> list[str]:
    """Return the names of all variables of a result; x1, x2, ... and y1, y2, ... where a set has none."""
    return [
        name
        for mark, loadings, own in result._sides()
        for name in labels(own, len(loadings), mark.lower() or "x")
    ]


def component_frame(V: AnyArray, index: Sequence[Any], index_name: str) -> Any:
    """Return a pandas DataFrame with a column for each component."""
    return frame({f"component_{t + 1}": v for t, v in enumerate(V.T)}, index, index_name)


def frame(columns: dict[str, Any], index: Sequence[Any], index_name: str) -> Any:
    """Return a pandas DataFrame; raise ImportError if pandas is not installed."""
    try:
        import pandas
    except ImportError:
        raise ImportError("to_frame() needs pandas: pip install pandas") from None
    return pandas.DataFrame(columns, index=pandas.Index(index, name=index_name))
