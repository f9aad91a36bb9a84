"""scikit-learn estimators of the functions of this package."""

from .._messages import with_advice
from .clustering import SparseHierarchical, SparseKMeans
from .components import SCA, SPCA, KernelPCA, SparsePCA, StructuredPCA
from .probabilistic import PPCA
from .stability import StabilitySelector
from .supervised import SparseCCA, SparseLDA

__all__ = [
    "PPCA", "SCA", "SPCA", "KernelPCA", "SparseCCA", "SparseHierarchical", "SparseKMeans", "SparseLDA",
    "SparsePCA", "StabilitySelector", "StructuredPCA",
]  # fmt: skip

for _name in __all__:
    _estimator = globals()[_name]
    _estimator.__module__ = __name__  # the place for their users, in documentation and pickles
    if "__firstlineno__" in vars(_estimator):  # a line of another file, by which Python 3.13 would look here
        del _estimator.__firstlineno__
    _estimator.__init__ = with_advice(_estimator.__init__)


def __dir__() -> list[str]:
    return sorted(__all__)
