"""Results over several values of the sparsity, and the choice of a prior."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from .._messages import brief, counted, few, quiet
from .._records import frozen_record
from .._types import AnyArray, Array, Index, MatrixLike, ModelLike, Names
from ..choice import Prior
from ..models.components import SparsePCAResult
from ..models.structured import StructuredPCAResult
from ..progress import Callback, check_callback, refuse_ended
from ..readable import Judged, Listing, Tabular
from .model import as_model, takes_model


class ByValue(Tabular):
    """A result with a row for each of several values of a parameter."""

    parameter: str
    values: AnyArray

    def _table(self) -> Listing:
        return Listing(self.parameter, self._index(), self._columns())

    def _index(self) -> list[Any]:
        return self.values.tolist()

    def _columns(self) -> dict[str, Any]:
        raise NotImplementedError


@frozen_record
class SparsityPath(ByValue):
    """Sparse components for each of several values of their sparsity, from `sparsity_path`.

    It is a sequence: ``path[i]`` is the result of the model for the i-th value, such as a `SparsePCAResult`.

    `to_frame()` has a row for each value: nonzeros and, if the total is known, explained_variance_ratio
    and index_of_sparseness.

    Attributes
    ----------
    parameter : str
        "cardinality", "l1_bound", "penalty", or a parameter of another estimator.
    values : ndarray of shape (m,)
        The values, from the sparsest to the densest: ascending, or descending for a penalty.
    explained_variance_ratio : ndarray of shape (m, r) or None
        Additional share of the variance of each component, as in `SparsePCAResult`; 0 where none was left.
        None where the total is unknown.
    cardinality : ndarray of shape (m, r), int
        The number of nonzeros of each loading.
    dense_ratio : ndarray of shape (r,) or None
        Shares of the variance of the first r ordinary principal components.
    index_of_sparseness : ndarray of shape (m,) or None
        `(share explained) (share of the ordinary components) (share of zeros among the loadings)`
        (Trendafilov 2014): it rewards both variance and zeros.
    results : tuple of m results of the model
        For estimators of other packages, as `from_loadings` gives them.
    method, deflation, kind : str
    n_samples : int or None
    names : tuple of str or None
        Names of the variables, if the input had any.

    Examples
    --------
    >>> from functools import partial
    >>> import spcacore
    >>> X, planted = spcacore.datasets.make_spiked(100, 50, cardinality=5, rng=0)
    >>> path = spcacore.sparsity_path(X, partial(spcacore.sparse_pca, n_components=2), [2, 5, 10])
    >>> path.explained_variance_ratio.shape, path[1].cardinality.tolist()
    ((3, 2), [5, 5])
    """

    parameter: str
    values: AnyArray
    explained_variance_ratio: AnyArray | None
    cardinality: Index
    dense_ratio: Array | None
    index_of_sparseness: Array | None
    results: tuple[SparsePCAResult, ...]
    method: str
    deflation: str
    kind: str
    n_samples: int | None
    names: Names

    @property
    def n_components(self) -> int:
        """Number of components."""
        return self.cardinality.shape[1]

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, i: int) -> SparsePCAResult:
        return self.results[i]

    def __iter__(self) -> Iterator[SparsePCAResult]:
        return iter(self.results)

    def _columns(self) -> dict[str, Any]:
        columns: dict[str, Any] = {"nonzeros": self.cardinality.sum(axis=1)}
        if self.explained_variance_ratio is not None:
            columns["explained_variance_ratio"] = self.explained_variance_ratio.sum(axis=1)
            columns["index_of_sparseness"] = self.index_of_sparseness
        return columns

    def _facts(self) -> list[str]:
        first, last = self.values[[0, -1]]
        facts = [
            f"method={self.method!r}", counted(self.n_components, "component"),
            f"{counted(len(self), 'value')} of {self.parameter} from {first:.6g} to {last:.6g}",
        ]  # fmt: skip
        if self.explained_variance_ratio is not None:
            low, high = 100 * self.explained_variance_ratio.sum(axis=1)[[0, -1]]
            facts.append(f"{low:.1f} to {high:.1f} % of the variance explained")
        return facts


# ---- which prior of the loadings the data speak for -----------------------------------------------------


MODELS = ("oppca", "soppca")
_REFUSED = {"callback": "give it to {0} itself", "prior": "priors has those to compare"}


@frozen_record
class PriorSelection(Judged, Tabular):
    """How well the data support each prior.

    `to_frame()` has a row for each prior: evidence, components, chosen.

    Attributes
    ----------
    names : tuple of str
    evidence : ndarray of shape (m,)
        For each prior, the sum of the gains of its components, see `StructuredPCAResult`.
    results : tuple of m StructuredPCAResults

    Examples
    --------
    >>> import spcacore
    >>> X, planted = spcacore.datasets.make_spiked(15, 60, cardinality=20, variances=(9,), rng=0)
    >>> priors = {"none": None, "smooth": spcacore.Prior(precision=spcacore.grid_laplacian((60,)))}
    >>> spcacore.select_prior(X, spcacore.oppca, priors).best
    'smooth'
    """

    names: tuple[str, ...]
    evidence: Array
    results: tuple[StructuredPCAResult, ...]

    @property
    def best(self) -> str:
        """The name of the prior of the largest evidence."""
        return self.names[int(np.argmax(self.evidence))]

    @property
    def result(self) -> StructuredPCAResult:
        """The result of the best prior."""
        return self.results[int(np.argmax(self.evidence))]

    def _facts(self) -> list[str]:
        values = few(f"{name}: {x:.6g}" for name, x in zip(self.names, self.evidence, strict=True))
        return [f"best={brief(self.best)!r}", f"evidence: {values[1:-1]}"]

    def _table(self) -> Listing:
        columns = {
            "evidence": self.evidence, "components": [result.n_components for result in self.results],
            "chosen": [name == self.best for name in self.names],
        }  # fmt: skip
        return Listing("prior", self.names, columns)


@takes_model(*MODELS)
def select_prior(
    X: MatrixLike,
    model: ModelLike,
    priors: Mapping[str, Prior | None],
    *,
    callback: Callback | None = None,
) -> PriorSelection:
    """Compare priors of the loadings by the free energy of `oppca` or `soppca`.

    The free energy of a component is the logarithm of the density of the deflated data given the scores of
    the samples, with the loading integrated out under its prior. The gain of a component is its free energy
    minus the free energy of noise alone, minus log(p)/2 for each score and, with a cardinality, minus the
    logarithm of the number of supports. The evidence for a prior is the sum of the gains of all components.
    Multiples of a covariance are the same prior.

    Parameters
    ----------
    X : array-like of shape (n, p) or sparse matrix
        As in `oppca`.
    model : function, functools.partial or estimator
        `oppca` or `soppca`, or a partial of one with its options by name, but for the prior; or a
        `StructuredPCA`, not yet fitted. If a partial does not say `n_components`, each prior has all
        components that raise its free energy, and at least one.
    priors : mapping of names to Prior
        What is compared; None stands for C = I.
    callback : callable or True, optional
        As in `oppca`, for one prior after another. Raising StopIteration ends the comparison, which then
        covers only the priors that were done before.

    Returns
    -------
    PriorSelection
        `names`, `evidence` (m,) and `results` of all priors, `best` and its `result`.

    Raises
    ------
    ValueError, TypeError
        As in `oppca`; also if there are no priors, or a prior has other options.
    RuntimeError
        If the callback ends the comparison before two priors are done.

    References
    ----------
    R. Khanna, J. Ghosh, R. Poldrack and O. Koyejo (2017). A deflation method for structured probabilistic
    PCA. SIAM International Conference on Data Mining. G. Schwarz (1978). Estimating the dimension of a model.
    Annals of Statistics 6(2), 461-464 (what a parameter costs that is maximized).

    Examples
    --------
    >>> import numpy as np, spcacore
    >>> rng = np.random.default_rng(0)
    >>> bump = np.exp(-0.5 * ((np.arange(60) - 20) / 5) ** 2)
    >>> X = 2 * np.outer(rng.standard_normal(15), bump) + rng.standard_normal((15, 60))
    >>> smooth = spcacore.Prior(precision=spcacore.grid_laplacian((60,)))
    >>> chosen = spcacore.select_prior(X, spcacore.oppca, {"none": None, "smooth": smooth})
    >>> chosen.best, chosen.result.n_components
    ('smooth', 1)
    """
    asked = as_model(model, "select_prior", MODELS, n_components=None, refused=_REFUSED)
    if not isinstance(priors, Mapping):
        raise TypeError(f"priors must be a mapping of names to priors, not {type(priors).__name__}")
    if not priors:
        raise ValueError("priors is empty: there is nothing to compare")
    for name, prior in priors.items():
        if prior is not None and not isinstance(prior, Prior):
            raise TypeError(f"priors[{name!r}] must be None or Prior(...), not {prior!r:.60}")
    hook, results = check_callback(callback), dict[str, StructuredPCAResult]()

    for name, prior in priors.items():
        with quiet("not even the first"):  # the evidence says so
            found = asked.having(prior=prior).fit(X, callback=hook)
        if found.n_components == 0 or hook.ended:
            break
        results[name] = found
    refuse_ended(len(results), "priors", min(2, len(priors)))
    evidence = np.array([result.gain.sum() for result in results.values()])
    return PriorSelection(tuple(results), evidence, tuple(results.values()))
