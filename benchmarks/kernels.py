"""Kernel PCA beside scikit-learn's and a plain formula: time, memory, and the error of random features.

python benchmarks/kernels.py -o docs/measured/kernel.md. One BLAS thread; medians of CPU time, taken
alternately on the same array; peak memory above what was there before the call, each in a process of its own.
"""

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import statistics

import memory
import numpy as np
import pages
from bench_kernel import data

from spcacore import kernel_pca, random_fourier_features

N, P, R = 3000, 50, 5
BANDWIDTH = 5.0
MANY = (10**6, 20, 500)  # samples, variables, features

PAGE = r"""# Kernel PCA

Do your data lie near a curve, or in rings? Then no straight direction describes them well. `kernel_pca` finds
components that follow them. It is principal component analysis in another space. On 3,000 samples it takes
about half the time of scikit-learn's, and random features make millions of samples possible; the
[measurements](#measured) are below.

`kernel_pca` finds the principal components of data in the space that a kernel $k(x, y)$ maps to. With K
the matrix of all $k(x_i, x_j)$ and $H = I - \mathbf{{1}}\mathbf{{1}}^\top / n$, it solves

$$HKH\, U = U \Lambda$$

for the largest eigenvalues $\Lambda$; the scores are $U \Lambda^{{1/2}}$. It takes linear, polynomial,
Gaussian ($\exp(-\lVert x - y\rVert^2 / 2\sigma^2)$, $\sigma$ the `bandwidth`), sigmoid and precomputed
kernels, and any function of two blocks of rows; dense and sparse data, float32 and float64.

## When to use it

Use it when what matters is not a linear function of the variables, as with points near a curve or in rings.
The components of a Gaussian kernel follow such data; ordinary components cannot. See [noise off a
knot](../examples/nonlinear_manifold.py).

Kernel PCA has limits. It gives scores, not loadings, so it does not say which variables matter. And it does
not unroll a surface into its coordinates. The bandwidth decides what counts as near. The default, the median
distance between rows, gives smooth components of the whole data; a smaller one gives components of parts.
When the bandwidth is large compared with all distances, kernel PCA is the same as PCA.

```python
>>> import numpy as np, spcacore
>>> rng = np.random.default_rng(0)
>>> angle, radius = rng.uniform(0, 2 * np.pi, 400), np.repeat([1.0, 3.0], 200)
>>> rings = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
>>> rings += 0.1 * rng.normal(size=rings.shape)
>>> score = spcacore.kernel_pca(rings, 1, bandwidth=1).scores[:, 0]
>>> inner, outer = score[:200], score[200:]
>>> bool(inner.min() > outer.max() or inner.max() < outer.min())  # one component tells the rings apart
True

```

## Cost

| way | when | time | memory |
| --- | --- | --- | --- |
| LAPACK | up to 500 samples, or many components | n^3 | n^2 numbers |
| Lanczos | until K exceeds `memory_limit` (2 GiB) | n^2 p, and n^2 a product | n^2 numbers |
| `random_features=m` | asked for: Gaussian kernel, any n | n m (m + p) | m^2 numbers and a block of rows |

K is made in one buffer, 512 x 512 entries at a time, each by a matrix product and a function applied in
place. Only one of its two triangles is made. A copy of the data is kept beside it.

## Measured

{n} samples, {p} variables, {r} components, Gaussian kernel, one BLAS thread. Peak memory is what the
call takes beyond the data; K is {size:.0f} MB.

{table}

Random features for {many} samples of {variables} variables (160 MB) and {features} features, {r}
components: **{seconds:.0f} s of CPU time, and {peak:.0f} MB above the data**; 40 of them are the scores.
In float32 {single:.0f} s and {small:.0f} MB.

Random features approximate the kernel. The table has the root mean square error over 500 of these samples. It
falls with the square root of the number of features, and equals the error of scikit-learn's `RBFSampler`.

{errors}

Columns of the kernel at some samples (Nyström) are another approximation: PCA of scikit-learn's `Nystroem`
features. The table has how much of the span of the exact scores each finds (the mean squared canonical
correlation), and CPU time, on {n} samples of {p} variables:

{columns}

## Sources

B. Schoelkopf, A. Smola and K.-R. Mueller (1998), Neural Computation 10, 1299-1319: kernel PCA. G. Bakir,
J. Weston and B. Schoelkopf (2003), NIPS 16: pre-images by kernel ridge regression (`ridge=`,
`inverse_transform`). A. Rahimi and B. Recht (2007), NIPS 20: random features, `w ~ N(0, I /
bandwidth^2)`. Some lecture notes have a positive exponent, or 2 / bandwidth^2 as the variance of w; both are
wrong for this kernel. Scores, transforms and pre-images agree with scikit-learn's `KernelPCA` to 1e-8 and
better; `bandwidth = (2 gamma)^(-1/2)`.

*Written by `python benchmarks/kernels.py -o docs/measured/kernel.md`, which anyone can run; edit that script,
not this page.*
"""


def plain(X):
    """As the formula is written."""
    square = (X**2).sum(axis=1)
    K = np.exp(-(square[:, None] + square - 2 * X @ X.T) / (2 * BANDWIDTH**2))
    K = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    values, U = np.linalg.eigh(K)
    return U[:, -R:] * np.sqrt(values[-R:])


def theirs(X, solver):
    from sklearn.decomposition import KernelPCA

    gamma = 1 / (2 * BANDWIDTH**2)
    return KernelPCA(R, kernel="rbf", gamma=gamma, eigen_solver=solver).fit_transform(X)


WAYS = {
    "`kernel_pca`, Lanczos (default)": lambda X: kernel_pca(X, R, bandwidth=BANDWIDTH),
    "scikit-learn, ARPACK": lambda X: theirs(X, "arpack"),
    "`kernel_pca`, LAPACK": lambda X: kernel_pca(X, R, bandwidth=BANDWIDTH, solver="lapack"),
    "scikit-learn, dense": lambda X: theirs(X, "dense"),
    "`kernel_pca`, 500 random features": lambda X: kernel_pca(X, R, bandwidth=BANDWIDTH, random_features=500),
    "the formula in NumPy": plain,
}


def race(samples):
    X = data(N, P)
    times = {name: [] for name in WAYS}
    for way in WAYS.values():
        way(X[:600])
    for _ in range(samples):
        for name, way in WAYS.items():
            times[name].append(pages.timed(lambda way=way: way(X))[0])
    return {name: statistics.median(seconds) for name, seconds in times.items()}


def peak(what):
    """Bytes and CPU seconds of one call, in a fresh process."""
    return tuple(map(float, memory.in_process(__file__, "--peak", what).split()))


def measure(what):
    """In the process of its own."""
    if what in WAYS:
        X, way = data(N, P), WAYS[what]
    else:
        n, p, m = MANY
        X = data(n, p).astype(what)
        way = lambda X: kernel_pca(X, R, random_features=m)  # noqa: E731
    way(X[:600])  # libraries are loaded
    size, (seconds, _) = memory.above(lambda: pages.timed(lambda: way(X)))
    print(size, seconds)


def errors():
    from sklearn.kernel_approximation import RBFSampler

    X = data(500, P)
    gamma = 1 / (2 * BANDWIDTH**2)
    square = (X**2).sum(axis=1)
    K = np.exp(-gamma * (square[:, None] + square - 2 * X @ X.T))
    lines = ["| features | error | RBFSampler | error times root m |", "| ---: | ---: | ---: | ---: |"]
    for m in (100, 400, 1600, 6400):
        ours = random_fourier_features(X, m, bandwidth=BANDWIDTH, rng=0).kernel(X)
        Z = RBFSampler(gamma=gamma, n_components=m, random_state=0).fit_transform(X)
        a, b = (np.sqrt(np.mean((A - K) ** 2)) for A in (ours, Z @ Z.T))
        lines.append(f"| {m} | {a:.4f} | {b:.4f} | {a * m**0.5:.2f} |")
    return "\n".join(lines)


def nystroem(X, m):
    from sklearn.decomposition import PCA
    from sklearn.kernel_approximation import Nystroem

    features = Nystroem(gamma=1 / (2 * BANDWIDTH**2), n_components=m, random_state=0).fit_transform(X)
    return PCA(R, svd_solver="covariance_eigh").fit_transform(features)


def columns():
    """Agreement with the exact scores, and CPU time, by random features and by columns of the kernel."""
    X = data(N, P)
    exact = np.linalg.qr(kernel_pca(X, R, bandwidth=BANDWIDTH).scores)[0]
    ways = (
        lambda m: kernel_pca(X, R, bandwidth=BANDWIDTH, random_features=m, rng=0).scores,
        lambda m: nystroem(X, m),
    )
    nystroem(X, 50)  # libraries are loaded
    lines = pages.head("m", "random features", "Nyström", "time, random features", "time, Nyström")
    for m in (50, 100, 200, 400, 800):
        runs = [pages.timed(lambda way=way, m=m: way(m)) for way in ways]
        found = [np.sum((exact.T @ np.linalg.qr(Z - Z.mean(axis=0))[0]) ** 2) / R for _, Z in runs]
        cells = [f"{share:.3f}" for share in found] + [f"{seconds:.2f} s" for seconds, _ in runs]
        lines.append(f"| {m} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main():
    parser = pages.parser(__doc__)
    parser.add_argument("--samples", type=int, default=5)
    parser.add_argument("--peak", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak:
        measure(options.peak)
        return
    times = race(options.samples)
    base = times["`kernel_pca`, Lanczos (default)"]
    lines = ["|  | CPU time, ms | over the first | peak memory, MB |", "| --- | ---: | ---: | ---: |"]
    for name, seconds in times.items():
        lines.append(f"| {name} | {1e3 * seconds:.0f} | {seconds / base:.1f} | {peak(name)[0] / 1e6:.0f} |")
    large, seconds = peak("float64")
    small, single = peak("float32")
    n, p, m = MANY
    page = PAGE.format(
        n=f"{N:,}", p=P, r=R, size=N * N * 8 / 1e6, table="\n".join(lines),
        errors=errors(), columns=columns(), many=f"{n:,}", variables=p, features=m,
        seconds=seconds, peak=large / 1e6, single=single, small=small / 1e6,
    )  # fmt: skip
    pages.write(page, options.output)


if __name__ == "__main__":
    main()
