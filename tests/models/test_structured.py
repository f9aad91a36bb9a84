"""oppca and soppca against dense formulas, principal components, truncated power and enumeration."""

import math
from itertools import combinations

import flat
import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
import scipy.optimize
import scipy.sparse as sp
from extras import example
from hypothesis import strategies as st
from in_turn import SEEDS, of_examples
from numpy.testing import assert_allclose, assert_array_equal
from oracles import centered, covariance, deflated, dense_vector, leading_on, normal, power_iteration

import spcacore
from spcacore import grid_laplacian, oppca, soppca, sparse_pca
from spcacore.models import priors, variational
from spcacore.models.priors import chosen_support
from spcacore.supports.admissible import Supports


def samples(seed=0, n=60, p=20):
    rng = np.random.default_rng(seed)
    signal = rng.standard_normal((n, 4)) * [5, 4, 3, 2] @ np.linalg.qr(rng.standard_normal((p, 4)))[0].T
    return signal + 0.5 * rng.standard_normal((n, p)) + 3


def prior(p, seed=0):
    A = normal(seed, p, p)
    return A @ A.T / p + 0.05 * np.eye(p)


def smooth(p, width=2.0):
    i = np.arange(p)
    return np.exp(-0.5 * ((i[:, None] - i) / width) ** 2) + 0.01 * np.eye(p)


def complement(M):
    """An orthonormal basis of what is orthogonal to the columns of M."""
    return np.linalg.svd(np.column_stack([M, np.zeros((len(M), 1))]))[0][:, M.shape[1] :]


# ---- oppca ------------------------------------------------------------------------------------------


@of_examples(20, seed=SEEDS, wide=st.booleans())
def test_without_a_prior_the_principal_components(seed, wide):
    X = samples(seed, 15, 40) if wide else samples(seed)
    result = oppca(X, 4, tol=1e-10)
    U, s, Vt = np.linalg.svd(centered(X), full_matrices=False)
    assert_allclose(np.abs(Vt[:4] @ result.loadings), np.eye(4), atol=1e-7)
    assert_allclose(result.explained_variance, s[:4] ** 2 / (len(X) - 1), rtol=1e-10)
    cosine = (U[:, :4].T @ result.scores) / np.linalg.norm(result.scores, axis=0)
    assert_allclose(np.abs(cosine), np.eye(4), atol=1e-7)


@of_examples(25, seed=SEEDS, which=st.sampled_from(["identity", "random", "smooth", "laplacian"]))
def test_means_are_orthogonal_and_the_free_energy_never_falls(seed, which):
    X = samples(seed)
    options = {
        "identity": {}, "random": {"prior_covariance": prior(20, seed)},
        "smooth": {"prior_covariance": smooth(20)}, "laplacian": {"prior_precision": grid_laplacian((4, 5))},
    }[which]  # fmt: skip
    dense, sparse = (
        flat.oppca(X, 4, **options),
        flat.soppca(X, 3, 6, deflation="constrained", **options),
    )
    for result in (dense, sparse):
        M = result.means / np.linalg.norm(result.means, axis=0)
        assert_allclose(M.T @ M, np.eye(M.shape[1]), atol=1e-10)
    assert (sparse.cardinality <= 6).all()
    for result in (
        dense,
        sparse,
        flat.soppca(X, 3, 6, **options),
        flat.oppca(X, 3, deflation="naive", **options),
    ):
        assert result.converged.all()
        for path in result.free_energy:
            assert (np.diff(path) >= 0).all()


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("prior", "mean", "largest"), [("none", 1, 2), ("smooth", 10, 20), ("chain", 12, 25)]
)
def test_components_of_noise_take_few_iterations(prior, mean, largest, rng):
    """Eigenvalues of noise lie close together, so that steps towards their eigenvectors are slow."""
    planted = rng.standard_normal((90, 4)) @ (6 * np.linalg.qr(rng.standard_normal((400, 4)))[0]).T
    X = planted + rng.standard_normal((90, 400))
    known = {"none": {}, "smooth": {"prior_covariance": smooth(400, 5.0)},
             "chain": {"prior_precision": grid_laplacian(400)}}[prior]  # fmt: skip
    found = flat.oppca(X, 15, **known)
    assert found.converged.all()
    assert found.n_iter.mean() <= mean
    assert found.n_iter.max() <= largest
    if prior == "none":
        _, _, vectors = np.linalg.svd(centered(X))
        assert_allclose(np.abs(np.sum(found.loadings * vectors[:15].T, axis=0)), 1, atol=1e-9)


@pytest.mark.parametrize("seed", [0, 3, 5, 7])
def test_the_first_support_is_sought_from_all_columns(rng):
    """Of scaled data with many factors, where single starts end lower: no worse than `sparse_pca`."""
    X = 0.7 * rng.standard_normal((80, 12)) @ rng.standard_normal((12, 400))
    X += rng.standard_normal((80, 400))
    best = sparse_pca(X, 1, cardinality=8, scale=True).explained_variance[0]
    assert soppca(X, 1, 8, scale=True).explained_variance[0] >= best * (1 - 1e-9)


def test_only_the_shape_of_a_prior_matters():
    X, C = samples(2), smooth(20)
    a, b = (
        oppca(X, 3, prior=spcacore.Prior(covariance=C)),
        oppca(X, 3, prior=spcacore.Prior(covariance=4 * C)),
    )
    c = oppca(X, 3, prior=spcacore.Prior(precision=np.linalg.inv(C)))
    assert_allclose(b.loadings, a.loadings, atol=1e-6)
    assert_allclose(c.loadings, a.loadings, atol=1e-6)
    assert_allclose(b.means, 2 * a.means, rtol=1e-4, atol=1e-4)
    assert_allclose(c.posterior_trace, a.posterior_trace, rtol=1e-4)
    for other in (b, c, oppca(X, 3, prior=spcacore.Prior(covariance=100 * C))):
        assert_allclose([F[-1] for F in other.free_energy], [F[-1] for F in a.free_energy], rtol=1e-7)
        assert_allclose(other.gain, a.gain, rtol=1e-6)


def test_extending_is_the_same_as_asking_at_once():
    X, C = samples(3), smooth(20)
    for function, more in ((oppca, {}), (soppca, {"cardinality": 5})):
        for deflation in ("orthogonal", "naive"):
            options = {"prior": spcacore.Prior(covariance=C), "deflation": deflation, **more}
            whole, part = function(X, 3, **options), function(X, 1, **options).extend(X, 2)
            for name in ("loadings", "means", "scores", "noise_variances", "posterior_trace"):
                assert_allclose(getattr(part, name), getattr(whole, name), rtol=1e-7, atol=1e-8)


def test_naive_deflation_does_not_give_orthogonal_means():
    X, C = samples(4), smooth(20, 4.0)
    naive = oppca(X, 4, deflation="naive", prior=spcacore.Prior(covariance=C)).loadings
    assert np.abs(naive.T @ naive - np.eye(4)).max() > 1e-2
    # with x_1 = T m/e, the second component is that of T - x_1 m'
    T = centered(X)
    first = oppca(X, 1, prior=spcacore.Prior(covariance=C))
    second = oppca(
        T - np.outer(first.scores[:, 0], first.means[:, 0]),
        1,
        center=False,
        prior=spcacore.Prior(covariance=C),
    )
    assert abs(second.loadings[:, 0] @ naive[:, 1]) == pytest.approx(1, abs=1e-6)


# ---- soppca -----------------------------------------------------------------------------------------


def opd_truncated_power(A, supports, k):
    """Truncated power with orthogonalized projection deflation, from the given first supports."""
    V = []
    for S in supports:
        start = dense_vector(len(A), S, leading_on(A, S))
        V.append(power_iteration(A, start, k, 500))
        A = deflated(A, V[-1], "orthogonalized_projection", V[:-1])
    return np.array(V).T


@of_examples(25, seed=SEEDS)
def test_without_a_prior_truncated_power_with_orthogonalized_projection(seed):
    """Components that overlap: each is a fixed point of truncated power on the matrix so deflated."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 12)) @ rng.standard_normal((12, 12))
    result = soppca(X, 3, 4, tol=1e-11)
    V = opd_truncated_power(covariance(X), [np.flatnonzero(v) for v in result.loadings.T], 4)
    assert_allclose(np.abs(np.sum(V * result.loadings, axis=0)), 1, atol=1e-9)
    other = sparse_pca(X, 3, cardinality=4, deflation="orthogonalized_projection")
    if ((other.loadings != 0) == (result.loadings != 0)).all():
        assert_allclose(result.loadings, other.loadings, atol=1e-7)
    assert result.explained_variance.sum() >= 0.9 * other.explained_variance.sum()


def objective(S, r, K):
    S = list(S)
    B = K[np.ix_(S, S)]
    return r[S] @ np.linalg.solve(B, r[S]) - np.linalg.slogdet(B)[1]


def greedy_support(r, K, k):
    chosen = []
    for _ in range(k):
        others = sorted(set(range(len(r))) - set(chosen))
        chosen.append(max(others, key=lambda j: objective([*chosen, j], r, K)))
    return chosen


@of_examples(60, seed=SEEDS, k=st.integers(1, 6), sparse=st.booleans())
def test_the_greedy_support(seed, k, sparse):
    """Step by step the best next variable, by explicit inverses and determinants; near the best of all."""
    rng = np.random.default_rng(seed)
    p, a = 10, float(np.exp(rng.uniform(-2, 2)))
    if sparse:
        L = sp.csr_array(grid_laplacian((2, 5)) * rng.uniform(0.1, 3))
        chooser = priors.Sparse.of(L, 0)
        L = L.toarray()
    else:
        L = np.linalg.inv(prior(p, seed))
        chooser = priors.Spectral.of((L + L.T) / 2)
    r, K = 3 * rng.standard_normal(p), a * np.eye(p) + L
    before = r.copy()
    assert chosen_support(chooser, Supports.any_of(p, k), r, a).tolist() == sorted(greedy_support(r, K, k))
    assert_array_equal(r, before)
    K /= np.linalg.eigvalsh(K)[-1]  # then every variable adds, and greedy comes within 1 - 1/e
    best = max(objective(S, r, K) for S in combinations(range(p), k))
    assert objective(greedy_support(r, K, k), r, K) >= (1 - 1 / np.e) * best


# ---- free energies ----------------------------------------------------------------------------------


def log_density(Z, X, s2, C):
    """Of the rows of Z = XW + noise together, W integrated out: normal, with covariance s2 I + XX' (x) C."""
    X = X.reshape(len(Z), -1)
    K = s2 * np.eye(Z.size) + np.kron(X @ X.T, C)
    return -0.5 * (np.linalg.slogdet(2 * np.pi * K)[1] + Z.ravel() @ np.linalg.solve(K, Z.ravel()))


@pytest.mark.share(3)
@pytest.mark.parametrize("C", [prior(7, 1), 100 * smooth(7), np.eye(7)], ids="abc")
@pytest.mark.parametrize("method", ["oppca", "soppca", "constrained"])
def test_the_free_energy_is_the_largest_log_density(method, C):
    """With the loading integrated out over where it may lie, by the explicit covariance of all entries.

    The mean and the covariance of the loading are those of its posterior there.
    """
    n, p = 9, 7
    X, rng = samples(3, n, p), np.random.default_rng(0)
    Z, given = centered(X), {"tol": 1e-11, "prior": spcacore.Prior(covariance=C)}
    how = {"deflation": "constrained" if method == "constrained" else "orthogonal"}
    result = oppca(X, 3, **given) if method == "oppca" else soppca(X, 3, 4, **how, **given)
    assert result.noise_variance == result.noise_variances[-1]
    for t in range(3):
        m, s2, a = result.means[:, t], result.noise_variances[t], result.posterior_precision[t]
        M = result.means[:, :t]
        P = np.eye(p) - (M @ np.linalg.pinv(M) if t else 0)
        S = np.arange(p) if method == "oppca" else np.flatnonzero(m)
        B = np.eye(p)[:, S]
        if method != "soppca" and t:
            B = B @ complement(M[S]) if len(S) == p else B @ scipy.linalg.null_space(M[S].T, rcond=1e-9)
        L = B.T @ np.linalg.inv(C) @ B
        restricted = B @ np.linalg.inv(L) @ B.T
        posterior = B @ np.linalg.inv(a * np.eye(len(L)) + L) @ B.T
        assert_allclose(result.posterior_covariance(t), posterior[np.ix_(S, S)], atol=1e-9)
        some = np.ix_([5, 2, 0], [5, 2, 0])  # zero outside of the support
        assert_allclose(result.posterior_covariance(t, [5, 2, 0]), posterior[some], atol=1e-9)
        assert result.posterior_trace[t] == pytest.approx(np.trace(posterior), rel=1e-6)
        T = Z @ P
        x = T @ m / (m @ m + result.posterior_trace[t])
        assert_allclose(result.scores[:, t], x, atol=1e-10)
        assert_allclose(posterior @ T.T @ x / s2, m, atol=1e-3 * np.linalg.norm(m))
        assert x @ x / s2 == pytest.approx(a, rel=1e-3)
        expected = log_density(T, x, s2, restricted)
        assert result.free_energy[t][-1] == pytest.approx(expected, abs=1e-4)
        for d in 1e-3 * rng.standard_normal((5, n + 1)):
            near = [log_density(T, x + i * d[1:], s2 * math.exp(i * d[0]), restricted) for i in (-1, 1)]
            assert max(near) <= expected
            assert near[0] == pytest.approx(near[1], abs=1e-5)
        alone = log_density(T, np.zeros(n), np.sum(T**2) / (n * p), C)
        choices = 1 if method == "oppca" else len(list(combinations(range(p), 4)))
        gain = expected - alone - n * np.log(p) / 2 - np.log(choices)
        assert result.gain[t] == pytest.approx(gain, abs=1e-4)


def mass_within(r, K, sign):
    """The logarithm of the integral of exp(r w - K w^2/2) over the w of this sign, by quadrature."""
    if sign:
        r, far = r * sign, max(r * sign / K, 0) + 40 / math.sqrt(K)
    at, low = (max(r / K, 0), 0) if sign else (r / K, r / K - 40 / math.sqrt(K))
    far = far if sign else r / K + 40 / math.sqrt(K)
    height = r * at - K * at**2 / 2
    points = [x for x in (at - 1 / math.sqrt(K), at, at + 1 / math.sqrt(K)) if low < x < far]
    area = scipy.integrate.quad(
        lambda w: math.exp(r * w - K * w**2 / 2 - height), low, far, epsabs=0, epsrel=1e-12, points=points
    )[0]  # fmt: skip
    return height + math.log(area)


def test_moments_of_truncated_normals():
    """By quadrature, over the distance from 0 in units of its decay."""
    t = np.array([-1e5, -900.0, -71, -69, -20, -1, 0, 2, 30])
    _, means, variances, _ = priors.within_signs(t, np.ones(len(t)), np.ones(len(t)))
    for a, mean, variance in zip(t, means, variances, strict=True):
        top, unit = max(a, 0), 1 / (1 + max(-a, 0))
        z = np.linspace(max(top - 12, 0), top + 40 * unit, 400_001)
        weight = np.exp(a * (z - top) - (z**2 - top**2) / 2)
        mass = scipy.integrate.trapezoid(weight, z)
        expected = scipy.integrate.trapezoid(z * weight, z) / mass
        spread = scipy.integrate.trapezoid((z - expected) ** 2 * weight, z) / mass
        assert mean == pytest.approx(expected, rel=1e-8)
        assert variance == pytest.approx(spread, rel=1e-7)


@pytest.mark.share(3)
@pytest.mark.parametrize(("signs", "diagonal"), [(1, False), (-1, True), ((1, -1, 0, 1, -1, 1, 0), True)])
def test_signed_components_are_at_a_maximum_of_the_density(signs, diagonal):
    """With loadings integrated out one by one, over the sign that each has; none of the supports has more."""
    X, p, k = samples(5, 8, 7), 7, 3
    C = np.linspace(0.5, 2, p) if diagonal else np.ones(p)
    given, sign = spcacore.Prior(covariance=np.diag(C)) if diagonal else None, np.broadcast_to(signs, p)
    result = soppca(X, 1, k, prior=given, tol=1e-11, choice=spcacore.Choice(signs=signs))
    m, Z = result.means[:, 0], centered(X)
    assert (m * sign >= 0).all()
    S = np.flatnonzero(m)

    def log_density(x, s2, S):
        K = x @ x / s2 + 1 / C[S]
        masses = [mass_within(r, a, s) for r, a, s in zip(Z.T[S] @ x / s2, K, sign[S], strict=True)]
        prior = [mass_within(0.0, 1 / c, s) for c, s in zip(C[S], sign[S], strict=True)]
        return sum(masses) - sum(prior) - 0.5 * (Z.size * np.log(2 * np.pi * s2) + np.sum(Z**2) / s2)

    x = Z @ m / (m @ m + result.posterior_trace[0])
    s2 = result.noise_variances[0]
    at = log_density(x, s2, S)
    assert result.free_energy[0][-1] == pytest.approx(at, abs=1e-9)
    for d in normal(0, 10, len(x) + 1) * 1e-3:
        near = [log_density(x + side * d[1:], s2 * math.exp(side * d[0]), S) for side in (-1, 1)]
        assert max(near) <= at
        assert near[0] == pytest.approx(near[1], abs=1e-5)  # the curve of them is some hundred times as much
    K = x @ x / s2 + 1 / C[S]
    step = 1e-4  # the variance is the second derivative of the mass
    curves = [
        [mass_within(r + d, a, s) for d in (-step, 0, step)]
        for r, a, s in zip(Z.T[S] @ x / s2, K, sign[S], strict=True)
    ]
    variances = np.diag(np.diff(curves, 2)[:, 0] / step**2)
    assert_allclose(result.posterior_covariance(0), variances, rtol=1e-4)
    assert result.posterior_trace[0] == pytest.approx(np.trace(result.posterior_covariance(0)), rel=1e-9)
    every = [
        soppca(X, 1, k, prior=given, choice=spcacore.Choice(signs=signs, include=T)).free_energy[0][-1]
        for T in combinations(range(p), k)
    ]
    assert result.free_energy[0][-1] == pytest.approx(max(every), abs=1e-6)


def test_both_sides_of_a_start_are_tried():
    """The signs fit less of what is largest than of its negative; against all supports."""
    rng = np.random.default_rng(134)
    k = int(rng.integers(2, 4))
    X = rng.standard_normal((12, 7)) @ np.diag(rng.uniform(0.5, 2, 7))
    X += np.outer(rng.standard_normal(12), rng.standard_normal(7)) * rng.uniform(0, 1.5)
    signs = rng.choice([-1, 1, 1], 7)
    found, *every = (
        soppca(X, 1, k, choice=spcacore.Choice(signs=signs, include=S)).free_energy[0][-1]
        for S in (None, *combinations(range(7), k))
    )
    assert found == pytest.approx(max(every), abs=1e-6)


@pytest.mark.share(8)
@pytest.mark.parametrize("scale", [1.0, 100.0])
@pytest.mark.parametrize("seed", range(2))
def test_the_joint_model_has_the_largest_density(seed, scale):
    """The density by its definition; no less than what BFGS reaches, nor than with weights found in turn."""
    n, p, r = 8, 6, 2
    X, C = samples(seed, n, p), scale * smooth(p, 1.5)
    T, given = centered(X), {"prior": spcacore.Prior(covariance=C)}
    result = oppca(X, r, deflation="joint", **given)
    density = result.free_energy[0][-1]
    assert density == pytest.approx(log_density(T, result.scores, result.noise_variance, C), abs=1e-7)
    assert (np.diff(result.free_energy[0]) >= -1e-12 * abs(density)).all()
    in_turn = oppca(X, r, **given)
    assert density >= log_density(T, in_turn.scores, in_turn.noise_variance, C)

    def loss(v):
        return -log_density(T, v[:-1].reshape(n, r), np.exp(v[-1]), C)

    starts = normal(seed, 1, n * r + 1)
    best = max(-scipy.optimize.minimize(loss, start, method="BFGS").fun for start in starts)
    assert density >= best - 1e-6
    square = result.scores.T @ result.scores  # the posteriors: independent, of precision a I + C^-1
    assert_allclose(square, np.diag(result.posterior_precision) * result.noise_variance, atol=1e-5)
    for t, (x, m) in enumerate(zip(result.scores.T, result.means.T, strict=True)):
        S = np.linalg.inv(x @ x / result.noise_variance * np.eye(p) + np.linalg.inv(C))
        assert_allclose(result.posterior_covariance(t), S, rtol=1e-4, atol=1e-6 * scale)
        assert_allclose(m, S @ T.T @ x / result.noise_variance, rtol=1e-4, atol=1e-4)
    alone = log_density(T, np.zeros(n), np.sum(T**2) / (n * p), C)
    cost = (n * r - r * (r - 1) / 2) * np.log(p) / 2
    assert result.gain.sum() == pytest.approx(density - alone - cost)


@pytest.mark.parametrize("shape", [(30, 50), (60, 12)])
def test_the_joint_model_without_a_prior_has_a_closed_form(shape):
    """Tipping and Bishop's, of the transposed data: eigenvalues of T T'/p, less the mean of those left."""
    X = samples(3, *shape)
    n, p = shape
    squares = np.linalg.svd(centered(X))[1] ** 2
    noise = squares[3:].sum() / p / (n - 3)
    result = oppca(X, 3, deflation="joint")
    assert result.noise_variance == pytest.approx(noise, rel=1e-6)
    assert_allclose(result.scores.T @ result.scores, np.diag(squares[:3] / p - noise), rtol=1e-6, atol=1e-6)
    assert_allclose(np.abs(result.loadings.T @ oppca(X, 3).loadings), np.eye(3), atol=1e-6)


def test_components_stop_where_the_next_does_not_raise_the_free_energy(rng):
    for n, p in ((60, 20), (20, 200), (100, 100)):
        noise = rng.standard_normal((n, p))
        W = np.linalg.qr(rng.standard_normal((p, 3)))[0]
        X = noise + rng.standard_normal((n, 3)) @ (np.sqrt(p) * np.array([4, 3.5, 3]) * W).T / 2
        found = oppca(X, None)
        assert found.n_components == 3
        assert (found.gain > 0).all()
        all_of_them = oppca(X, 4)
        assert_allclose(all_of_them.gain[:3], found.gain, rtol=1e-12)
        assert not all_of_them.gain[3] > 0
        assert_allclose(found.extend(X, 1).gain, all_of_them.gain, rtol=1e-9)
        with pytest.warns(RuntimeWarning, match="not even the first"):
            assert oppca(noise, None).n_components == 1
    low = rng.standard_normal((30, 2)) @ rng.standard_normal((2, 9)) * 5  # the rank ends before
    with pytest.warns(RuntimeWarning, match="leave no noise"):
        assert oppca(low, None).n_components == 2


@pytest.mark.parametrize("shape", [(9, 3), (4, 7)])
def test_as_many_components_as_the_rank_leave_no_noise(shape, rng):
    """The likelihood is unbounded, but means and scores have a limit: what is left of the data, exactly."""
    X = rng.standard_normal(shape)
    n, p = shape
    L = np.diag([4.0, 1.0, 1.0]) if n > p else np.eye(p)
    for given in (X, np.asfortranarray(X), sp.csr_array(X), sp.csc_array(X)):
        with pytest.warns(RuntimeWarning, match="3 components leave no noise"):
            found = oppca(given, 3, prior=spcacore.Prior(precision=L))
        B, m = complement(found.means[:, :2]), found.means[:, 2]
        assert_allclose(np.outer(found.scores[:, 2], m), centered(X) @ B @ B.T, atol=1e-7)
        assert_allclose(m @ L @ m, p - 2, rtol=1e-9)
        assert found.noise_variance == found.posterior_trace[2] == 0
        assert found.free_energy[2][-1] == found.gain[2] == found.posterior_precision[2] == np.inf
        assert not found.posterior_covariance(2).any()
    one = normal(0, 6, 1)
    with pytest.warns(RuntimeWarning, match="1 component leaves no noise"):
        found = soppca(one, 1, 1, choice=spcacore.Choice(signs=-1))
    assert_allclose(np.outer(found.scores[:, 0], found.means[:, 0]), centered(one), atol=1e-12)
    assert_array_equal(found.posterior_covariance(0), [[0.0]])


@pytest.mark.parametrize("function", [oppca, soppca])
def test_a_search_that_has_not_converged_ends_with_a_posterior(function):
    more = {"cardinality": 8} if function is soppca else {}
    with pytest.warns(RuntimeWarning, match="not converged in 1 iteration"):
        found = function(samples(3), 2, prior=spcacore.Prior(covariance=prior(20)), max_iter=1, **more)
    for t in range(2):
        assert_allclose(np.trace(found.posterior_covariance(t)), found.posterior_trace[t], rtol=1e-9)


# ---- example pages ----------------------------------------------------------------------------------


def test_missing_values_page():
    result = example("missing_values").analyze()
    error = result["error"]
    assert result["model"].n_components == 3
    assert error["probabilistic PCA"] < 1.0  # the noise alone is 0.8
    assert min(v for name, v in error.items() if name != "probabilistic PCA") > 2.5
    assert 0.9 < result["covered"] < 0.97


@pytest.mark.slow
def test_smooth_maps_page():
    result = example("smooth_maps").analyze()
    plain, smooth = (result["held_out"][name] for name in ("truncated power", "soppca, smooth prior"))
    best = result["held_out"]["the maps themselves"]
    assert plain < smooth < best
    assert best - smooth < 0.4 * (best - plain)
    cosine = result["cosine"]
    assert (cosine["soppca, smooth prior"] > cosine["truncated power"] + 0.02).all()
    assert (cosine["soppca, smooth prior"] > 0.95).all()


def test_a_singular_precision_is_made_proper():
    """Constant maps cost a grid nothing; without a bound of the free energy there would be no end."""
    rng = np.random.default_rng(1)
    X = 3 * rng.standard_normal((50, 1)) @ np.ones((1, 20)) + rng.standard_normal((50, 20))
    flat = oppca(X, 1, prior=spcacore.Prior(precision=spcacore.grid_laplacian((20,))))
    assert flat.converged.all()
    assert flat.posterior_precision[0] > 1e-4
    assert abs(flat.loadings.sum()) / np.sqrt(20) > 0.999
    one = np.zeros((20, 20))
    one[0, 0] = 1
    for precision in (one, np.diag([1.0] * 10 + [0.0] * 10)):
        for result in (
            oppca(X, 2, max_iter=5000, prior=spcacore.Prior(precision=precision)),
            soppca(X, 2, 5, max_iter=5000, prior=spcacore.Prior(precision=precision)),
        ):
            assert np.isfinite(result.means).all()
            assert all(np.diff(F).min(initial=0) >= -1e-9 * abs(F[-1]) for F in result.free_energy)


# ---- what is known of the variables


def test_nothing_is_left_of_what_is_included():
    X = np.array([[1.0, 2.0], [-1.0, 2.0], [0.0, -4.0]])
    first = spcacore.Choice(include=[0])
    for deflation, why in (("orthogonal", "has any variance left"), ("constrained", "is orthogonal")):
        with pytest.raises(ValueError, match=f"no loading of 1 variable {why}"):
            soppca(X, 2, 1, choice=first, deflation=deflation)
    with pytest.raises(ValueError, match="no loading of 1 variable has any variance left"):
        soppca(X * [0, 1], 1, 1, choice=first, deflation="constrained")


def test_what_is_included_was_not_chosen():
    """The gain pays for the choice of a support."""
    X = samples(9)
    free = soppca(X, 1, 3)
    given = soppca(X, 1, 3, choice=spcacore.Choice(include=np.flatnonzero(free.loadings[:, 0])))
    assert_allclose(given.free_energy[0][-1], free.free_energy[0][-1])
    assert_allclose(given.gain - free.gain, np.log(math.comb(20, 3)))


@pytest.mark.parametrize("share", [1e-3, 1e-4, 1e-6])
def test_a_component_of_a_variable_without_signal_has_its_direction(share):
    """Far below the noise the posterior is the prior, as Tipping and Bishop (1999) say of eigenvalues."""
    X = np.random.default_rng(0).standard_normal((16, 8)) * [share, 1, 1, 1, 1, 1, 1, 1]
    for deflation in ("orthogonal", "naive"):
        result = soppca(X, 1, 1, choice=spcacore.Choice(include=[0]), deflation=deflation)
        assert_allclose(result.loadings[:, 0], np.eye(8)[0])
        assert result.means[0, 0] ** 2 < 1e-6 * result.posterior_trace[0]
        assert_allclose(result.posterior_trace, 1, rtol=1e-6)
        assert_allclose(result.noise_variance, np.square(X - X.mean(axis=0)).mean(), rtol=1e-9)


def test_the_start_of_a_large_matrix_is_near_its_leading_eigenvector(with_limits):
    with_limits(variational, LAPACK_ORDER=20)
    G = covariance(normal(0, 60, 40) * np.linspace(1, 3, 40))
    v = variational._leading(G)
    assert np.linalg.norm(v) == pytest.approx(1)
    assert np.abs(np.linalg.eigh(G)[1][:, -1] @ v) > 0.99
