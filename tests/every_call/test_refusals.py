"""What a function refuses because of what else it is given, or of the numbers: with the words that say why.

What no option or array of a name may be is in test_options.py and test_bad_input.py.
"""

import types
from functools import partial

import flat
import numpy as np
import pytest
import scipy.sparse as sp
from calls import COVARIANCE as A
from calls import LABELS, V0, N, P, R, pca
from calls import X0 as X
from extras import optional
from html_tools import Columns
from kernel_tools import gaussian
from scipy.sparse.linalg import aslinearoperator

import spcacore
from spcacore import Choice, Explained, GPower, Total
from spcacore.models.elastic_net import elastic_nets

Y = X[:, :5] + X[:, 5:10]
GROUPS = np.array([0, 0, 0, 1, 1, 2, 2, 3, 4, 4, 5, 6])
SIZES = {"groups": GROUPS, "count": "variables"}
SIGNS = np.array([1, 1, -1, 0] * 3)
NAN = np.where(X[3, 2] == X, np.nan, X)
COUNTS = np.floor(abs(X))
NEGATIVE = np.where(X[3, 2] == X, -1, COUNTS)
RANK_TWO, SIGNED = X[:, :2] @ X[:2, :4], np.r_[np.ones(1499), -1.0]
OPERATOR, ONE = aslinearoperator(X), np.ones(N)
WIDE, ONES, I4, I12 = np.ones((3, 2001)), np.ones((5, 3)), np.eye(4), np.eye(P)
NULL, DEPENDENT = np.diag([1.0, 1, 1, 0]), np.eye(4) + np.eye(4)[::-1] * [1, 0, 0, 1]
INDEFINITE = np.diag([1.0, -1.0, 2.0])
LOPSIDED = X @ X.T + np.triu(np.ones((N, N)))
COV, DEGREE = {"kind": "covariance"}, {"scale": "degree"}
HOLLOW = np.diag([0.0, *np.ones(P - 1)]) + 0.1 * (np.eye(P, k=1) + np.eye(P, k=-1))
MIXED = I12 + 2 * (np.eye(P, k=1) + np.eye(P, k=-1))

sparse = partial(flat.sparse_pca, X, 2)
of_matrix = partial(flat.sparse_pca, A, 2, kind="covariance")
common, disjoint = (partial(of_matrix, cardinality=3, support=how) for how in ("common", "disjoint"))
block = partial(sparse, method="gpower", block=True, relative=True)
tpower, greedy, pmd, gpower = (partial(one, X) for one in (flat.tpower, flat.greedy, flat.pmd, flat.gpower))
pairs = partial(flat.sparse_cca, X, Y)
general = partial(pairs, method="generalized")
eigen = partial(flat.sparse_eigen, n_components=1, cardinality=2)
classes = partial(flat.sparse_lda, cardinality=2)
kernel, features = partial(spcacore.kernel_pca, X), partial(spcacore.kernel_pca, X, 2, random_features=9)
stable, select = partial(spcacore.stability, X), partial(spcacore.select_sparsity, X)
path, count = partial(spcacore.sparsity_path, X), partial(spcacore.select_n_components, X)
values = partial(spcacore.cross_validated_eigenvalues, n_components=2)
TWO = pca(2)


def called(function, given):
    """A call with these arguments, the options by name at their end."""
    arguments = given if isinstance(given, tuple) else (given,)
    if isinstance(arguments[-1], dict):
        return function(*arguments[:-1], **arguments[-1])
    return function(*arguments)


TABLE = [  # a function, and by the words of each refusal what it is given, options by name at the end
    (sparse, {
        "'naive', 'orthogonal', 'uncorrelated', not": {"cardinality": 3, "deflation": "none"},
        "vectors are for the function tpower": {"cardinality": 3, "start": V0[:, 0]},
        "given signs": {"cardinality": 3, "constraint": "orthogonal", "nonnegative": True},
        r"l1_bound\[1\] must be in \[1, 3.4641\]": {"method": "pmd", "l1_bound": [1, np.nan]},
        "needs renormalize=True": {"method": "pmd", "l1_bound": 2, "deflation": "orthogonal",
         "renormalize": False},
        "does not help scotlass": {"method": "scotlass", "l1_bound": 2, "screening": "both"},
        "does not help thresholding": {"method": "thresholding", "cardinality": 3, "screening": "both"},
        "without deflation='generalized'": {"method": "dspca", "cardinality": 2, "deflation": "generalized",
         "include": [0]},
        "cannot be combined with method 'least_squares'": {"method": "least_squares", "cardinality": 2,
         "deflation": "hotelling"},
        "requires a method that maximizes the variance, not 'least": {"method": "least_squares",
         "cardinality": 2, "refine": True},
        "certify=True requires a method that maximizes": {"method": "least_squares", "cardinality": 2,
         "certify": True},
        "certify='jointly' requires a method that maximizes": {"method": "least_squares", "cardinality": 2,
         "certify": "jointly"},
        "renormalize=True": {"method": "least_squares", "cardinality": 2, "renormalize": False},
        "share has 1 entry for 2 components": {"cardinality": Explained([0.9])},
        "takes l1_bound; Explained requires": {"method": "pmd", "l1_bound": Explained(0.9)},
        r"share\[1\] must be positive and at most 1": {"cardinality": Explained([0.9, 2])},
        r"Total must be in \[2, 24\], not 1: 2 components": {"cardinality": Total(1)},
        r"must be in \[4, 24\], not 3: 2 variables included": {"cardinality": Total(3), "include": [0, 1]},
        "Total requires method 'tpower', not 'greedy'": {"cardinality": Total(6), "method": "greedy"},
        "refine=True requires": {"cardinality": 4, "renormalize": False, "refine": True},
        "variable 1 is in include and in exclude": {"cardinality": 3, "include": [1], "exclude": [1]},
        r"cardinality must be in \[4, 12\], not 3: 4 variables included": {"cardinality": 3, "include": [0,
         1, 2, 3]},
        r"\[1, 2\], not 3: 2 variables not excluded": {"cardinality": 3, "exclude": [*range(10)]},
        "leaves no variable": {"cardinality": 3, "exclude": [*range(P)]},
        "part of the group 1": {"cardinality": 3, "groups": GROUPS, "exclude": [3]},
        r"\[1, 7\], not 8: 7 groups": {"cardinality": 8, "groups": GROUPS},
        "the group 0 is in include and in exclude": {"cardinality": 3, "groups": GROUPS, "include": [0],
         "exclude": [0, 1, 2]},
        "signs has 8 entries for 12 variables": {"cardinality": 3, "nonnegative": [1] * 8},
        "signs -1, 0 and 1": {"cardinality": 3, "nonnegative": [2] * P},
        "have no names": {"cardinality": 3, "include": ["a"]},
        "groups requires strategy='forward'": {"method": "greedy", "cardinality": 3, "groups": GROUPS,
         "strategy": "gradient"},
        "generalized": {"method": "branch_and_bound", "cardinality": 3, "nonnegative": SIGNS,
         "deflation": "generalized"},
        "says what a cardinality counts; method 'gpower' takes penalty": {"method": "gpower", "penalty": 1.0,
         **SIZES},
        "says what a cardinality counts; method 'pmd' takes l1_bound": {"method": "pmd", "l1_bound": 1.5,
         "refine": True, **SIZES},
    }),
    (flat.tpower, {
        "'diagonal' needs the entries": (OPERATOR, 3, {"start": "diagonal"}),
        "symmetric": (aslinearoperator(np.triu(A)), 3, COV),
    }),
    (tpower, {
        "requires start=None": (3, {"start": V0[:, 0], "n_starts": 2}),
        r"cardinality must be in \[2, 9\], not 1: the smallest group has 2": (1, {"exclude": [7, 10, 11],
         **SIZES}),
        r"cardinality must be in \[3, 12\], not 2: 1 group included, of 3": (2, {"include": [0], **SIZES}),
    }),
    (flat.branch_and_bound, {
        "at most 12 variables, not 13": (np.eye(14), 13, {"kind": "covariance", "nonnegative": True}),
    }),
    (flat.gpower, {
        "relative=True needs the entries": (OPERATOR, 0.5, {"relative": True}),
        "semidefinite": (INDEFINITE, 0.5, COV),
    }),
    (block, {
        "leave deflation out": {"penalty": 0.1, "deflation": "orthogonal"},
        "certify=True bounds one component after another": {"penalty": 0.1, "certify": True},
        "certify must be a number, not nan": {"penalty": 0.1, "certify": np.nan},
        "mu weights the components of block=True": {"penalty": 0.1, "block": False, "mu": [1.0, 0.5]},
        "mu": {"penalty": 0.2, "mu": [1, 2, 3]},
        "block=True": {"penalty": 0.1, "groups": GROUPS},
    }),
    (pmd, {
        r"l1_bound must be in \[1, 3.4641\]": 0.99,
        r"sample_l1_bound must be in \[1, 6.32456\]": (2, {"sample_l1_bound": 7}),
        "sample_l1_bound cannot be combined": (1.5, {"sample_l1_bound": 2.0, "include": [0]}),
        "does not help pmd with these options": (2, {"sample_l1_bound": 3, "screening": "gram"}),
    }),
    (flat.scotlass, {
        r"l1_bound must be in \[1, 3.4641\]": (X, 4),
        r"earlier has shape \(3, 1\) where \(12, t\)": (X, 2, {"earlier": np.ones((3, 1))}),
        "column 0 of earlier is the zero vector": (X, 2, {"earlier": np.zeros((P, 2))}),
    }),
    (flat.pmd, {
        "sample_l1_bound needs data": (A, 2, {"kind": "covariance", "sample_l1_bound": 2}),
        "NaN or infinite": (sp.csr_array(NAN), 2),
        "column 9 of X has only NaN entries": (np.where(np.arange(P) == 9, np.nan, X), 2),
        "NaN entries": (NAN, 2, {"screening": "gram"}),
    }),
    (flat.greedy, {
        r"entr.* NaN or infinite, the first at \(3, 2\).*; replace or drop": (NAN, 3),
        "at most 2000 variables": (WIDE, 2, {"strategy": "backward"}),
        "offers only products|needs the entries": (aslinearoperator(np.eye(257)), 3, COV),
    }),
    (greedy, {
        "does not help greedy with these options": (2, {"screening": "both"}),
        "first is for": (2, {"first": 0, "strategy": "backward"}),
        "first": (2, {"first": P}),
        "one variable more in each step, which groups and signs do not": (2, {"groups": GROUPS}),
    }),
    (flat.dspca, {
        "either cardinality or penalty": X,
        "positive semidefinite": (INDEFINITE, 1, COV),
        "leave it out with a penalty": (X, {"penalty": 1.0, **SIZES}),
    }),
    (flat.least_squares_component, {
        "require strategy='exact'": (X, 2, {"time_limit": 1.0}),
        "least_squares needs the entries of X": (OPERATOR, 2),
        "given signs of at most 12 variables, not 13": (np.eye(14) + 1, 13, {"kind": "covariance",
         "strategy": "exact", "nonnegative": True}),
    }),
    (flat.sparse_pca, {
        "n_components must be an integer, or a share": (X, 1.0, {"cardinality": 2}),
        "cardinality must be one number": (X, 0.8, {"cardinality": [2, 3]}),
        "which an operator does not provide": (OPERATOR, 0.8, {"cardinality": 2, "center": False}),
        "only products": (OPERATOR, 1, {"cardinality": 2, "certify": True}),
        "leave n_components as a share out": (X, 0.5, {"cardinality": 3, "support": "common"}),
        r"has 1 entr": (NAN, 2, {"cardinality": 3, "support": "common"}),
        "needs the entries of X; an operator": (OPERATOR, 2, {"cardinality": 3, "support": "common"}),
    }),
    (spcacore.optimality_bound, {
        "only products": (OPERATOR, 2),
        "positive semidefinite": (INDEFINITE, 1, COV),
        "cardinality has 3 entries for 2": (X, [3, 4, 5], {"n_components": 2}),
        r"cardinality\[1\] must be": (X, [3, 14], {"n_components": 2}),
    }),
    (common, {
        "support='common' finds all.*leave deflation out": {"constraint": "orthogonal"},
        "same variables.*leave signs out": {"nonnegative": True},
        "requires method 'tpower' or 'branch_and_bound', not 'greedy'": {"method": "greedy"},
        "n_starts cannot be combined with support='common'": {"n_starts": 3},
        "swaps cannot be combined with": {"swaps": True},
        "cardinality must be one number": {"cardinality": [3, 4]},
        "2 components on 1 common variable": {"cardinality": 1},
        "2 components on 1 common": {"cardinality": 1, "groups": np.arange(P)},
        "one set for all components": {"cardinality": Total(6)},
        "leave Explained out": {"cardinality": Explained(0.9)},
    }),
    (disjoint, {
        "leave include out": {"include": [0]},
        "leave refine out": {"refine": True},
        "leave renormalize out": {"renormalize": False},
        "leave screening out": {"screening": "shadow"},
        "certify='jointly'": {"certify": True},
        "requires method 'tpower', not": {"method": "branch_and_bound"},
        "disjoint supports of 16 variables in all: X has 12": {"cardinality": 8},
        "8 groups in all: X has 7 groups": {"cardinality": 4, "groups": GROUPS},
        r"must be in \[2, 12\], not 14": {"cardinality": Total(14)},
    }),
    (flat.refine, {
        "column 1 of loadings is zero": (X, V0 * [1, 0]),
        "11 rows for 12": (X, V0[1:]),
        "signs": (X, V0, {"constraint": "orthogonal", "nonnegative": True}),
        "nonzeros for variables in exclude": (X, V0, {"exclude": [0]}),
    }),
    (flat.spca, {
        "says what a cardinality counts; leave it out with a penalty": (X, 1, {"penalty": 1.0, **SIZES}),
        "either penalty or cardinality": (X, 2, 2, {"penalty": 1}),
        r"penalty\[1\]": (X, 2, {"penalty": [1, np.nan]}),
        "3 entries for 2 components": (X, 2, {"penalty": [1, 2, 3]}),
        r"cardinality\[1\]": (X, 2, [3, 13]),
        "no variance": (np.zeros((4, 3)), 1, {"penalty": 1}),
        "X has no variance": (aslinearoperator(np.zeros((N, P))), R, 3, {"ridge": 1.0, "refine": False}),
        "semidefinite": (INDEFINITE, 1, {"penalty": 0.1, "kind": "covariance"}),
        "ridge must be given": (OPERATOR, 2, {"penalty": 1}),
    }),
    (flat.soppca, {
        r"cardinality must be in \[1, 6\], not 7: 6 groups not excluded": (X, 1, 7, {"exclude": [0, 1, 2],
         "groups": GROUPS}),
        "orthogonal to the earlier": (X[:, :3], 2, [3, 1], {"deflation": "constrained"}),
        "deflation": (X, 2, 3, {"deflation": "joint"}),
        "signs need a diagonal prior": (X, 2, 3, {"nonnegative": True, "prior_precision": np.eye(P) + 1}),
        "signs cannot be combined with": (X, 2, 3, {"nonnegative": True, "deflation": "constrained"}),
    }),
    (elastic_nets, {
        r"\(12, 2\) is needed": (X, 2, {"start": np.eye(3), "penalty": 1}),
        "linearly independent": (X, 2, {"start": np.ones((P, 2)), "penalty": 1}),
    }),
    (spcacore.sca, {
        "not for a covariance": (I4, 2, {"kind": "covariance", "scale": "degree"}),
        "scale='degree' cannot be combined with sample_weight": (COUNTS, 2, {"scale": "degree",
         "sample_weight": ONE}),
        r"start has shape \(12, 3\)": (X, 2, {"start": np.ones((P, 3))}),
        "column of zeros": (X, 2, {"start": V0 * [1, 0]}),
        "directions": (X, 2, {"start": np.ones((P, 2))}),
    }),
    *((rotated, {
        "nonnegative entries, and X has -1": (NEGATIVE, 2, DEGREE),
        "nonnegative": (sp.csc_array(NEGATIVE), 2, DEGREE),
        r"NaN.*\(3, 2\)": (NAN, 2, DEGREE),
        "exceed the number range": (np.full((5, 5), 1e308), 2, DEGREE),
        "sums of X exceed": (np.vstack([np.full(5, 1e308), np.eye(4, 5)]), 2, DEGREE),
        "column sums of X exceed": (np.column_stack([np.full(5, 1e308), np.eye(5)]), 2, DEGREE),
        "zeros": (np.zeros((5, 4)), 2, DEGREE),
        "no variance": (np.ones((5, 4)), 2, {"scale": "degree", "center": True}),
        "an operator": (OPERATOR, 2, DEGREE),
        "X has no variance|no variance": (sp.csr_array((5, 4)), 2),
        r"l1_bound must be in \[.*, 4.8|\[.*, 6.9": (X, 2, {"l1_bound": 7.0}),
    }) for rotated in (spcacore.sca, spcacore.sma)),
    (spcacore.select_prior, {
        "priors is empty": (X, spcacore.oppca, {}, {}),
        "priors must be a mapping": (X, spcacore.oppca, [I12]),
        r"priors\['a'\] must be None or Prior\(...\)": (X, spcacore.oppca, {"a": I12}, {}),
    }),
    (spcacore.ppca, {
        "single sample": (X[:1], 1),
        "no variance": (ONES, 2),
        "rank 11": (np.column_stack([X[:, 1:], X[:, 1]]), 12),
        "n_samples": (X, 2, {"n_samples": 40}),
        "semidefinite": (INDEFINITE, 2, COV),
        "rank 2": (np.diag([1.0, 0, 2]), 3, COV),
        "only NaN entries": (np.full((6, 3), np.nan), 2),
        "rank 1": (np.array([[1, np.nan, 2], [np.nan, 1.0, 3]]), 2),
        "fewer than 2 samples with observed entries": (np.where(np.arange(N)[:, None] == 3, X, np.nan), 1,
         {"center": False}),
        "too few entries": (np.where(np.add.outer(np.arange(N), np.arange(4)) % 5, RANK_TWO, np.nan), 2),
    }),
    (spcacore.kernel_pca, {
        r"the first at \(3, 2\)": (NAN, 2, {"random_features": 9}),
        "single sample": (X[:1], 2),
        "no variance: all rows are equal": (ONES, 2),
        "no variance": (ONES, 2, {"bandwidth": 1.0}),
        "must be symmetric": (LOPSIDED, 2, {"kernel": "precomputed"}),
        "no pre-images": (X @ X.T, 2, {"kernel": "precomputed", "ridge": 1.0}),
        "dense": (sp.csr_array(X @ X.T), 2, {"kernel": "precomputed"}),
    }),
    (kernel, {
        r"n_components must be in \[1, 39\]": 40,
        r"n_components must be in \[1, 9\]": (10, {"random_features": 9}),
        "13; the .* has only 12": (13, {"kernel": "linear"}),
        "bandwidth is too small": (2, {"bandwidth": 1e-200}),
        r"'rbf' takes no gamma; bandwidth is \(2 gamma\)": (2, {"gamma": 0.1}),
        "'rbf' takes no degree": (2, {"degree": 3}),
        "'linear' takes no bandwidth": (2, {"kernel": "linear", "bandwidth": 1.0}),
        "a callable kernel takes no bandwidth": (2, {"kernel": gaussian, "bandwidth": 1.0}),
        "beyond the number range": (2, {"kernel": "polynomial", "degree": 400}),
        r"kernel\(A, B\) has .* NaN": (2, {"kernel": lambda A, B: A @ B.T * np.nan}),
        r"kernel\(A, B\) has shape \(40, 12\)": (2, {"kernel": lambda A, B: A}),
        "a kernel must be symm": (2, {"kernel": lambda A, B: A @ np.triu(np.ones((P, P))) @ B.T}),
        "must be square": (2, {"kernel": "precomputed"}),
        "matrix has 12800 bytes, .* is 100: use random_features": (2, {"memory_limit": 100}),
        "matrix has 12800 bytes, .* is 99: raise it": (2, {"memory_limit": 99, "kernel": "linear"}),
    }),
    (features, {
        "bandwidth is too small": {"bandwidth": 5e-324},
        "ridge needs the kernel matrix": {"ridge": 1.0},
        "solver needs the kernel matrix": {"solver": "lanczos"},
        "memory_limit needs the kernel matrix": {"memory_limit": 9},
        "'rbf' alone": {"kernel": "linear"},
    }),
    (spcacore.random_fourier_features, {
        "bandwidth is needed": (5, 9),
        "X must be at least 1": (0, 9, {"bandwidth": 1.0}),
    }),
    (spcacore.sparse_kmeans, {
        r"l1_bound.* must be in \[1, 3.46": (X, 3, 0.99),
        "n_clusters": (X, N + 1, 1.5),
        "number range of float64": (1e-170 * X, 3, 1.5),
        "no variance": (ONES, 2, 1.5),
    }),
    *((gap, {"no variance": given}) for gap, given in (
        (spcacore.sparse_dissimilarity_gap, (ONES, [1.5])), (spcacore.sparse_kmeans_gap, (ONES, 2, [1.5]))
    )),
    (spcacore.sparse_dissimilarity, {
        "at least two rows": (X[:1], 1.5),
        "number range of float64": (1e300 * X, 1.5),
        "no variance": (ONES, 1.5),
        r"l1_bound.* must be in \[1, 3.46": (X, 99),
        "2.. whose sums are beyond the number range of float64": (np.full((780, 12), 1e307), 1.5,
         "precomputed"),
    }),
    (flat.sparse_cca, {
        "same number of rows, not 40 and 8": (X, Y[:8], {"l1_bound": 1.5}),
        "same number of rows, not 40 and 39": (X, X[1:], {"l1_bound": 1.2, "sample_weight": ONE}),
        "at least two rows": (X[:1], Y[:1], {"l1_bound": 1.5}),
    }),
    *((partial(function, **options), {
        "39 entries for 40": {"sample_weight": ONE[1:]},
        "must not be negative": {"sample_weight": -ONE},
        "only zeros": {"sample_weight": 0 * ONE},
    }) for function, options in ((flat.sparse_cca, {"X": X, "Y": X, "l1_bound": 1.2}),
                                 (flat.sparse_lda, {"X": X, "y": LABELS, "cardinality": 2}))),
    (partial(tpower.func, A, 3, kind="covariance"), {
        "sample_weight is for data": {"sample_weight": ONE[:P]},
        "a vector for center is for data": {"center": ONE[:P]},
    }),
    *((partial(function, X=NAN), {"X has NaN entries, which cannot": {option: ONE[:n]}})
      for function in (partial(flat.pmd, l1_bound=1.5), partial(spcacore.ppca, n_components=1))
      for option, n in (("sample_weight", N), ("center", P), ("scale", P))),
    (pairs, {
        r"l1_bound of X must be in \[1, 3.4641\]": {"l1_bound": 0.9},
        r"l1_bound of Y must be in \[1, 2.23607\]": {"l1_bound": (2.0, 2.3)},
        "ridge requires method='generalized'": {"l1_bound": 1.5, "ridge": 0.1},
        "certify=True requires method='generalized'": {"l1_bound": 1.2, "certify": True},
        r"n_components must be in \[1, 5\]": (6, {"l1_bound": 1.5}),
        "generalized": {"l1_bound": 1.5, "deflation": "generalized"},
        "deflation": {"l1_bound": 1.5, "deflation": "naive"},
        "count='variables' says what a cardinality counts; 'pmd' takes": {"l1_bound": 1.5,
         "x_groups": GROUPS, "x_count": "variables"},
    }),
    (general, {
        r"cardinality of Y must be in \[1, 5\]": {"cardinality": (2, 6)},
        "variable 1 is in include of X and in exclude": {"cardinality": 2, "x_include": [1],
         "x_exclude": [1]},
        "include of Y has the index 5": {"cardinality": 2, "y_include": [5]},
        "signs of Y has 2 entries for 5 variables": {"cardinality": 2, "y_nonnegative": [1, 1]},
        r"cardinality of X must be in \[1, 7\], not 8: 7 groups": {"cardinality": (8, 2), "x_groups": GROUPS},
        r"cardinality of Y must be in \[3, 5\], not 2: 3 variables included": {"cardinality": 2,
         "y_include": [0, 1, 2]},
        "signs of X cannot be combined with": {"cardinality": 2, "x_nonnegative": True,
         "deflation": "generalized"},
    }),
    (eigen, {
        "B must be square": (I4, I4[:3]),
        "of one size": (I4, np.eye(3)),
        "B must be positive semidefinite; it has a negative diag": (I4, np.diag([1.0, 2, 3, -1])),
        "semidefinite": (I4, 2 * np.ones((4, 4)) - I4 - np.diag([0, 0, 0, 0.5])),
        "a row with diagonal entry 0 is not zero": (A, HOLLOW),
        "no bound": (I4, 0 * I4),
        "B is zero": (0 * I4, 0 * I4),
        "on the variables 3: the ratio has no bound; add to the diagonal": (I4, NULL),
        "on the variables 0, 3: the ratio": (I4, DEPENDENT),
        "at most 1000 variables": (np.eye(1001), np.eye(1001), {"strategy": "backward"}),
        "signs cannot be combined": (I4, I4, {"choice": Choice(signs=1), "deflation": "generalized"}),
        "3 variables included": (I4, I4, {"choice": Choice(include=[0, 1, 2])}),
    }),
    (classes, {
        r"y has one class only, 0\.0;": (X, np.zeros(N)),
        "n_components must be at most classes - 1 = 2, not 3": (X, LABELS, 3),
        "labels that are missing, the first at 2": (X, np.where(LABELS > 1, np.nan, LABELS)),
        "labels that are missing": (X, np.array([None, "a", "b", "c"] * 10, object)),
        "labels that are missing, the first at 0": (X, np.array(["NaT", "2020-01-01"] * 20, "datetime64[D]")),
        "no scatter within classes": (X[LABELS], LABELS, {"shrinkage": 0.5}),
        "cannot be sorted": (X, np.array([1, "a"] * 20, object)),
        "y has 5 labels for 40 rows": (X, LABELS[:5]),
        "y must have 1 dimension": (X, X),
        "scatter within classes.*on the variables 2.*use shrinkage": (np.where(np.arange(P) == 2, LABELS[:,
         None], X), LABELS, {"shrinkage": None}),
        "priors has 2 entries for 3 classes": (X, LABELS, {"priors": [0.5, 0.5]}),
        "priors must be positive with sum 1": (X, LABELS, {"priors": [0.5, 0.6, -0.1]}),
    }),
    (spcacore.explained_variance, {
        "does not provide": (OPERATOR, V0, {"ratio": True}),
        "positive total variance": (np.ones((N, P)), V0, {"ratio": True}),
    }),
    (spcacore.compare, {
        r"results\['loadings 2'\]: loadings have 8 rows for 12": ([V0, np.eye(8)], X),
        "NaN": ([types.SimpleNamespace(loadings=np.full((P, 1), np.nan))], X),
    }),
    (stable, {
        "resampling must be one of": (TWO, {"resampling": "jackknife"}),
        "alignment must be one of": (TWO, {"alignment": "none"}),
        "n_resamples must be at least 2": (TWO, {"n_resamples": 1}),
        "must be even": (TWO, {"n_resamples": 7}),
        "threshold must be positive": (TWO, {"threshold": 0.0}),
        r"threshold must be positive and at most 1": (TWO, {"threshold": 1.1}),
        "max_false must be positive": (TWO, {"max_false": 0}),
        "assumption must be one of": (TWO, {"assumption": "normal"}),
        "assumption='unimodal' is for complementary pairs": (TWO, {"assumption": "unimodal",
         "resampling": "half"}),
        "level must be positive and below 1": (TWO, {"level": 1.0}),
        "Y is for": (TWO, Y),
        "warm_start must be True or False": (TWO, {"warm_start": 1}),
        "n_jobs": (TWO, {"n_jobs": 0}),
        "certify cannot be used": pca(2, 4, certify=True),
        "a covariance has no rows": pca(2, 4, kind="covariance"),
        "needs Y, the other side": partial(spcacore.sparse_cca, l1_bound=2.0),
        "needs Y, the labels": partial(spcacore.sparse_lda, cardinality=2),
        "warm_start=True is for": (partial(spcacore.soppca, cardinality=2), {"warm_start": True}),
        r"n_components must be in \[1, 20\]|n_components must be in \[1, 12\]": pca(21, 4),
        "n_components must be an integer": pca(0.5, 4),
        "needs penalty": pca(2, method=GPower()),
        "four rows of each class": (partial(spcacore.sparse_lda, cardinality=2), np.arange(N) > 37),
        "one label for each": (partial(spcacore.sparse_lda, cardinality=2), np.zeros(39)),
    }),
    (spcacore.stability, {
        "NaN": (NAN, TWO),
        "operator": (lambda v: v, TWO),
        "four rows": (X[:3], pca(1)),
    }),
    (path, {
        r"cardinality must be in \[1, 12\]": (pca(), [2, 13]),
        "takes cardinality, not l1_bound": (pca(), {"l1_bound": [2]}, {}),
        "grid must be given": pca(method="gpower"),
        "sample_weight of the model cannot be used here": (pca(sample_weight=ONE), [2, 3]),
        "at least 0, not nan": (pca(method="gpower"), [np.nan]),
    }),
    (spcacore.select_sparsity, {
        "column 3 of X has entries other than NaN in one fold": (np.where((np.arange(P) == 3) &
         (np.arange(N)[:, None] > 0), np.nan, X), pca(method="pmd"), [1.5]),
        "for a covariance, use 'sparseness'": (A, pca(kind="covariance")),
        "at least three rows": (X[:2], pca(), {"n_folds": 2}),
        "at most 2, the rows outside of a fold, not 5": (X[:5], pca(5), [2], {"n_folds": 2}),
        "X must have entries for criterion='cv'": (OPERATOR, pca(), [2]),
        "needs the entries of X": (OPERATOR, pca(center=False), [2], {"criterion": "sparseness"}),
        "must have entries": (OPERATOR, pca(center=False), [2], {"criterion": "bic"}),
        "the number of samples behind": (A, pca(kind="covariance"), [1], {"criterion": "bic"}),
        "needs data": (A, pca(kind="covariance"), [1], {"criterion": "stability"}),
        "four rows": (X[:3], pca(), [1], {"criterion": "stability"}),
    }),
    (select, {
        r"model must be .*, as in partial\(\w+, n_components=2\), or an estimator, not": (3, [2]),
        "number of rows, 40, not 41": (pca(), {"n_folds": 41}),
        "a third of the number of rows, 13, not 14": (pca(), {"criterion": "correlation", "n_folds": 14}),
        "must be even": (pca(), [1], {"criterion": "stability", "n_resamples": 3}),
        "not ppca, which is not for select_sparsity": spcacore.ppca,
        "takes l1_bound": (spcacore.sca, {"cardinality": [2]}, {}),
        "the values of one parameter": (spcacore.spca, {"cardinality": [2], "penalty": [1.0]}, {}),
        "penalty of the model must be left out": (partial(spcacore.spca, penalty=1.0), [2]),
        "chooses rows too": (spcacore.sma, [2.0], {"criterion": "stability"}),
        "must be True or False": (partial(spcacore.sca, scale="degree"), [2.0]),
        "needs data": (partial(spcacore.sca, kind="covariance"), [2.0]),
        "kind must be": (partial(spcacore.sca, kind="covariance"), [2.0], {"criterion": "bic"}),
        "grid has 1 grid for 2 components": (TWO, [[1, 2]]),
        r"grid\[1\] is empty": (TWO, [[1, 2], []]),
        r"grid\[1\] must be a sequence of numbers": (TWO, [[1, 2], 3]),
        r"grid\[1\] has a value twice: 2": (TWO, [[1, 2], [2, 2]]),
        r"grid\['cardinality'\]\[1\] has a value twice": (TWO, {"cardinality": [[1, 2], [2, 2]]}, {}),
        r"cardinality\[1\] must be in \[1, 12\]": (TWO, [[1, 2], [2, 99]]),
        r"cardinality\[1\]\[1\]": (partial(spcacore.spca, n_components=2), [[1, 2], [2, 99]]),
        r"grid\[1\]\[0\]": (TWO, [[1, 2], [0, 2]]),
        "cardinality of the model must be left out": (pca(2, 3), [[1], [2]]),
        "support='common'": (pca(2, support="common"), [[1], [2]]),
        "of all components together": (partial(spcacore.sca, n_components=2), [[2, 3], [2]]),
        "grid must have the values of one parameter": (TWO, {}, {}),
    }),
    (count, {
        "needs penalty": pca(2, method=GPower()),
        "n_components must be given": spcacore.sparse_pca,
        "n_components must be an integer": pca(0.5, 2),
        "refine=True finds all components together": pca(2, 2, refine=True),
        "block=True finds all components together": pca(2, method=GPower(penalty=0.3, block=True)),
        "support='common' finds all components together": pca(2, 3, support="common"),
        "support='disjoint' finds all components together": pca(2, 2, support="disjoint"),
        "Total finds all components together": pca(2, spcacore.Total(5)),
        "criterion must be one of 'cv', 'permutation'": (pca(2, 2), {"criterion": "sparseness"}),
    }),
    (flat.oppca, {
        "singular": (X, 2, {"prior_covariance": np.ones((P, P))}),
        "positive semidefinite and not zero": (X, 2, {"prior_covariance": I12 - 2 * np.diag(np.eye(P)[0])}),
        "shape": (X, 2, {"prior_covariance": np.eye(3)}),
        "not both": (X, 2, {"prior_covariance": I12, "prior_precision": I12}),
        "semidefinite": (X, 2, {"prior_precision": sp.csr_array(-I12)}),
        "zero": (X, 2, {"prior_precision": sp.csr_array((P, P))}),
        "single sample": (X[:1], 1),
        "no variance": (np.ones((5, P)), 2),
        "rank 1": (np.outer(X[:, 0], X[0]), 2),
        "n_samples": (X, 2, {"n_samples": 60}),
        "n_samples|covariance": (A, 2, COV),
        "deflation": (X, 2, {"deflation": "constrained"}),
        "n_components cannot be None": (X, None, {"deflation": "joint"}),
        "X has rank 12 at most, so n_components must be below": (X, 12, {"deflation": "joint"}),
    }),
    (values, {
        "kind must be one of": (COUNTS, {"kind": "sparse"}),
        "scale must be one of": (COUNTS, {"scale": True}),
        "share must be positive and below 1": (COUNTS, {"share": 1.0}),
        "level must be positive": (COUNTS, {"level": 0}),
        "n_splits must be at least 1": (COUNTS, {"n_splits": 0}),
        "noise is for kind='normal'": (COUNTS, {"noise": 1.0}),
        "noise must be positive": (X, {"kind": "normal", "noise": 0.0}),
        "no noise": (np.ones((4, 4)), {"kind": "normal"}),
        "for counts and graphs": (X, {"kind": "normal", "scale": "degree"}),
        r"n_components must be in \[1, 3\]": (np.ones((4, 4)), {"n_components": 4}),
        "X must have counts": -COUNTS,
        "must have counts": X,
        "NaN": NAN,
        "2\\^53": np.full((4, 4), 2.0**60),
        "only zeros": np.zeros((4, 4)),
        "two columns": np.ones((4, 1)),
        "must be square": (ONES, {"kind": "graph"}),
        "must be symmetric": (np.triu(np.ones((4, 4))), {"kind": "graph"}),
        "dense X": (sp.eye_array(4), {"kind": "normal"}),
        "operator": lambda v: v,
        "in blocks of rows": spcacore.row_blocks(COUNTS),
    }),
]  # fmt: skip

REFUSED = [  # the words, and the call
    *[(words, partial(called, function, given)) for function, each in TABLE for words, given in each.items()],
    (r"empty: shape \(0, 12\)", lambda: tpower.func(aslinearoperator(np.empty((0, P))), 3)),
    ("all components at once", lambda: block(penalty=0.2).extend(X, 1)),
    ("either cardinality or penalty", lambda: flat.dspca(X, 2, penalty=1.0)),
    ("of must be one of", lambda: sparse(cardinality=Explained(0.9, "scores"))),
    ("chosen together: call sparse_pca", lambda: sparse(cardinality=3, support="disjoint").extend(X, 1)),
    ("must not be below the 4 nonzeros", lambda: flat.refine(X, sparse(cardinality=4).loadings, 2)),
    ("center and scale must be True or False", lambda: spcacore.select_sparsity(
        X, partial(spcacore.spca, n_components=1, center=np.zeros(P)), [2, 3])),
    ("no orthogonal loadings of these cardinalities",
     lambda: flat.refine(X, np.eye(P)[:, [0, 0]], 1, constraint="orthogonal", include=[0])),
    ("include requires strategy='forward'", lambda: greedy.func(X, 3, include=[0], strategy="backward")),
    (r"cardinality must be in \[1, 7\], not 8: 7 groups", lambda: flat.optimality_bound(X, 8, groups=GROUPS)),
    ("at least as many rows", lambda: spcacore.prs(np.ones((2, 3)), 2.0)),
    ("fit anew", lambda: flat.oppca(X, 2, deflation="joint").extend(X, 1)),
    ("cardinality", lambda: flat.oppca(X, 2).extend(X, 1, cardinality=3)),
    ("shape", lambda: flat.oppca(X, 2).extend(X[:5], 1)),
    ("cardinality must be given", lambda: flat.soppca(X, 2, [3, 4]).extend(X, 1)),
    ("n_samples", lambda: spcacore.ppca(A, 2, kind="covariance", ddof=0)),
    ("shape", lambda: spcacore.ppca(X, 2).score_samples(X[:, :3])),
    ("infinite", lambda: spcacore.ppca(X, 2).impute(np.where(X[0, 0] == X, np.inf, X))),
    ("semidefinite", lambda: flat.oppca(np.ones((5, 1500)) * X[:5, :1], 1,
     prior_precision=sp.diags_array(SIGNED).tocsr())),
    ("no variance", lambda: spcacore.kernel_pca(ONES, 2, bandwidth=1.0, random_features=9)),
    ("no variance", lambda: spcacore.kernel_pca(np.zeros((5, 5)), 2, kernel="precomputed")),
    ("ridge=", lambda: kernel(2).inverse_transform(X[:, :2])),
    ("ridge=", lambda: features().inverse_transform(X[:, :2])),
    ("scores have 12 columns for 2", lambda: kernel(2, ridge=1.0).inverse_transform(X)),
    (r"where \(n, 12\) is needed", lambda: kernel(2).transform(X[:, :3])),
    (r"where \(n, 12\) is needed", lambda: features().transform(X[:, :3])),
    ("one of the two", lambda: kernel(2, random_features=features().features, bandwidth=1.0)),
    (r"where \(n, 12\)", lambda: spcacore.kernel_pca(X[:, :3], 2, random_features=features().features)),
    *(("number range of float32", partial(spcacore.sparse_dissimilarity, *given)) for given in (
        ((1e25 * X).astype(np.float32), 1.5),
        (np.full((1, 12), 3e38, np.float32), 1.5, "precomputed"),
    )),
    (r"l1_bounds\[1\] of X must be in", lambda: spcacore.sparse_cca_permutation(X, Y, [1.5, 9])),
    ("cardinality of Y must be", lambda: spcacore.sparse_cca_bound(X, Y, (2, 6))),
    ("semidefinite", lambda: eigen(A, MIXED)),
    ("on the variables 0, 3: the ratio", lambda: eigen(I4, DEPENDENT, strategy="rough")),
    ("labels that are missing", lambda: classes(X, optional("pandas").Series([None, "a"] * 20,
     dtype="string"))),
    ("no scatter within classes", lambda: classes(sp.csr_array(X[LABELS]), LABELS)),
    ("X has shape", lambda: classes(X, LABELS).predict(X[:, :4])),
    ("y has shape", lambda: classes(X, LABELS).score(X, LABELS[:3])),
    ("NaN", lambda: classes(X, LABELS).predict(NAN)),
    ("an operator, returned NaN or infinity", lambda: FIT.transform(aslinearoperator(NAN))),
    ("share has 3 entries for 1 component", lambda: FIT.extend(X, 1, Explained([0.9] * 3))),
    ("12 columns for 2 components", lambda: FIT.reconstruct(X)),
    (r"\(40, 11\) where \(m, 12\) is needed", lambda: FIT.transform(spcacore.row_blocks(X[:, :-1]))),
    ("of data does not exist", lambda: spcacore.deflate(X, V0[:, 0], "hotelling", kind="data")),
    (r"results\['loadings'\]", lambda: spcacore.compare([object()], X)),
    (r"results\['sca'\] is of data scaled by degrees", lambda: spcacore.compare([spcacore.sca(COUNTS, 1,
     scale="degree")], X)),
    (r"results\['tpower'\]: loadings must have the labels of the variables",
     lambda: spcacore.compare([spcacore.sparse_pca(Columns(X, "abcdefghijkz"), 1, 2)], Columns(X,
     "lkjihgfedcba"))),
    ("do not fit into 12", lambda: spcacore.datasets.make_spiked(9, P, cardinality=P)),
    ("at least the noise, 1", lambda: spcacore.datasets.make_spiked(9, P, cardinality=2, variances=[3.0,
     0.5])),
    ("float32 or float64, not int32", lambda: spcacore.datasets.make_spiked(9, P, cardinality=2,
     dtype=np.int32)),
    ("no bound", lambda: stable(pca(1, 3), resampling="bootstrap", n_resamples=3).false_selections(0.9)),
    ("above 1/2", lambda: stable(pca(1, 3), n_resamples=2).false_selections(0.5)),
    ("has no shape", lambda: spcacore.sparsity_path(lambda v: v, pca(kind="covariance"))),
    ("unexpected keyword argument .strategy", lambda: path(pca(strategy="x"))),
    ("which a covariance does not have", lambda: spcacore.select_n_components(A, pca(2, 2,
     kind="covariance"))),
]  # fmt: skip
FIT = spcacore.sparse_pca(X, R, cardinality=3)


@pytest.mark.parametrize(("words", "call"), REFUSED, ids=[f"{i}" for i in range(len(REFUSED))])
def test_refused_because_of_the_rest(words, call):
    before = X.tobytes(), A.tobytes(), V0.tobytes()
    with pytest.raises((TypeError, ValueError), match=words):
        call()
    assert (X.tobytes(), A.tobytes(), V0.tobytes()) == before
