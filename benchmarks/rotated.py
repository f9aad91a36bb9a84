"""Measure `sca` and `sma`: leading vectors, other implementations, graphs.

python benchmarks/rotated.py [--peer DIR] [--graphs FILE] [--save FILE] [-o docs/measured/rotated.md]

Times are CPU seconds of one thread. --peer is a checkout of
https://github.com/bdpedigo/sparse_decomposition, version 0.1.0 of `sparse-decomposition`, whose
wheel and source archive on PyPI lack its modules; it needs `factor_analyzer`. --graphs is what `graph.py
--save` wrote.
"""

import json
import sys
import types
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse
import threadpoolctl
from bench_rotation import svd_iteration
from graph import block_model
from pages import origin, parser, table, timed, write
from scipy.sparse.linalg import LinearOperator, eigsh, lobpcg, svds

from spcacore import explained_variance, sca
from spcacore.operators.inputs import as_problem, degree_problem

R = 20


def dense():
    """2,000 x 20,000, 20 components of 100 variables and variances 81 to 9 in unit noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 20000))
    for t, size in enumerate(np.linspace(9, 3, R)):
        X[:, 100 * t : 100 * t + 100] += np.outer(rng.standard_normal(2000), np.full(100, size / 10))
    return X


def graph():
    return block_model(50_000, 75_000, 5_000_000, R)[0]


# ---- leading vectors --------------------------------------------------------------------------------


def block_lanczos(op, r, tol, width=4):
    """Block Lanczos with full reorthogonalization and thick restarts (Wu and Simon 2000; Golub and Underwood
    1977): with A Q = Q T + N B E', the Ritz pair (theta, Qs) has the residual norm ||B E's||."""
    limit = 2 * r + 2 * width
    basis, T = np.empty((limit + width, op.p)), np.zeros((0, 0))
    block = np.linalg.qr(np.random.default_rng(0).standard_normal((op.p, width)))[0].T
    while True:
        kept, new = len(T), len(block)
        Q = basis[: kept + new]
        Q[kept:] = block
        W = np.ascontiguousarray(op.apply_block(block.T).T, np.float64)
        C = Q @ W.T
        W -= C.T @ Q
        D = Q @ W.T
        W -= D.T @ Q
        C += D
        T = np.block([[T, C[:kept]], [C[:kept].T, (C[kept:] + C[kept:].T) / 2]])
        values, S = (a[..., ::-1] for a in np.linalg.eigh(T))
        M, last = W @ W.T, S[-new:, :r]
        if len(values) >= r and (np.sum(last * (M @ last), axis=0) <= (tol * values[0]) ** 2).all():
            return values[:r], (S[:, :r].T @ Q).T
        N = np.linalg.solve(np.linalg.cholesky(M), W)
        if len(values) + new > limit:
            kept = max(r, limit - 2 * width)
            basis[:kept] = S[:, :kept].T @ Q
            T = np.diag(values[:kept])
        Q = basis[: len(T)]
        N -= (N @ Q.T) @ Q
        block = np.linalg.solve(np.linalg.cholesky(N @ N.T), N)


def leading(problem):
    """CPU seconds and the largest residual over the largest eigenvalue, by solver."""
    op = problem.operator
    p, m = op.p, op.m
    rng = np.random.default_rng(0)
    single = LinearOperator((p, p), matvec=lambda v: op.apply(None, v.ravel().copy()), dtype=float)
    block = LinearOperator(
        (p, p), matvec=single.matvec, matmat=lambda V: op.apply_block(np.asfortranarray(V)), dtype=float
    )
    halves = LinearOperator(
        (m, p), dtype=float,
        matvec=lambda v: op.forward_block(v.reshape(-1, 1)).ravel(),
        rmatvec=lambda u: op.backward_block(u.reshape(-1, 1)).ravel(),
    )  # fmt: skip
    start = rng.standard_normal((p, R))
    top = float(eigsh(single, 1, which="LA", v0=start[:, 0], tol=1e-3)[0][0])
    solvers = {
        "eigsh (ARPACK)": lambda: eigsh(single, R, which="LA", v0=start[:, 0], tol=1e-8)[1],
        "svds (ARPACK)": lambda: svds(halves, R, v0=start[:m, 0] if m < p else start[:, 0], tol=1e-8)[2].T,
        "lobpcg": lambda: lobpcg(block, start, largest=True, tol=1e-8 * top, maxiter=60)[1],
        "block Lanczos, 2": lambda: block_lanczos(op, R, 1e-8, 2)[1],
        "block Lanczos, 4": lambda: block_lanczos(op, R, 1e-8, 4)[1],
        "block Lanczos, 8": lambda: block_lanczos(op, R, 1e-8, 8)[1],
        f"block Lanczos, {R}": lambda: block_lanczos(op, R, 1e-8, R)[1],
    }
    found = {}
    for name, solve in solvers.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seconds, V = timed(solve)
        V = np.asfortranarray(V)
        AV = op.apply_block(V)
        values = np.einsum("ij,ij->j", V, AV)
        found[name] = seconds, float(np.linalg.norm(AV - V * values, axis=0).max() / values.max())
        print(name, found[name], file=sys.stderr)
    return found


# ---- other implementations --------------------------------------------------------------------------


def plain(X, bound, n_iter):
    """PRS iterations as one would write them, on a centered copy of dense X; sparse X is not centered."""
    if not scipy.sparse.issparse(X):
        X = X - X.mean(axis=0)
    Y = svds(X, R, v0=np.ones(min(X.shape)))[2].T
    for _ in range(n_iter):
        U, _, Vt = np.linalg.svd(X @ Y, full_matrices=False)
        U, _, Vt = np.linalg.svd(X.T @ (U @ Vt), full_matrices=False)
        Y = svd_iteration(U @ Vt, tol=1e-8)[0]
        size = np.sort(np.abs(Y), axis=None)[::-1]
        level = (np.cumsum(size) - bound) / np.arange(1, Y.size + 1)
        level = max(level[np.flatnonzero(level < size)[-1]], 0)
        Y = np.sign(Y) * np.maximum(np.abs(Y) - level, 0)
    return Y


def load_peer(path):
    """The package, repaired at run time: it wants all of graspologic for one function, a method that
    scikit-learn has dropped, and a measure of variance that fills the memory."""

    def select_svd(X, n_components, algorithm="randomized"):
        if algorithm == "full":
            U, D, Vt = np.linalg.svd(X, full_matrices=False)
            return U[:, :n_components], D[:n_components], Vt[:n_components]
        from sklearn.utils.extmath import randomized_svd

        return randomized_svd(X, n_components, random_state=0)

    import sklearn.utils.validation

    embed = types.ModuleType("graspologic.embed")
    embed.selectSVD = select_svd
    sys.modules |= {"graspologic": types.ModuleType("graspologic"), "graspologic.embed": embed}
    accepted = sklearn.utils.validation.check_array  # factor_analyzer still says force_all_finite
    sklearn.utils.check_array = lambda X, *a, force_all_finite=True, **k: accepted(X, *a, **k)
    sys.path.insert(0, str(path))
    from sparse_decomposition.decomposition import decomposition as module

    module.BaseSparseDecomposition._validate_data = lambda self, X, **options: X
    module.calculate_explained_variance_ratio = lambda X, Y: None
    return module.SparseComponentAnalysis


def others(X, bound, peer):
    center = not scipy.sparse.issparse(X)
    pve = lambda Y: float(explained_variance(X, Y, ratio=True, center=center).sum())  # noqa: E731
    seconds, ours = timed(lambda: sca(X, R, l1_bound=bound, center=center))
    found = {"spcacore": (seconds, ours.n_iter, pve(ours.loadings))}
    seconds, one = timed(lambda: sca(X.astype(np.float32), R, l1_bound=bound, center=center))
    found["spcacore, float32"] = (seconds, one.n_iter, pve(one.loadings))
    seconds, Y = timed(lambda: plain(X, bound, ours.n_iter))
    found["plain NumPy"] = (seconds, ours.n_iter, pve(Y))
    if peer:
        model = load_peer(peer)(R, gamma=bound, max_iter=ours.n_iter, tol=0, center=center)
        Z = model._preprocess_data(X)
        seconds, _ = timed(lambda: model.fit_transform(Z))
        found["sparse-decomposition"] = (seconds, model.n_iter_, pve(model.components_.T))
    print(found, file=sys.stderr)
    return found


# ---- the document -----------------------------------------------------------------------------------


def measure(options):
    m = {"leading": {}, "others": {}}
    with threadpoolctl.threadpool_limits(1):
        m["leading"]["graph"] = leading(degree_problem(graph(), center=False))
        m["leading"]["dense"] = leading(as_problem(dense()))
        m["others"]["dense"] = others(dense(), 300.0, options.peer)
        m["others"]["graph"] = others(graph(), 700.0, options.peer)
    return m


def page(m):
    inputs = ("graph", "dense")
    solvers = []
    for name in m["leading"]["graph"]:
        pairs = (m["leading"][where][name] for where in inputs)
        solvers.append([name, *(cell for s, e in pairs for cell in (f"{s:.2f}", f"{e:.0e}"))])
    peers = []
    for name in m["others"]["dense"]:
        triples = (m["others"][where][name] for where in reversed(inputs))
        peers.append([name, *(cell for s, n, pve in triples for cell in (f"{s:.2f}", n, f"{pve:.5f}"))])
    lines = [
        "# Rotated components and graphs",
        "`sca` and `sma` find a sparse basis of rotated components, and communities of a graph. On a\n"
        "graph, `sca` is faster than the same iteration in plain NumPy and than another Python package.\n"
        "On dense data all take about the same time, and `sca` saves the centered copy. The matrix itself\n"
        "is never copied.",
        "## Beside other programs",
        "Each row has the same bound on the l1 norm and the same number of iterations, and its time\n"
        'includes the leading vectors. "Plain NumPy" is the iteration as one would write it, on a\n'
        "centered copy: singular value decompositions, the usual varimax, a sort. `sparse-decomposition`\n"
        "0.1.0 is from its repository, since its files on PyPI lack the modules; it was repaired at run\n"
        'time for today\'s scikit-learn. "pve" is the share of the variance that is explained. On dense\n'
        "data the time goes into the products, and the loops of `sca`, which add in a fixed order, are\n"
        "no faster than the BLAS at twenty columns.",
        table(["", "dense: s", "iterations", "pve", "graph: s", "iterations", "pve"], peers),
    ]
    if "graphs" in m:
        header = ["", "", "nonzeros", "iteration: s", "ns", "whole: s", "over X", "over (n+p)k", "blocks"]
        rows = [
            [
                g["method"],
                f"{g['n']:,} × {g['p']:,} {g['format'].upper()}",
                f"{g['nnz'] / 1e6:.1f}·10⁶",
                f"{g['iteration']:.2f}",
                f"{g['ns']:.2f}",
                f"{g['seconds']:.1f}",
                f"{g['above/matrix']:.2f}",
                f"{g['above/(n+p)k']:.1f}",
                f"{g['accuracy']:.3f}, {g['row accuracy']:.3f}",
            ]
            for g in m["graphs"]
        ]
        lines += [
            "## Large graphs",
            'Bipartite block models with 20 blocks, lognormal degrees, `scale="degree"`, float64 and\n'
            'int32 indices. "ns" is the time of an iteration for each nonzero and component, in both\n'
            "products. Memory is the peak of the whole call beyond the matrix: as a multiple of the\n"
            'matrix ("over X"), and in numbers of 8 bytes for every row and column and component.\n'
            '"Blocks" is the share of columns, and of rows, that are put into the right block.',
            table(header, rows),
            extrapolated(m["graphs"]),
        ]
    lines += [
        "## Leading vectors",
        "An iteration starts from the leading 20 vectors, asked for to 1e-8. The package finds them with\n"
        "ARPACK's `eigsh`. The graph is 50,000 × 75,000 with 5·10⁶ edges, scaled by degrees; the dense\n"
        "data are 2,000 × 20,000. All solvers use the products of the package. The residual is the\n"
        "largest one over the largest eigenvalue. Block methods use fewer reads of X but more products.\n"
        "Narrow blocks gain a quarter on one input or the other, not on both, and end with larger\n"
        "residuals. LOBPCG was stopped after 60 iterations.",
        table(["", "graph: s", "residual", "dense: s", "residual"], solvers),
        "Times are CPU seconds of one thread.",
        origin("rotated", "rotated"),
    ]
    return "\n\n".join(lines) + "\n"


def extrapolated(graphs):
    """What the largest measured graph says of 200,000 x 1,300,000 with 2e8 nonzeros."""
    g = max((g for g in graphs if g["method"] == "sca" and g["nnz"] < 1e8), key=lambda g: g["nnz"])
    matrix, numbers = 2e8 * 12, 8 * 1.5e6 * R
    text = (
        "In proportion to the smaller graphs, 200,000 × 1,300,000 with 2·10⁸ nonzeros would take "
        f"{g['ns'] * 2e8 * R / 1e9:.0f} s for an iteration, and memory beyond the matrix of "
        f"{g['above/(n+p)k'] * numbers / matrix:.2f} of its {matrix / 1e9:.1f} GB"
    )
    big = [g for g in graphs if g["nnz"] >= 1e8]
    if big:
        text += f"; measured: {big[0]['iteration']:.0f} s and {big[0]['above/matrix']:.2f}"
    return text + "."


def main():
    options = parser(__doc__)
    options.add_argument("--peer", help="a checkout of sparse_decomposition")
    options.add_argument("--graphs", help="measurements of graph.py")
    options.add_argument("--save", help="keep the measurements as JSON")
    options.add_argument("--load", help="take those kept; with --graphs, the graphs anew")
    options = options.parse_args()
    if options.load:
        m = json.loads(Path(options.load).read_text())
        if options.graphs:
            m["graphs"] = [json.loads(line) for line in Path(options.graphs).read_text().splitlines()]
    else:
        m = measure(options)
    if options.save:
        Path(options.save).write_text(json.dumps(m))
    write(page(m), options.output)


if __name__ == "__main__":
    main()
