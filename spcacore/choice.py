"""Records of what the caller knows about variables and loadings, and of how sparse components are to be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

from numpy.typing import ArrayLike

from ._types import Counted, Groups, MatrixLike, RandomSource, ShareOf, Variables
from ._validation import check_choice
from .options import options_record

__all__ = ["Choice", "Explained", "Prior", "Total"]
__dir__: Callable[[], list[str]] = __all__.copy


@dataclass(frozen=True, eq=False)
class Choice:
    """What you know about the variables: which must or must not be chosen, go together, or have a known sign.

    Parameters
    ----------
    include : sequence of names or indices, optional
        Variables that every component must have. They are free of any penalty or l1 bound. Their entries may
        be zero where no other value is better.
    exclude : sequence of names or indices, optional
        Variables that no component may have. The result is as if these columns were not in X.
    groups : sequence of p labels, or mapping of names to labels, optional
        Variables with the same label enter or leave a component together. The cardinality counts groups, and
        a penalty or bound applies to the norms of groups. All strategies of "greedy" except "gradient" take
        groups.
    signs : 1, -1 or array-like of shape (p,), optional
        1 allows no negative loadings, -1 no positive ones. An array gives the sign of each variable: 1, -1,
        or 0 for either. Not with an orthogonal or uncorrelated deflation; all strategies of "greedy" except
        "gradient" take signs.
    count : {"groups", "variables"}, default "groups"
        What the cardinality counts if there are groups. With "variables", a component has whole groups, of
        at most that many variables together. Only for methods that take a cardinality.

    Examples
    --------
    >>> import spcacore
    >>> props = spcacore.datasets.load_pitprops()
    >>> known = spcacore.Choice(exclude=[0, 1], signs=1)
    >>> result = spcacore.sparse_pca(props.correlation, 1, 4, choice=known, kind="covariance")
    >>> bool((result.loadings >= 0).all()), result.loadings[:2].any().item()
    (True, False)
    """

    include: Variables = None
    exclude: Variables = None
    _: KW_ONLY
    groups: Groups = None
    signs: int | ArrayLike | None = None
    count: Counted = "groups"

    def __post_init__(self) -> None:
        check_choice(self.count, "count", Counted)


@options_record
class Prior:
    """What you know about the loadings: the covariance of their normal distribution, or its inverse.

    Parameters
    ----------
    covariance : array-like of shape (p, p), optional
        C, nonsingular. Multiples of C give the same loadings.
    precision : sparse matrix or array-like of shape (p, p), optional
        C^-1, sparse for large p. It may be singular, like `grid_laplacian`: its smallest eigenvalue is raised
        to 1e-6 of the mean of its diagonal. For a sparse matrix of more than 1000 variables, that is added to
        the diagonal, and random vectors estimate traces and determinants. Default of both: C = I.
    rng : None, int or numpy Generator, optional
        For the start of the search, and for the random vectors. None is a fixed seed.

    Examples
    --------
    >>> import spcacore
    >>> X, planted = spcacore.datasets.make_spiked(50, 60, cardinality=20, rng=0)
    >>> smooth = spcacore.Prior(precision=spcacore.grid_laplacian((60,)))
    >>> spcacore.oppca(X, 1, prior=smooth).loadings.shape
    (60, 1)
    """

    covariance: MatrixLike | None = None
    precision: MatrixLike | None = None
    rng: RandomSource = None

    def __post_init__(self) -> None:
        if self.covariance is not None and self.precision is not None:
            raise ValueError("give the covariance of the prior or its precision, not both")


@dataclass(frozen=True)
class Explained:
    """A share that each component is to explain, in place of a cardinality.

    Each component uses as few variables as the method needs to explain this share of what the first principal
    component of the deflated matrix explains. The number of variables is found by bisection, or on the path
    of a greedy search.

    Parameters
    ----------
    share : float or sequence of r floats
        In (0, 1]: one share for all components, or one for each.
    of : {"variance", "score"}, default "variance"
        What it is a share of: the variance, or the score of that principal component (R^2, the squared
        correlation of the two scores). With method "least_squares" and "score", the component is the
        prediction of that score by a regression on the variables.

    Examples
    --------
    >>> import spcacore
    >>> A = spcacore.datasets.load_pitprops().correlation
    >>> spcacore.sparse_pca(A, 2, spcacore.Explained(0.9), kind="covariance").cardinality.tolist()
    [7, 6]
    """

    share: Any
    of: ShareOf = "variance"

    def __post_init__(self) -> None:
        check_choice(self.of, "of", ShareOf)


@dataclass(frozen=True)
class Total:
    """The number of nonzeros of all loadings together, in place of a cardinality.

    Each loading gets at least one. The total is divided so that the loadings explain the most variance
    together: single nonzeros move between loadings as long as this helps, and each loading is solved again
    given the others.

    Parameters
    ----------
    count : int
        At least the number of components.

    Examples
    --------
    >>> import spcacore
    >>> A = spcacore.datasets.load_pitprops().correlation
    >>> result = spcacore.sparse_pca(A, 3, spcacore.Total(12), kind="covariance")
    >>> int(result.cardinality.sum())
    12
    """

    count: int
