"""What the tests of the estimators share."""

import numpy as np
import pytest
import scipy.sparse as sp

pytest.importorskip("sklearn", reason="needs scikit-learn")
from spcacore.sklearn import PPCA, SCA, SPCA, SparseCCA, SparseLDA, SparsePCA

ALL = (SparsePCA, SPCA, SCA, PPCA, SparseLDA, SparseCCA)


def counts(n=40, p=30, seed=0):
    """Sparse counts of which no column is zero, as CSR."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.4 + 2 * (rng.random((n, 1)) < 0.3) * (rng.random(p) < 0.3), (n, p)).astype(float)
    X[0] += 1
    return sp.csr_array(X)
