"""How sparse, and how many components: paths over the sparsity, and choices that the data make."""

from __future__ import annotations

import math
from dataclasses import field, replace
from typing import Any

import numpy as np

from .._limits import TIE
from .._messages import counted, few
from .._records import frozen_record, record
from .._types import (
    AnyArray,
    Array,
    CountCriterion,
    Criterion,
    Grid,
    Kind,
    MatrixLike,
    ModelLike,
    Names,
    OperatorLike,
    RandomSource,
    Rule,
    Weights,
)
from .._validation import check_choice, integer, is_row_blocks, require_memory
from ..linalg.orthogonal import unit_columns
from ..linalg.scaling import TINY
from ..linalg.threads import check_jobs
from ..models.components import SparsePCAResult
from ..progress import ProgressCounter, SelectionCallback, check_callback, refuse_ended
from ..readable import Judged
from .model import as_model, as_rows, refuse_nested, takes_model
from .plans import Plan, SearchPlan, plan_of, schwarz_criterion
from .stable_variables import stability
from .tuning import ByValue, SparsityPath

CHOSEN = ("sparse_pca", "spca", "sca", "sma", "soppca")


@frozen_record
class SparsitySelection(Judged, ByValue):
    """The score of each value of the sparsity, or of each number of components, and the choice.

    `to_frame()` has a row for each value: score, standard_error, chosen; and component, where grids differ.

    Attributes
    ----------
    parameter : {"cardinality", "l1_bound", "penalty", "n_components"}
    criterion : {"cv", "permutation", "correlation", "sparseness", "bic", "stability"}
    values : ndarray of shape (m,)
        The values, from the sparsest to the densest; numbers of components start at 0.
    score : ndarray of shape (m,)
        Larger is better. "cv": the share of the variance of left-out entries that is predicted, averaged over
        folds and repeats. "permutation": the logarithm of the share explained, minus its mean after
        permutations; for a number of components t, the share of the t-th in the variance that the earlier
        ones leave, see `select_n_components`. "correlation": between the scores of left-out rows from
        components fitted without them and from the components of all rows. "sparseness": the index of
        sparseness. "bic": the log-likelihood minus the cost of the parameters, divided by n. "stability": the
        agreement of half-samples, averaged over components.
    standard_error : ndarray of shape (m,) or None
        The standard error of the score; None for the last three criteria.
    scores : ndarray of shape (runs, m) or None
        "cv", "correlation": the scores of each fold and repeat. "permutation": logarithms of the shares after
        permutations.
    best : int or float
        The value with the best score. For a number of components by permutation, see `select_n_components`.
    one_se : int or float
        The sparsest value (the fewest components) whose score is within one standard error of the best.
    chosen, chosen_index : int or float, and int
        One of these two, by the rule, and its index among the values.
    rule : {"one_se", "best"}
    result : SparsePCAResult or None
        The components of all the data at the chosen value; None for no component.
    path : SparsityPath or None
        The path of all the data over the values; None for numbers of components.
    earlier : tuple of SparsitySelection
        Where grids differ by component, the selections for all components but the last. The other attributes
        describe the last, given the values chosen for the earlier components.

    Examples
    --------
    >>> import spcacore
    >>> X, planted = spcacore.datasets.make_spiked(100, 50, cardinality=5, rng=0)
    >>> found = spcacore.select_sparsity(X, spcacore.sparse_pca, [2, 5, 20])
    >>> found.chosen, found.result.cardinality.tolist()
    (5, [5])
    """

    parameter: str
    criterion: str
    values: AnyArray
    score: Array
    standard_error: Array | None
    scores: Array | None
    best: Any
    one_se: Any
    chosen: Any
    chosen_index: int
    rule: str
    result: SparsePCAResult | None
    path: SparsityPath | None = field(default=None)
    earlier: tuple[SparsitySelection, ...] = ()

    @property
    def names(self) -> Names:
        """Names of the variables, if the input had any."""
        return None if self.result is None else self.result.names

    @property
    def chosen_by_component(self) -> tuple[int | float, ...]:
        """What is chosen for each component, where grids differ by component; else `chosen` alone."""
        return tuple(one.chosen for one in (*self.earlier, self))

    def _columns(self) -> dict[str, Any]:
        steps = (*self.earlier, self)
        columns: dict[str, Any] = {}
        if self.earlier:
            columns["component"] = np.repeat(np.arange(len(steps)) + 1, [len(one.values) for one in steps])
        columns["score"] = np.concatenate([one.score for one in steps])
        if self.standard_error is not None:
            columns["standard_error"] = np.concatenate([one.standard_error for one in steps])
        columns["chosen"] = [i == one.chosen_index for one in steps for i in range(len(one.values))]
        return columns

    def _index(self) -> list[Any]:
        return [value for one in (*self.earlier, self) for value in one.values.tolist()]

    def _facts(self) -> list[str]:
        which = f" of component {len(self.earlier) + 1}" if self.earlier else ""
        facts = [
            f"criterion={self.criterion!r}",
            f"{counted(len(self.values), 'value')} of {self.parameter}{which}", f"best={self.best:.6g}",
            f"one_se={self.one_se:.6g}", f"chosen={self.chosen:.6g}",
        ]  # fmt: skip
        earlier = few(f"{one.chosen:.6g}" for one in self.earlier)[1:-1]
        return [*facts, *([f"earlier={earlier}"] if earlier else [])]


@takes_model(*CHOSEN)
def sparsity_path(
    X: OperatorLike,
    model: ModelLike,
    grid: Grid | None = None,
    *,
    sample_weight: Weights = None,
    callback: SelectionCallback | None = None,
) -> SparsityPath:
    """Sparse components for each of several values of their sparsity.

    For `sparse_pca`, each value gives what that function gives, or a first component that is better by the
    objective of the method, because the search starts also from the components of the next denser value. X is
    checked, summarized and screened once. With "tpower", the variance of the first component never falls as
    it becomes denser, unless ``refine=True`` changes it afterwards. Other models are fitted anew for each
    value.

    Parameters
    ----------
    X : array-like of shape (n, p), sparse matrix or LinearOperator
        Data or, with ``kind="covariance"``, a symmetric positive semidefinite matrix, as in `sparse_pca`.
    model : function, functools.partial or estimator
        `sparse_pca`, `spca`, `sca`, `sma` or `soppca`, or a partial of one with its options by name, such as
        `n_components` (by default 1); or any estimator, not yet fitted, as in `stability`.
    grid : sequence of numbers or mapping, optional
        The values, in any order, each for all components: of `cardinality`, or of `l1_bound` or `penalty`
        where the method takes that. A mapping names another parameter, as in ``{"penalty": [1, 2]}`` for
        `spca`. Estimators of other packages need one, whose larger values must give sparser components.
        Default for `sparse_pca` and `spca`: up to 15 values from one variable to at most 1000.
    sample_weight : array-like of shape (n,), optional
        How many samples each row stands for, as in the function of the model.
    callback : callable or True, optional
        Called with a `SelectionProgress` after each value. Raising StopIteration ends the search early,
        see `Progress`. True draws a progress bar.

    Returns
    -------
    SparsityPath
        `parameter`, `values` (m,), `explained_variance_ratio` (m, r), `cardinality` (m, r),
        `dense_ratio` (r,), `index_of_sparseness` (m,), `results`.

    Raises
    ------
    ValueError, TypeError
        As in the function of the model; for something that is not a model, an empty grid, or a value given
        twice.

    References
    ----------
    A. d'Aspremont, F. Bach and L. El Ghaoui (2008). Optimal solutions for sparse principal component
    analysis. Journal of Machine Learning Research 9, 1269-1294. N. T. Trendafilov (2014). From simple
    structure to sparse components: a review. Computational Statistics 29, 431-454.

    Examples
    --------
    >>> from functools import partial
    >>> import spcacore
    >>> A = spcacore.datasets.load_pitprops().correlation
    >>> model = partial(spcacore.sparse_pca, kind="covariance")
    >>> path = spcacore.sparsity_path(A, model, [1, 2, 4, 6, 8, 13])
    >>> path.explained_variance_ratio.ravel().round(3)
    array([0.077, 0.15 , 0.226, 0.29 , 0.313, 0.325])
    >>> path[3].cardinality
    array([6])
    """
    asked = as_model(model, "sparsity_path", CHOSEN, estimators=True)
    refuse_nested(grid)
    plan = plan_of(X, asked if sample_weight is None else asked.weighted(sample_weight), grid, None)
    path = plan.path(ProgressCounter(check_callback(callback), len(plan.values)))
    plan.warn(path.results)
    return path


@takes_model(*CHOSEN)
def select_sparsity(
    X: OperatorLike, model: ModelLike, grid: Grid | None = None, *,
    criterion: Criterion = "cv",
    rule: Rule = "one_se", n_folds: int = 5, n_repeats: int = 1, n_permutations: int = 20,
    n_resamples: int = 50, n_jobs: int = 1, rng: RandomSource = None,
    callback: SelectionCallback | None = None,
) -> SparsitySelection:  # fmt: skip
    """Choose how sparse the components should be.

    Parameters
    ----------
    X : array-like of shape (n, p), sparse matrix, RowBlocks or dask array
        Data, or for "sparseness" anything that `sparse_pca` takes, if its entries are known. "permutation"
        needs it in memory.
    model : function, functools.partial or estimator
        As in `sparsity_path`. The number of components is in [1, min(n, p)], where n is the number of rows
        that are left without a fold. "stability" is not for `sma`.
    grid : sequence of numbers, or of r sequences of numbers, or mapping, optional
        As in `sparsity_path`; for `sca` and `sma` the bounds on all components together. A sequence for each
        component: values of the first are tried with one component, values of the second with two, given the
        choice for the first, and so on. Not for `sca` and `sma`.
    criterion : {"cv", "permutation", "correlation", "sparseness", "bic", "stability"}, default "cv"
        "cv": the share of the variance of left-out entries that is predicted. A model is fitted to the rows
        outside of a fold, and each entry of the fold is predicted from the other entries of its row; with
        ``scale=True``, variables that are constant outside of the fold are left out. Missing entries, which
        some methods allow, are neither predicted nor used to predict. "permutation": the gap between the
        share explained and the share after the entries of each column are permuted, in logarithms.
        "correlation": how well the scores of a fold from the components of the other rows agree with its
        scores from the components of all rows (of the last component, if each has its grid); mixOmics tunes
        `spca` by it. "sparseness": the index of sparseness. It needs only the path, and for many variables it
        mostly counts zeros. "bic": Schwarz's criterion for the components as a normal model with noise, where
        each nonzero costs `log(n)/2`. It needs only the path. "stability": how well half-samples agree on the
        variables, beyond chance (`Stability.agreement`).
    rule : {"one_se", "best"}, default "one_se"
        The sparsest value whose score is within one standard error of the best, or the best.
    n_folds : int, default 5
        In [2, n], for "correlation" in [2, n / 3]. Folds are drawn at random.
    n_repeats : int, default 1
        How often folds are drawn anew.
    n_permutations : int, default 20
        At least 2.
    n_resamples : int, default 50
        The number of half-samples for "stability", in complementary pairs, so even.
    n_jobs : int, default 1
        Threads, each with a copy of the rows or permuted columns at work; -1: one for each processor. The
        result does not depend on it.
    rng : None, int or numpy Generator, optional
        For folds and permutations, and for random starts unless the model has an `rng` of its own; None is a
        fixed seed.
    callback : callable or True, optional
        Called with a `SelectionProgress` after each value of each fold or permutation, in the thread of the
        caller. Raising StopIteration ends the search early, see `Progress`; if each component has its grid,
        with the components chosen so far. True draws a progress bar.

    Returns
    -------
    SparsitySelection
        `values` (m,), `score` (m,), `standard_error` (m,), `scores`, `best`, `one_se`, `chosen`, `result`,
        `path`; with grids by component also `earlier` and `chosen_by_component`.

    Raises
    ------
    ValueError, TypeError
        As in `sparsity_path`; for a covariance with a criterion that needs rows.

    References
    ----------
    D. M. Witten, R. Tibshirani and T. Hastie (2009). A penalized matrix decomposition, with applications to
    sparse principal components and canonical correlation analysis. Biostatistics 10, 515-534, section 3.4.
    R. Bro, K. Kjeldahl, A. K. Smilde and H. A. L. Kiers (2008). Cross-validation of component models: a
    critical look at current methods. Analytical and Bioanalytical Chemistry 390, 1241-1251. R. Tibshirani,
    G. Walther and T. Hastie (2001). Estimating the number of clusters in a data set via the gap statistic.
    Journal of the Royal Statistical Society B 63, 411-423. F. Rohart, B. Gautier, A. Singh and K.-A. Le Cao
    (2017). mixOmics: an R package for 'omics feature selection and multiple data integration. PLoS
    Computational Biology 13, e1005752. S. Nogueira, K. Sechidis and G. Brown (2018). On
    the stability of feature selection algorithms. Journal of Machine Learning Research 18, 1-54.

    Examples
    --------
    >>> from functools import partial
    >>> import spcacore
    >>> X, planted = spcacore.datasets.make_spiked(60, 60, cardinality=10, rng=0)
    >>> model = partial(spcacore.sparse_pca, n_components=2)
    >>> selection = spcacore.select_sparsity(X, model, [2, 5, 10, 20, 60])
    >>> selection.best, selection.result.cardinality.tolist()
    (10, [10, 10])
    >>> selection = spcacore.select_sparsity(X, model, [[5, 10, 20], [5, 10, 40]])
    >>> selection.chosen_by_component
    (10, 10)
    """
    # What is asked for
    check_choice(criterion, "criterion", Criterion)
    way = _Criterion(criterion, rule, n_folds, n_repeats, n_permutations, n_jobs, n_resamples)
    hook = check_callback(callback)
    asked = as_model(model, "select_sparsity", CHOSEN, estimators=True)
    if criterion in ("cv", "permutation", "correlation", "stability"):
        X = way.rows(X, asked.keywords.get("kind", "data"))
    if asked.name == "sma" and criterion == "stability":
        raise ValueError("criterion='stability' cannot be combined with 'sma', which chooses rows too")
    plan = plan_of(X, asked, grid, rng)
    if criterion == "bic":
        _refuse_likelihood(plan)
    grids = [plan.values] if plan.grids is None else plan.grids
    progress = ProgressCounter(hook, (1 + way.runs) * sum(len(grid) for grid in grids))

    # One choice for all components or, if each has a grid, one after another
    steps: list[SparsitySelection] = []
    for _ in grids:
        if plan.grids is not None:
            plan.begin(tuple(one.chosen_index for one in steps))
        try:
            steps.append(way.value_of(plan, progress))
        except RuntimeError:  # the callback ended it before this component had scores
            if not (progress.ended and steps):
                raise
        if progress.ended:
            break
    *earlier, selection = steps
    assert selection.path is not None
    plan.warn(selection.path.results)
    return replace(selection, earlier=tuple(earlier))


@takes_model("sparse_pca")
def select_n_components(
    X: MatrixLike, model: ModelLike, n_components: int | None = None, *,
    criterion: CountCriterion = "cv", rule: Rule = "one_se", n_folds: int = 5,
    n_repeats: int = 1, n_permutations: int = 20,
    n_jobs: int = 1, rng: RandomSource = None, callback: SelectionCallback | None = None,
) -> SparsitySelection:  # fmt: skip
    """Choose how many sparse components to keep.

    Parameters
    ----------
    X : array-like of shape (n, p), sparse matrix, RowBlocks or dask array
        Data. "permutation" needs it in memory.
    model : function, functools.partial or estimator
        `sparse_pca`, or a partial of it with its options by name, or a `SparsePCA` that is not yet fitted.
    n_components : int, optional
        The largest number to consider. Components are found one after another, so that one search serves
        all numbers. Default: the number of the model.
    criterion : {"cv", "permutation"}, default "cv"
        "cv": as in `select_sparsity`; no component at all has the score 0. "permutation": parallel analysis.
        A component explains a share of the variance that the earlier ones leave; it is compared with what one
        component explains of permuted columns with the variances of noise: what the earlier ones leave of a
        variable, over the share of its noise that they leave. "one_se" counts components until one
        is less than two standard deviations above the mean of the permuted shares, as noise is in 29 of 30
        cases; "best" until one is below the mean, as noise is in half of the cases.
    rule : {"one_se", "best"}, default "one_se"
    n_folds, n_repeats, n_permutations, n_jobs, rng, callback
        As in `select_sparsity`.

    Returns
    -------
    SparsitySelection
        With `values` 0, 1, ..., n_components. A factor of more variables than a component has may count
        several times. If "cv" chooses 0, no component predicts better than the means, as where variables vary
        much by themselves: bursty words make components of their own. Try more variables in each,
        ``scale=True``, or logarithms of counts.

    Raises
    ------
    ValueError, TypeError
        As in `sparse_pca`; for options by which all components are found together.

    References
    ----------
    A. Buja and N. Eyuboglu (1992). Remarks on parallel analysis. Multivariate Behavioral Research 27,
    509-540. E. Dobriban and A. B. Owen (2019). Deterministic parallel analysis: an improved method for
    selecting factors and principal components. Journal of the Royal Statistical Society B 81, 163-183.
    R. Bro et al. (2008), see `select_sparsity`.

    Examples
    --------
    >>> from functools import partial
    >>> import spcacore
    >>> X, planted = spcacore.datasets.make_spiked(60, 60, cardinality=10, rng=0)
    >>> model = partial(spcacore.sparse_pca, cardinality=10)
    >>> planted.shape[1], spcacore.select_n_components(X, model, 4).chosen
    (2, 2)
    """
    # What is asked for
    check_choice(criterion, "criterion", CountCriterion)
    way = _Criterion(criterion, rule, n_folds, n_repeats, n_permutations, n_jobs)
    hook = check_callback(callback)
    asked = as_model(model, "select_n_components", ("sparse_pca",), n_components=None)
    asked = asked if n_components is None else asked.of(n_components)
    if asked.n_components is None:
        raise TypeError("n_components must be given: the largest number of components to try")
    if asked.keywords.get("kind", "data") != "data":
        raise TypeError(
            "kind must be 'data': components are counted by rows, which a covariance does not have"
        )
    # One search for the largest number of components, and a score for each number
    grid = "n_components", np.array([asked.n_components]), None
    plan = SearchPlan(way.rows(X, "data"), asked, grid, rng)
    request = plan.requests[0]
    for name, used in {
        "refine=True": request.attempts, "block=True": getattr(request.method, "block", False),
        f"support={request.support!r}": request.support != "free", "Total": request.total,
    }.items():  # fmt: skip
        if used:
            raise ValueError(f"{name} finds all components together, so that they cannot be counted")
    progress = ProgressCounter(hook, 1 + way.runs)
    solutions = plan.search_values(plan.problem, progress)
    values = np.arange(plan.r + 1)
    if criterion == "cv":
        scored = way.folds(plan, progress)
        best, one_se = _largest(*scored[:2])
    else:
        scored = way.permutations(plan, progress)
        score, error, scores = (np.insert(a, 0, 0.0, axis=-1) for a in scored)
        scored = score, error, scores
        # The first component that explains no more than by chance ends the count
        tie = TIE.of(plan.problem.operator.dtype)
        best, one_se = (
            int(np.argmin(np.append(score[1:] > np.maximum(errors * error[1:], tie), False)))
            for errors in (0, 2)
        )
    chosen = one_se if rule == "one_se" else best
    result = plan.result(solutions[0][:chosen], plan.requests[0]) if chosen else None
    plan.warn([result] if result else [])
    return replace(way.selection(plan.parameter, values, scored, best, one_se, None), result=result)


_Scored = tuple[Array, Array | None, Array | None]  # scores, their standard errors, and those of each run


@record
class _Criterion:
    """What scores the values, in how many folds, permutations or resamples, and how one is chosen."""

    name: str
    rule: str
    n_folds: int
    n_repeats: int
    n_permutations: int
    n_jobs: int
    n_resamples: int = 2

    def __post_init__(self) -> None:
        check_choice(self.rule, "rule", Rule)
        for name, least in (("n_folds", 2), ("n_repeats", 1), ("n_permutations", 2), ("n_resamples", 2)):
            integer(getattr(self, name), name, least)
        self.threads: int = check_jobs(self.n_jobs)
        if self.n_resamples % 2:
            raise ValueError(f"n_resamples must be even for complementary pairs, not {self.n_resamples}")

    @property
    def runs(self) -> int:
        """How many times all values are fitted again."""
        several = {
            "cv": self.n_folds * self.n_repeats,
            "correlation": self.n_folds * self.n_repeats,
            "permutation": 1 + self.n_permutations,
            "stability": 1,
        }
        return several.get(self.name, 0)

    def rows(self, X: Any, kind: str) -> Any:
        """Return X as an array, CSR matrix or row blocks, checked for what the criterion needs."""
        needs = f"criterion={self.name!r}"
        if check_choice(kind, "kind", Kind) != "data":
            raise ValueError(f"{needs} needs data; for a covariance, use 'sparseness'")
        if self.name == "permutation":
            require_memory(X, "criterion='permutation' needs", instead=": use 'cv'")
        rows = as_rows(X, "X", f"entries for {needs}", finite=False)
        rows = rows.held() if is_row_blocks(X) else rows
        fewest = {"cv": 1, "correlation": 3}.get(self.name, 0)
        if fewest * self.n_folds > rows.shape[0]:
            most = "the number of rows" if fewest == 1 else "a third of the number of rows"
            raise ValueError(f"n_folds must be at most {most}, {rows.shape[0] // fewest}, not {self.n_folds}")
        if rows.shape[0] < 3:
            raise ValueError(f"at least three rows are needed for {needs}, not {rows.shape[0]}")
        return rows

    def value_of(self, plan: Plan, progress: ProgressCounter) -> SparsitySelection:
        """Score the values of the plan and choose one."""
        path = plan.path(progress)
        scored: _Scored
        if self.name == "sparseness":
            if path.index_of_sparseness is None:
                raise ValueError(
                    "criterion='sparseness' needs the entries of X; an operator offers only products"
                )
            scored = path.index_of_sparseness, None, None
        elif self.name == "bic":
            problem = plan.problem.unscreened()
            of_each = [schwarz_criterion(problem, unit_columns(result.loadings)) for result in path]
            scored = np.array(of_each), None, None
        elif self.name == "stability":
            scored = self._agreements(plan, path, progress), None, None
        elif self.name in ("cv", "correlation"):
            full = [result.loadings for result in path] if self.name == "correlation" else None
            scored = self.folds(plan, progress, full)
        else:
            scored = self.permutations(plan, progress)
        return self.selection(plan.parameter, plan.values, scored, *_largest(*scored[:2]), path)

    def selection(
        self, parameter: str, values: AnyArray, scored: _Scored, best: int, one_se: int,
        path: SparsityPath | None,
    ) -> SparsitySelection:  # fmt: skip
        """Return the result; `best` and `one_se` are positions among the values."""
        chosen = one_se if self.rule == "one_se" else best
        return SparsitySelection(
            parameter, self.name, values, *scored, values[best].item(), values[one_se].item(),
            values[chosen].item(), chosen, self.rule, None if path is None else path[chosen], path,
        )  # fmt: skip

    def folds(
        self, plan: Plan, progress: ProgressCounter, full: list[AnyArray] | None = None
    ) -> tuple[Array, Array, Array]:
        """Return the mean score of each value over the folds, its standard error, and all scores.

        If the callback ends the search, only finished folds count, in whole repeats if there is one. The
        standard error of the mean over folds comes from the deviations within each repeat.
        """
        done = np.empty(0)
        if not progress.ended:
            done = plan.cross_validated(self.n_folds, self.n_repeats, self.threads, progress, full)
        refuse_ended(len(done), "folds")
        n_folds = min(self.n_folds, len(done))
        scores = done[: max(len(done) // self.n_folds, 1) * self.n_folds]
        within = scores.reshape(-1, n_folds, scores.shape[1]).var(axis=1, ddof=1)
        return scores.mean(axis=0), np.sqrt(within.mean(axis=0) / n_folds), scores

    def permutations(self, plan: Plan, progress: ProgressCounter) -> tuple[Array, Array, Array]:
        """Return the gap of each value, its error, and the logarithms of the shares after each permutation.

        The gap is the logarithm of the share of X less its mean over the permutations. If the callback ends
        the search, only finished permutations count.
        """
        done = np.empty(0)
        if not progress.ended:
            done = plan.permuted(self.n_permutations, self.threads, progress)
        refuse_ended(len(done) - 1, "permutations")
        own, *permuted = np.log(np.maximum(done, TINY))
        scores = np.array(permuted)
        error = scores.std(axis=0, ddof=1) * math.sqrt(1 + 1 / len(scores))
        return own - scores.mean(axis=0), error, scores

    def _agreements(self, plan: Plan, path: SparsityPath, progress: ProgressCounter) -> Array:
        """Return how well half-samples agree at each value, averaged over components."""
        score = np.zeros(len(plan.values))
        for i, (value, result) in enumerate(zip(plan.values.tolist(), path.results, strict=False)):
            if progress.ended:
                break
            if result.loadings.any():
                count, jobs = self.n_resamples, self.n_jobs
                found = stability(plan.X, plan.model_of(i), n_resamples=count, n_jobs=jobs, rng=plan.seed)
                score[i] = found.agreement.mean()
            progress(value)
        else:
            return score
        raise RuntimeError("the callback ended the selection before all values were tried: nothing is chosen")


def _largest(score: Array, error: Array | None) -> tuple[int, int]:
    """Return the position of the best score, and of the sparsest value within one standard error of it.

    Of scores that tie, the first counts.
    """
    most = score.max() - TIE.double * max(1.0, abs(score.max()))  # a share of 1 sets the scale of ties
    best = int(np.argmax(score >= most))
    return best, best if error is None else int(np.argmax(score >= most - error[best]))


def _refuse_likelihood(plan: Plan) -> None:
    """Raise an error if the number of samples or the variances are not known, which the likelihood needs."""
    if plan.kind != "data":
        raise ValueError("criterion='bic' needs data: the number of samples behind a covariance is not known")
    if plan.problem.diagonal is None:
        raise TypeError("X must have entries for criterion='bic'; an operator offers only products")
