"""scikit-learn estimators of the functions of this package."""

from .components import SCA, SPCA, SparsePCA
from .probabilistic import PPCA
from .supervised import SparseCCA, SparseLDA

__all__ = ["PPCA", "SCA", "SPCA", "SparseCCA", "SparseLDA", "SparsePCA"]

for _estimator in (PPCA, SCA, SPCA, SparseCCA, SparseLDA, SparsePCA):
    _estimator.__module__ = __name__  # the place for their users, in documentation and pickles
