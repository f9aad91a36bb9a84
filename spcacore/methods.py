"""Records of methods: how each method searches, with its options."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Literal

from numpy.typing import ArrayLike

from ._types import RandomSource, ScreeningMode, StartLike
from .options import Checked, options_record

__all__ = [
    "DSPCA", "METHODS", "PMD", "BranchAndBound", "GPower", "Greedy", "Iterative", "LeastSquares", "Method",
    "RatioSearch", "SCoTLASS", "TPower", "Thresholding",
]  # fmt: skip
__dir__: Callable[[], list[str]] = __all__.copy


@options_record
class RatioSearch(Checked):
    """How directions of a pencil are sought, by `sparse_eigen` and `sparse_lda`.

    Parameters
    ----------
    strategy : {"auto", "forward", "backward", "bidirectional", "rough"}, default "auto"
        "forward" adds one variable at a time, which takes `4/3 k^3 p` multiplications; "backward" leaves out
        one at a time, from all variables, at most 1000; "bidirectional" does both and keeps the better
        result; "rough" adds a seventh more variables at a time. "auto": forward, or rough where forward takes
        more than 4e10 multiplications; also from up to 16 pairs of variables (of more than 1000 variables,
        from eight of them) if this takes at most 2e8; for at most 150 variables also backward, if the ratio
        of all variables is bounded.
    swaps : bool, default True
        After the search, swap one variable for another as long as this raises the ratio. If a round of swaps
        would cost more than 1e9 multiplications, only the most promising variables may enter. Swaps end after
        2e10 multiplications from each start, or after twice as many as a search by single variables took if
        this is more.

    Examples
    --------
    >>> import numpy as np, spcacore
    >>> A, B = np.diag([4.0, 3.0, 2.0]), np.diag([4.0, 1.0, 1.0])
    >>> options = spcacore.RatioSearch(strategy="backward")
    >>> spcacore.sparse_eigen(A, B, 1, 1, options=options).values.tolist()
    [3.0]
    """

    strategy: Literal["auto", "forward", "backward", "bidirectional", "rough"] = "auto"
    swaps: bool = True


@options_record
class Method(Checked):
    """How one method searches for a component; see the records of the methods.

    Parameters
    ----------
    renormalize : bool, default True
        Re-fit the values on each support, see the function `renormalize`. An l1 norm may then exceed its
        bound. "greedy", "branch_and_bound" and "least_squares" take only True.
    screening : {"auto", "gram", "working_set", "both", "shadow", "references", "none"}, default "auto"
        How to avoid reading all of X for every product. `result.screening` says what was used, and how much
        of X was read.

        "none" reads all of X for every product.

        "gram" forms `A` in double precision and then does not read X again. Only components whose variance is
        less than 1e-5 (float32: 1e-3) of the largest variance of a variable are still found on the data. The
        same search gives the same result, up to rounding; but because products are cheap then, "tpower" makes
        more starts and swaps.

        "shadow", "references" and "both" are for dense data, and give the same result as "none" to the last
        bit. "shadow" makes an int8 copy of X, an eighth (float32: a quarter) of its size, and reads only the
        columns of X that the copy cannot rule out. "references" rules out columns by their products with
        earlier vectors. "both" does both.

        "working_set" searches on the Gram matrix of a few hundred columns, from more starts, until no other
        column would enter the support. It is for "tpower", "gpower" without blocks, "pmd" with sparsity on
        one side, "scotlass", forward "greedy", and the first solution of "branch_and_bound". The result is a
        fixed point of the iteration over all columns, and often better than with "none"; for "greedy" it is
        the same up to rounding. The search goes on among all columns if the set would not fit, or if an
        earlier component needs all columns. It is refused if not even the first component could be searched
        this way: with a start, `n_starts` above 1, ``deflation="hotelling"``, most constraints, included
        variables, groups or signs, or NaN entries.

        "auto" chooses by the size and kind of X and the memory available. It takes "gram" with up to 1000
        variables and as many rows, for tall data of up to a few thousand variables, and for blocks of rows
        with up to 3072 variables (in one pass), unless a sparse column has a mean 100 times its deviation.
        For large dense data it screens, with at most two fifths of the size of X for copies above 64 MB. For
        other large data it uses a working set; CSR data are copied by columns for that, if memory allows.
        Methods whose steps need whole products ("scotlass", "dspca", "branch_and_bound", "greedy" except by
        gradient, "gpower" in blocks, "pmd" with two sparse sides) do not accept "shadow", "references" or
        "both". Such a "pmd" does not accept "gram" either.
    """

    name: ClassVar[str]
    sparsity: ClassVar[str] = "cardinality"
    refits: ClassVar[str] = ""  # why the values must be fitted again, if they must

    renormalize: bool = True
    screening: ScreeningMode = "auto"

    def _refusals(self) -> Iterator[str]:
        if self.refits and not self.renormalize:
            yield f"{self.name} needs renormalize=True: {self.refits}"


@options_record
class Iterative(Method):
    """A method that iterates from several starts, and keeps the best run."""

    start: StartLike = None
    n_starts: int | None = None
    max_iter: int = 1000
    tol: float = 1e-8
    rng: RandomSource = None


@options_record
class TPower(Iterative):
    """Truncated power iteration, `x <- T_k(Ax)/||T_k(Ax)||` from several starts; see `tpower`.

    Parameters
    ----------
    start : None, "diagonal", "eigenvector" or array-like of shape (p,), optional
        None (default): a race. It starts from the 300 columns of A whose `cardinality` largest entries have
        the largest norm. After one and after two iterations only the best go on, and 8 run to their ends,
        whose variables are swapped. For that, A is formed in single precision between all variables, if
        these are at most 8192; of more variables, between 3072: where variances tie, mostly variables with
        large correlations among neighbors by random projections. In data of more than 3072 variables, one
        start from the variables of largest variance comes first; the race follows if a smaller one, or some
        columns of A, show that this is not enough. If what is found is no more correlated than noise, every
        column starts; with many variables, first the 3072 of largest variance, then those with the largest
        products with the best ends. "diagonal": only the variable of largest variance. "eigenvector": the
        leading eigenvector, truncated to 8, 4, 2 and 1 times the cardinality, with each run warm-starting
        the next. An array, for a single component, is truncated first.
    n_starts : int, optional
        Number of starts when `start` is None, run one after another; beyond 1 + p they are random.
        Default: a race, see `start`.
    max_iter : int, default 1000
        Largest number of iterations from each start. With support "common" or "disjoint": of swaps.
    tol : float, default 1e-8
        An iteration from a start ends when the support is stable and a step raises the objective by a
        fraction of at most `tol`; where rounding hides that, when the squared step is at most `tol`.
    swaps : bool, optional
        At the end, swap variables of the support for others, one for one, until no swap raises the objective;
        this takes `cardinality` columns of A. Then, with up to 300 variables, search for better supports by
        up to 1000 nodes of `branch_and_bound`, or fewer if they take more than a few milliseconds. Default:
        where this is cheap, `start` is None, and values are re-fitted.
    renormalize, screening
        As in `Method`.
    rng : None, int or numpy Generator, optional
        For random starts, and for probing operators without entries. None is a fixed seed, so results
        repeat.

    References
    ----------
    X.-T. Yuan and T. Zhang (2013). Truncated power method for sparse eigenvalue problems. Journal of
    Machine Learning Research 14, 899-925, algorithm 1.

    Examples
    --------
    >>> import spcacore
    >>> A = spcacore.datasets.load_pitprops().correlation
    >>> method = spcacore.TPower(n_starts=5)
    >>> spcacore.sparse_pca(A, 2, 4, method=method, kind="covariance").cardinality.tolist()
    [4, 4]
    """

    name = "tpower"
    swaps: bool | None = None


@dataclass(frozen=True, eq=False)
class GPower(Iterative):
    """The generalized power method, for a penalty on each component; see `gpower`.

    Parameters
    ----------
    penalty : float or sequence of r floats, optional
        At least 0, in the units of the column norms of the centered X, or, with norm="l0", of their squares
        (the diagonal of `X'X`; a covariance is used in place of `X'X`). One for all components, or one for
        each. Needed by `sparse_pca`.
    norm : {"l1", "l0"}, default "l1"
    relative : bool, default False
        The penalty is given in [0, 1], as a fraction of the largest column norm (l1) or its square (l0) of
        the deflated data.
    block : bool, default False
        Find all components at once, without deflation, and re-fit the values on all supports together.
    mu : array-like of shape (r,), optional
        With ``block=True``, a positive weight for each component (default 1); different weights order
        components that would otherwise be found only up to a rotation.
    start : None, "diagonal", "eigenvector" or array-like of shape (p,), optional
        None (default): the variables whose columns of A promise most after one step, without those that
        another one reaches; then single variables by decreasing variance; where X offers products alone, a
        dense vector near the leading eigenvector. "diagonal": the variable of largest variance, the first if
        tied. "eigenvector": the leading eigenvector. An array, for a single component, is the first z.
    n_starts : int, optional
        Number of starts when `start` is None: single variables by decreasing variance, then random starts
        beyond p. Default: all variables for p up to several hundred, fewer for larger p, and one if X is
        large.
    max_iter : int, default 1000
        Iterations of each start.
    tol : float, default 1e-8
        A run ends when its support is stable and an iteration raises the objective by at most `tol` times its
        first term; where rounding hides that, when the squared step is at most `tol`.
    renormalize, screening
        As in `Method`; without re-fitted values the loadings are shrunk by an l1 penalty.
    rng : None, int or numpy Generator, optional
        As in `TPower`.

    References
    ----------
    M. Journee, Yu. Nesterov, P. Richtarik and R. Sepulchre (2010). Generalized power method for sparse
    principal component analysis. Journal of Machine Learning Research 11, 517-553.

    Examples
    --------
    >>> import spcacore
    >>> A = spcacore.datasets.load_pitprops().correlation
    >>> spcacore.sparse_pca(A, 2, method=spcacore.GPower(0.3), kind="covariance").cardinality.tolist()
    [7, 2]
    """

    name = "gpower"
    sparsity = "penalty"
    penalty: float | ArrayLike | None = None
    _: KW_ONLY
    norm: Literal["l1", "l0"] = "l1"
    relative: bool = False
    block: bool = False
    mu: ArrayLike | None = None

    def _refusals(self) -> Iterator[str]:
        if self.mu is not None and not self.block:
            yield "mu weights the components of block=True; it cannot be used without block=True"


@options_record
class Greedy(Method):
    """One variable after another; see `greedy`.

    Parameters
    ----------
    strategy : {"auto", "forward", "gradient", "backward", "bidirectional"}, default "auto"
        "auto": for each k the best of several searches. These are "forward", "forward" from up to three other
        variables, which lead furthest of eight whose columns of `A` promise most, and "backward" with up to
        150 variables. With groups or signs it is "bidirectional" for up to 40 variables. Beyond, it is
        "forward", also from up to three others whose columns of `A` promise most and, where variables of
        groups are counted, by the gain over the size too; truncated power then raises each end. With `first`
        or included variables it is "forward". Where variables are included or have groups or signs, a brief
        branch and bound (of groups and signs: for up to 40 variables) then looks for more in `sparse_pca`,
        and groups or variables are swapped, one for one, as long as that helps.

        "forward": add the variable that makes the eigenvalue largest, exactly, at the cost of K products with
        A and `K^2 p` operations; 8 (float32: 4) `K p` bytes are kept, and at most 256 MB of rows of A.
        "gradient": add the variable with the largest entry of `Ax`, without reading dense data that cannot
        matter; K products and no such memory. "backward": from all variables, at most 2000, remove the one
        whose removal lowers the eigenvalue least; about `2 p^4` operations. "bidirectional": for each k the
        better of forward and backward.
    renormalize, screening
        As in `Method`. "both", "shadow" and "references" are for "gradient"; "working_set" helps none.
    rng : None, int or numpy Generator, optional
        For the dense vector that chooses the first variable where more than 256 tie, or where X offers
        only products; None is a fixed seed.

    References
    ----------
    A. d'Aspremont, F. Bach and L. El Ghaoui (2008). Optimal solutions for sparse principal component
    analysis. Journal of Machine Learning Research 9, 1269-1294.

    Examples
    --------
    >>> import spcacore
    >>> A = spcacore.datasets.load_pitprops().correlation
    >>> method = spcacore.Greedy(strategy="backward")
    >>> spcacore.sparse_pca(A, 1, 4, method=method, kind="covariance").cardinality.tolist()
    [4]
    """

    name = "greedy"
    refits = "its loadings are leading eigenvectors"
    strategy: Literal["auto", "forward", "gradient", "backward", "bidirectional"] = "auto"
    rng: RandomSource = None


@dataclass(frozen=True, eq=False)
class PMD(Iterative):
    """The penalized matrix decomposition, for a bound on the l1 norm of each component; see `pmd`.

    Parameters
    ----------
    l1_bound : float or sequence of r floats, optional
        Bound on the l1 norm, in [1, sqrt(p)]: one for all components, or one for each. Needed by
        `sparse_pca`.
    sample_l1_bound : float, optional
        The two-way form: a bound, in [1, sqrt(n)], on the l1 norm of u as well. For data only.
    start : None, "diagonal", "eigenvector" or array-like of shape (p,), optional
        None (default): nearly the leading eigenvector of the submatrix of the `4 l1_bound**2`
        variables of largest variance or, where all variances tie, dense leading vectors; then single
        variables by decreasing variance. "diagonal": the variable of largest variance alone.
        "eigenvector": the leading eigenvector. An array, for a single component, is taken as it is.
    n_starts, max_iter, tol, rng
        As in `TPower`.
    renormalize, screening
        As in `Method`. The two-way form reads all the data.

    References
    ----------
    D. M. Witten, R. Tibshirani and T. Hastie (2009). A penalized matrix decomposition, with
    applications to sparse principal components and canonical correlation analysis. Biostatistics
    10(3), 515-534.

    Examples
    --------
    >>> import spcacore
    >>> A = spcacore.datasets.load_pitprops().correlation
    >>> spcacore.sparse_pca(A, 2, method=spcacore.PMD(1.8), kind="covariance").cardinality.tolist()
    [5, 6]
    """

    name = "pmd"
    sparsity = "l1_bound"
    l1_bound: float | ArrayLike | None = None
    _: KW_ONLY
    sample_l1_bound: float | None = None


@dataclass(frozen=True, eq=False)
class SCoTLASS(Iterative):
    """Components of bounded l1 norm, orthogonal to the earlier ones; see `scotlass`.

    With ``deflation="generalized"`` or "uncorrelated" they are what that deflation says, and not orthogonal.

    Parameters
    ----------
    l1_bound : float or sequence of r floats, optional
        As in `PMD`. Near 1 only nearly single variables meet it, and none of them may be orthogonal to the
        earlier loadings.
    start, n_starts, max_iter, tol, rng
        As in `PMD`.
    renormalize, screening
        As in `Method`; the values are the best ones that are orthogonal to the earlier loadings.

    References
    ----------
    I. T. Jolliffe, N. T. Trendafilov and M. Uddin (2003). A modified principal component technique
    based on the LASSO. Journal of Computational and Graphical Statistics 12(3), 531-547.

    Examples
    --------
    >>> import spcacore
    >>> A = spcacore.datasets.load_pitprops().correlation
    >>> result = spcacore.sparse_pca(A, 2, method=spcacore.SCoTLASS(1.8), kind="covariance")
    >>> round(abs(float(result.loadings[:, 0] @ result.loadings[:, 1])), 6)
    0.0
    """

    name = "scotlass"
    sparsity = "l1_bound"
    l1_bound: float | ArrayLike | None = None


@options_record
class DSPCA(Method):
    """The semidefinite relaxation, with a bound on all other loadings; see `dspca`.

    Parameters
    ----------
    max_iter : int, default 1000
        Each iteration decomposes a matrix of the variables that remain.
    tol : float, default 1e-3
        Stop when `relaxation` and `dual` are within this proportion of each other, each counted
        without what the diagonal of M is charged, `penalty * Tr M = penalty`.
    renormalize, screening
        As in `Method`.

    References
    ----------
    A. d'Aspremont, L. El Ghaoui, M. I. Jordan and G. R. G. Lanckriet (2007). A direct formulation for
    sparse PCA using semidefinite programming. SIAM Review 49, 434-448.

    Examples
    --------
    >>> import spcacore
    >>> A = spcacore.datasets.load_pitprops().correlation
    >>> spcacore.sparse_pca(A, 1, 5, method=spcacore.DSPCA(tol=1e-4), kind="covariance").cardinality.tolist()
    [5]
    """

    name = "dspca"
    max_iter: int = 1000
    tol: float = 1e-3


@options_record
class BranchAndBound(Method):
    """The optimum, with a proof; its limits hold for each component. See `branch_and_bound`.

    Parameters
    ----------
    tol : float, default 0
        The search ends when the value is proved to be within this proportion of the optimum, in [0, 1].
    time_limit : float, optional
        Seconds after which the search ends; with support "common", the search for all components.
    node_limit : int, optional
        Nodes of the tree after which the search ends.
    renormalize, screening
        As in `Method`.
    rng : None, int or numpy Generator, optional
        For the search that comes before the tree; None is a fixed seed.

    References
    ----------
    L. Berk and D. Bertsimas (2019). Certifiably optimal sparse principal component analysis. Mathematical
    Programming Computation 11, 381-420.

    Examples
    --------
    >>> import spcacore
    >>> A = spcacore.datasets.load_pitprops().correlation
    >>> method = spcacore.BranchAndBound(time_limit=10)
    >>> spcacore.sparse_pca(A, 2, 5, method=method, kind="covariance").converged.tolist()
    [True, True]
    """

    name = "branch_and_bound"
    refits = "it compares supports by their best values"
    tol: float = 0.0
    time_limit: float | None = None
    node_limit: int | None = None
    rng: RandomSource = None


@options_record
class LeastSquares(Method):
    """The score that explains most of all variables by regression; see `least_squares_component`.

    Parameters
    ----------
    strategy : {"auto", "forward", "backward", "bidirectional", "projection", "exact"}, default "auto"
        "forward": add the variable that explains most; of more than 1000 that takes 2 to 130 products with A
        for each one, and 16 k p bytes. "backward": from all variables, at most 1000, leave out the one whose
        removal costs least. "bidirectional": both. "projection": the variables, by forward selection, on
        which the score of the first principal component is best regressed. "auto": forward, projection and,
        for at most 150 variables, backward; the best is kept. "exact": the best of all supports by branch and
        bound, for at most 200 variables; from about thirty on it may take long.
    swaps : bool, default True
        After that, swap variables, one for one, until no swap explains more.
    time_limit, node_limit : optional
        Seconds, and nodes of the tree, after which "exact" ends.
    renormalize, screening
        As in `Method`.

    References
    ----------
    G. M. Merola (2015). Least squares sparse principal component analysis: a backward elimination approach
    to attain large loadings. Australian & New Zealand Journal of Statistics 57, 391-429.

    Examples
    --------
    >>> import spcacore
    >>> A = spcacore.datasets.load_pitprops().correlation
    >>> method = spcacore.LeastSquares(strategy="exact")
    >>> spcacore.sparse_pca(A, 2, 3, method=method, kind="covariance").deflation
    'schur'
    """

    name = "least_squares"
    refits = "it compares supports by their best values"
    strategy: Literal["auto", "forward", "backward", "bidirectional", "projection", "exact"] = "auto"
    swaps: bool = True
    time_limit: float | None = None
    node_limit: int | None = None

    def _refusals(self) -> Iterator[str]:
        yield from super()._refusals()
        if self.strategy != "exact" and not (self.time_limit is None and self.node_limit is None):
            yield "time_limit and node_limit require strategy='exact'"


@options_record
class Thresholding(Method):
    """The leading eigenvector, truncated: a baseline for the other methods.

    Parameters
    ----------
    renormalize, screening
        As in `Method`.
    rng : None, int or numpy Generator, optional
        For the start of the eigenvector; None is a fixed seed.

    References
    ----------
    J. Cadima and I. T. Jolliffe (1995). Loadings and correlations in the interpretation of principal
    components. Journal of Applied Statistics 22(2), 203-214, which warns of it.

    Examples
    --------
    >>> import spcacore
    >>> A = spcacore.datasets.load_pitprops().correlation
    >>> spcacore.sparse_pca(A, 1, 4, method=spcacore.Thresholding(), kind="covariance").cardinality.tolist()
    [4]
    """

    name = "thresholding"
    rng: RandomSource = None


METHODS: dict[str, type[Method]] = {
    one.name: one
    for one in (TPower, GPower, Greedy, PMD, SCoTLASS, DSPCA, BranchAndBound, LeastSquares, Thresholding)
}
