"""Sparse smooth maps: what a prior on neighboring pixels adds to sparse components.

Eighty noisy images of 64 x 64 pixels are made of three maps: a disc, a ring and a ridge, each with a weight
of its own in each image. Truncated power finds 480 pixels for each component. It does not know which pixels
are neighbors, and with so few images some of the pixels are wrong. `soppca` is given a prior, with the
squared Laplacian of the grid as precision. The prior says that a pixel tends to be like the mean of its
neighbors, and no more; which 480 pixels to take is still free. `soppca` finds the maps nearly whole, and its
maps explain more of images that were not used.

    python docs/examples/smooth_maps.py
"""

from pathlib import Path

import numpy as np

import spcacore

SIDE, CARDINALITY = 64, 480


def planted():
    """Three unit maps, as columns."""
    y, x = np.mgrid[:SIDE, :SIDE]
    disc = np.maximum(0, 1 - np.hypot(x - 17, y - 18) / 12.5) ** 0.7
    ring = np.exp(-0.5 * ((np.hypot(x - 45, y - 20) - 10) / 2.4) ** 2)
    ridge = np.exp(-0.5 * ((y - 47 - 6 * np.sin(x / 9)) / 2.8) ** 2) * (np.abs(x - 32) < 25)
    maps = np.stack([np.where(m > 0.12, m, 0).ravel() for m in (disc, ring, ridge)], axis=1)
    return maps / np.linalg.norm(maps, axis=0)


def make(seed=0, n=80):
    """Images (n, pixels)."""
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal((n, 3)) * [13, 11, 9.5]
    return weights @ planted().T + rng.standard_normal((n, SIDE**2))


def share(X, V):
    """Proportion of the variance of centered images that lies in the span of the loadings."""
    X, Q = X - X.mean(axis=0), np.linalg.qr(V)[0]
    return float(np.sum((X @ Q) ** 2) / np.sum(X**2))


def analyze(seed=0):
    """Components by truncated power and under the prior, matched with the maps planted."""
    W, X, new = planted(), make(seed), make(seed + 1000)
    laplacian = spcacore.grid_laplacian((SIDE, SIDE))
    found = {
        "truncated power": spcacore.sparse_pca(X, 3, cardinality=CARDINALITY).loadings,
        "soppca, smooth prior": spcacore.soppca(
            X, 3, CARDINALITY, prior=spcacore.Prior(precision=laplacian @ laplacian)
        ).loadings,
    }
    result = {
        "planted": W,
        "example": X[np.argmax(np.abs(X @ W[:, 0]))],
        "maps": {},
        "cosine": {},
        "held_out": {},
    }
    for name, V in found.items():
        cosine = W.T @ V
        order = np.abs(cosine).argmax(axis=1)
        signs = np.sign(cosine[np.arange(3), order])
        result["maps"][name] = V[:, order] * signs
        result["cosine"][name] = np.abs(cosine).max(axis=1)
        result["held_out"][name] = share(new, V)
    result["held_out"]["the maps themselves"] = share(new, W)
    return result


def picture(result):
    """The maps planted and found, and an image as it came."""
    import matplotlib.pyplot as plt
    from matplotlib.colors import LinearSegmentedColormap

    ink = LinearSegmentedColormap.from_list("ink", ["#8c510a", "#dfc27d", "#fbfaf6", "#5ab4ac", "#0b4f4a"])
    figure = plt.figure(figsize=(9.6, 7.4), layout="constrained")
    grid = figure.add_gridspec(3, 4, width_ratios=(1, 1, 1, 1))

    def show(axes, image, size):
        axes.imshow(image.reshape(SIDE, SIDE), cmap=ink, vmin=-size, vmax=size, interpolation="nearest")
        axes.set(xticks=[], yticks=[])
        for spine in axes.spines.values():
            spine.set(color="#b8b5ac", linewidth=0.8)

    rows = {"planted": result["planted"]} | result["maps"]
    titles = ("disc", "ring", "ridge")
    for i, (name, maps) in enumerate(rows.items()):
        for j in range(3):
            axes = figure.add_subplot(grid[i, j])
            show(axes, maps[:, j], 0.085)
            if i == 0:
                axes.set_title(titles[j], fontsize=12)
            else:
                axes.set_xlabel(f"cosine {result['cosine'][name][j]:.2f}", fontsize=10)
            if j == 0:
                axes.set_ylabel(name, fontsize=11, labelpad=8)
    axes = figure.add_subplot(grid[0, 3])
    show(axes, result["example"] - result["example"].mean(), 3.5)
    axes.set_title("one image of eighty", fontsize=12)
    axes = figure.add_subplot(grid[1:, 3])
    names = list(result["held_out"])
    values = [100 * result["held_out"][name] for name in names]
    bars = axes.bar(range(3), values, color=["#b9b6ae", "#1c7d74", "#e7e4dc"], width=0.66)
    axes.bar_label(bars, [f"{v:.2f} %" for v in values], padding=3, fontsize=10)
    axes.set_xticks(range(3), ["truncated\npower", "smooth\nprior", "the maps\nthemselves"], fontsize=10)
    axes.set(yticks=[], ylim=(0, 1.12 * max(values)))
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.set_title("variance explained\nof new images", fontsize=12)
    return figure


def main():
    result = analyze()
    for name, cosine in result["cosine"].items():
        print(f"{name:22s} cosines {cosine.round(3)}, {100 * result['held_out'][name]:.2f} % of new images")
    print(f"{'the maps themselves':22s} {100 * result['held_out']['the maps themselves']:.2f} %")
    picture(result).savefig(Path(__file__).with_suffix(".png"), dpi=110)


if __name__ == "__main__":
    main()
