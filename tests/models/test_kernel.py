"""kernel_pca and random_fourier_features against scikit-learn, LAPACK and closed forms."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg
import scipy.stats
from extras import optional
from hypothesis import strategies as st
from in_turn import SEEDS, each_dtype, of_examples
from kernel_tools import NEW, TRAIN, gaussian, matched, samples
from numpy.testing import assert_allclose, assert_array_equal
from oracles import normal
from scipy.spatial.distance import pdist

from spcacore import kernel_pca
from spcacore.linalg import eigen
from spcacore.models import kernel_matrix

PCA = optional("sklearn.decomposition", "PCA")
KernelPCA = optional("sklearn.decomposition", "KernelPCA")
laplacian_kernel = optional("sklearn.metrics.pairwise", "laplacian_kernel")


# ours, and the same for scikit-learn
KERNELS = {
    "linear": ({}, {}),
    "polynomial": ({"degree": 4, "gamma": 0.1, "coef0": 0.5}, {"kernel": "poly"}),
    "rbf": ({"bandwidth": 3.0}, {"gamma": 1 / 18, "bandwidth": None}),
    "sigmoid": ({"gamma": 0.01, "coef0": 0.2}, {}),
}
WAYS = {
    "lapack": ({"solver": "lapack"}, 1e-11),
    "lanczos": ({"solver": "lanczos"}, 1e-8),
}


def theirs(kernel, r, **more):
    ours, change = KERNELS[kernel]
    options = {
        name: value for name, value in {"kernel": kernel, **ours, **change}.items() if value is not None
    }
    return KernelPCA(r, eigen_solver="dense", **options, **more).fit(TRAIN)


# ---- scikit-learn ---------------------------------------------------------------------------------------


@pytest.mark.share(3)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_scores_and_transform_are_those_of_scikit_learn(kernel, way):
    options, rtol = WAYS[way]
    reference = theirs(kernel, 4)
    ours = kernel_pca(TRAIN, 4, kernel=kernel, **KERNELS[kernel][0], **options)
    expected = reference.transform(TRAIN)
    atol = rtol * np.abs(expected).max()
    sign = np.sign((ours.scores * expected).sum(axis=0))
    assert_allclose(ours.scores * sign, expected, atol=atol)
    assert_allclose(ours.transform(NEW) * sign, reference.transform(NEW), atol=atol)
    assert_allclose(ours.transform(TRAIN), ours.scores, atol=10 * atol)
    assert_allclose(ours.eigenvalues, reference.eigenvalues_, rtol=1e-12)
    assert_allclose((ours.scores**2).sum(axis=0), ours.eigenvalues, rtol=1e-12)
    assert_allclose(ours.scores.var(axis=0, ddof=1), ours.explained_variance, rtol=1e-12)
    assert ours.solver == ("lapack" if way == "lapack" else "lanczos")
    largest = ours.scores[np.abs(ours.scores).argmax(axis=0), np.arange(4)]
    assert (largest > 0).all()


@pytest.mark.parametrize("kernel", KERNELS)
def test_pre_images_are_those_of_scikit_learn(kernel):
    reference = theirs(kernel, 4, fit_inverse_transform=True, alpha=0.1)
    ours = kernel_pca(TRAIN, 4, kernel=kernel, ridge=0.1, **KERNELS[kernel][0])
    new = reference.transform(NEW)
    sign = np.sign((ours.scores * reference.transform(TRAIN)).sum(axis=0))
    assert_allclose(ours.inverse_transform(new * sign), reference.inverse_transform(new), atol=1e-9)


def test_defaults_of_gamma_degree_and_coef0_are_those_of_scikit_learn():
    for kernel, name in (("polynomial", "poly"), ("sigmoid", "sigmoid")):
        expected = KernelPCA(3, kernel=name, eigen_solver="dense").fit_transform(TRAIN)
        ours = kernel_pca(TRAIN, 3, kernel=kernel)
        assert_allclose(matched(ours.scores, expected), expected, atol=1e-10)


def test_precomputed_and_callable():
    def laplacian(A, B):
        return laplacian_kernel(A, B, 0.02)

    reference = KernelPCA(5, kernel="precomputed", eigen_solver="dense").fit(laplacian(TRAIN, TRAIN))
    expected, new = (reference.transform(laplacian(rows, TRAIN)) for rows in (TRAIN, NEW))
    for ours, rows in (
        (kernel_pca(TRAIN, 5, kernel=laplacian), NEW),
        (kernel_pca(laplacian(TRAIN, TRAIN), 5, kernel="precomputed"), laplacian(NEW, TRAIN)),
    ):
        sign = np.sign((ours.scores * expected).sum(axis=0))
        assert_allclose(ours.scores * sign, expected, atol=1e-8)
        assert_allclose(ours.transform(rows) * sign, new, atol=1e-8)
    assert kernel_pca(TRAIN[:50], 2, kernel=laplacian).kernel == "laplacian"


# ---- closed forms ---------------------------------------------------------------------------------------


@of_examples(20, seed=SEEDS, bandwidth=st.floats(0.3, 30.0))
def test_double_centring_and_the_sign_in_the_exponent(seed, bandwidth):
    """HKH formed outright; all of its components give back the matrix."""
    X = samples(seed, n=15)
    K = gaussian(X, X, bandwidth)
    H = np.eye(15) - 1 / 15
    ours = kernel_pca(X, 3, bandwidth=bandwidth)
    values = scipy.linalg.eigvalsh(H @ K @ H)[::-1]
    assert_allclose(ours.eigenvalues, values[:3], rtol=1e-8)
    assert_allclose(H @ K @ H @ ours.scores, ours.scores * ours.eigenvalues, atol=1e-10)
    assert_allclose(ours.explained_variance_ratio, values[:3] / values.sum(), rtol=1e-8)
    assert_allclose(ours.scores.sum(axis=0), 0, atol=1e-10)
    if bandwidth < 2:
        every = kernel_pca(X, 14, bandwidth=bandwidth)
        assert_allclose(every.scores @ every.scores.T, H @ K @ H, atol=1e-10)
        assert (every.eigenvalues > 0).all()


def test_far_rows_lie_where_the_kernel_is_zero():
    """The kernel falls with distance, so that rows far away all have the scores of k = 0."""
    X = samples(0)
    ours = kernel_pca(X, 3, bandwidth=2.0)
    far = ours.transform([[1e6] * 5, [-1e8, 1e8, 0, 0, 0]])
    K = gaussian(X, X, 2.0)
    U = ours.scores / ours.eigenvalues
    assert_allclose(far, np.tile(-K.mean(axis=0) @ U, (2, 1)), atol=1e-10)


def test_a_wide_bandwidth_gives_pca_to_all_digits():
    """exp(-d) - 1 is nearly -d: the scores of PCA over the bandwidth, though K is 1 to rounding."""
    X = samples(1)
    expected = PCA(3, svd_solver="full").fit_transform(X)
    ours = kernel_pca(X, 3, bandwidth=1e7)
    assert_allclose(matched(ours.scores, expected) * 1e7, expected, atol=1e-8)
    assert_allclose(ours.transform(X), ours.scores, rtol=1e-6, atol=1e-15)


def test_the_default_bandwidth_is_the_median_distance():
    for offset in (0, 1e8):  # whose squares would leave no digit of the distances
        X = TRAIN + offset
        assert kernel_pca(X, 1).bandwidth == pytest.approx(np.median(pdist(X)), rel=1e-12)
    doubled = np.vstack([TRAIN[:20]] * 3)  # of rows that differ
    assert kernel_pca(doubled, 1).bandwidth == pytest.approx(np.median(pdist(TRAIN[:20])), rel=1e-12)
    X = samples(3, n=3000)
    sampled = [kernel_pca(X, 1, random_features=5, rng=seed).bandwidth for seed in (None, None, 1)]
    assert sampled[0] == sampled[1] != sampled[2]
    assert_allclose(sampled, np.median(pdist(X)), rtol=0.05)


# ---- how it is computed ---------------------------------------------------------------------------------


def test_lapack_takes_over_where_lanczos_does_not_converge(monkeypatch):
    """Eigenvalues of exp(-d) for far points lie within rounding of 1; two dozen lie close together here."""
    from scipy.sparse.linalg import ArpackNoConvergence

    def never(*args, **options):
        raise ArpackNoConvergence("no", np.zeros(0), np.zeros((0, 0)))

    monkeypatch.setattr(eigen, "largest_eigenpairs", never)
    ours = kernel_pca(TRAIN, 3, solver="lanczos")
    assert ours.solver == "lapack"
    assert_allclose(ours.scores, kernel_pca(TRAIN, 3, solver="lapack").scores, atol=1e-10)


@each_dtype
def test_tight_groups_far_apart(dtype, rng):
    """Equal rows have a kernel of 1, and no kernel exceeds 1, where squared norms are all but lost."""
    groups = (rng.standard_normal((4, 6)) * (1e4 if dtype == np.float32 else 1e8)).astype(dtype)
    X = np.repeat(groups, 5, axis=0)
    ours = kernel_pca(X, 3, bandwidth=1.0)
    assert_allclose(ours.eigenvalues, 5, rtol=1e-5 if dtype == np.float32 else 1e-12)
    kernel = kernel_matrix.Kernel("rbf", 6, bandwidth=1.0, shift=X.mean(axis=0))
    rows = kernel.rows(groups + np.linspace(0, 1, 4)[:, None].astype(dtype))
    tile = np.empty((4, 4), dtype)
    kernel.tile(rows, slice(0, 4), rows, slice(0, 4), tile)
    assert_array_equal(tile, np.eye(4) - 1)


def test_distances_in_float32_far_from_the_middle():
    """A few bandwidths apart, and ten thousand from the mean of all rows."""
    near = np.arange(40)[:, None] % 20 / 4 * np.ones(3) + np.repeat([0, 2e4], 20)[:, None]
    near = near.astype(np.float32)
    K = gaussian(near.astype(np.float64), near.astype(np.float64), 1.0)
    H = np.eye(40) - 1 / 40
    expected = scipy.linalg.eigvalsh(H @ K @ H)[::-1][:4]
    for X in (near, scipy.sparse.csr_array(near)):
        ours = kernel_pca(X, 4, bandwidth=1.0)
        assert ours.scores.dtype == np.float32
        assert_allclose(ours.eigenvalues, expected, rtol=1e-5)
        assert_allclose(ours.transform(X), ours.scores, atol=1e-5)


def test_out_of_range_is_said():
    with pytest.warns(RuntimeWarning, match="exceeds the number range"):
        huge = kernel_pca(samples(5) * 1e160, 2, kernel="linear")
    assert np.isinf(huge.eigenvalues).all()
    assert_allclose(huge.scores / 1e160, kernel_pca(samples(5), 2, kernel="linear").scores)


def test_an_indefinite_kernel_gives_its_positive_part(rng):
    U = np.linalg.qr(np.column_stack([np.ones(30), rng.standard_normal((30, 4))]))[0][:, 1:]
    K = (U * [5.0, 2.0, -7.0, -1.0]) @ U.T
    for options in ({}, {"solver": "lanczos"}):
        ours = kernel_pca(K, 2, kernel="precomputed", **options)
        assert_allclose(ours.eigenvalues, [5, 2], rtol=1e-10)
        assert ours.explained_variance_ratio is None  # a negative trace
        with pytest.raises(ValueError, match="the centered kernel matrix has only 2"):
            kernel_pca(K, 3, kernel="precomputed", **options)


@pytest.mark.parametrize("solver", ["lapack", "lanczos"])
def test_rows_that_are_all_equal(solver):
    for n, options in ((3, {"kernel": "linear"}), (600, {"bandwidth": 1.0})):
        with pytest.raises(ValueError, match="X has no variance under this kernel"):
            kernel_pca(np.ones((n, 2)), 1, solver=solver, **options)


@pytest.mark.parametrize("weight", [None, np.arange(8.0)])
def test_new_rows_of_a_kernel_far_above_its_differences(weight, rng):
    """(xy + 1)^2 has the features x^2, 2^(1/2) x and 1, whose components are scores and transform."""
    x = np.concatenate([12 + rng.standard_normal(8) / 4, [12.0, 12.1]])[:, None]
    found = kernel_pca(x[:8], 2, kernel="polynomial", degree=2, gamma=1.0, sample_weight=weight)
    features = np.hstack([x**2, np.sqrt(2) * x])
    features -= np.average(features[:8], axis=0, weights=weight)
    root = np.ones(8) if weight is None else np.sqrt(weight)
    V = scipy.linalg.svd(root[:, None] * features[:8], full_matrices=False)[2].T
    assert_allclose(np.abs(found.transform(x)), np.abs(features @ V), atol=1e-7)


# ---- bad input ------------------------------------------------------------------------------------------

X0 = samples(0)


# ---- the example ----------------------------------------------------------------------------------------


def test_a_kernel_beyond_the_numbers_is_an_error_and_no_warning():
    model = kernel_pca(X0 / 10, 1, kernel="polynomial", degree=3)
    with pytest.raises(ValueError, match="between X and the samples is beyond the number range"):
        model.transform(1e150 * X0)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@each_dtype
@pytest.mark.parametrize("offset", [0.0, 1e7, 2.0**26])
def test_sparse_rows_far_from_zero(offset, dtype, kernel):
    """Distances of rows do not depend on where they are: entries are those of the same grid."""
    X = (8 * normal(0, 30, 5)).round()
    far, options = (X + offset).astype(dtype), {"bandwidth": 9.0} if kernel == "rbf" else {}
    expected = kernel_pca(far.astype(np.float64) - offset, 2, kernel=kernel, **options)
    found = kernel_pca(scipy.sparse.csr_array(far), 2, kernel=kernel, **options)
    tight = 1e-9 if dtype == np.float64 else 1e-4
    size = np.abs(expected.scores).max()
    assert_allclose(found.scores, expected.scores, atol=tight * size)
    again = found.transform(scipy.sparse.csr_array(far[:4]))
    assert_allclose(again, expected.scores[:4], atol=tight * size)


@pytest.mark.parametrize("options", [{"ridge": 0.01}, {"kernel": "sigmoid"}, {"solver": "lanczos"}])
def test_weights_are_repeated_rows_of_every_kernel(options, rng):
    """Scores of rows of weight 0, new rows and pre-images, too."""
    X, weight = rng.standard_normal((40, 5)) * [3, 1, 1, 1, 1], rng.integers(0, 4, 40)
    one = kernel_pca(X, 3, sample_weight=weight, **options)
    all_ = kernel_pca(np.repeat(X, weight, axis=0), 3, **options)
    for name in ("explained_variance", "explained_variance_ratio"):
        assert_allclose(getattr(one, name), getattr(all_, name), rtol=1e-10)
    assert_allclose(one.scores, all_.transform(X), atol=1e-9)
    assert_allclose(one.transform(X), one.scores, atol=1e-9)
    if "ridge" in options:
        assert_allclose(*(x.inverse_transform(one.scores) for x in (one, all_)), atol=1e-9)


def test_weights_of_a_precomputed_kernel_and_of_blocks():
    rng = np.random.default_rng(1)
    X, weight = rng.standard_normal((30, 4)), rng.random(30) * (np.arange(30) % 3)
    given = kernel_pca(X @ X.T, 2, kernel="precomputed", sample_weight=weight)
    linear = kernel_pca(X, 2, kernel="linear", sample_weight=weight)
    centered = np.sqrt(weight)[:, None] * (X - weight @ X / weight.sum())
    expected = np.linalg.svd(centered, compute_uv=False)[:2] ** 2
    assert_allclose(linear.eigenvalues, expected, rtol=1e-10)
    assert_allclose(given.scores, linear.scores, atol=1e-12)
    whole, parts = (
        kernel_pca(rows, 2, random_features=20, sample_weight=weight) for rows in (X, [X[:11], X[11:]])
    )
    assert_allclose(parts.scores, whole.scores, atol=1e-12)
    variance = weight @ whole.scores**2 / (weight.sum() - 1)
    assert_allclose(whole.explained_variance, variance, rtol=1e-10)
    with pytest.raises(ValueError, match="sample_weight has 29 entries for 30 rows"):
        kernel_pca(X, 2, sample_weight=weight[1:])
    with pytest.raises(ValueError, match="n_components must be"):
        kernel_pca(X, 3, sample_weight=1.0 * (np.arange(30) < 3))
