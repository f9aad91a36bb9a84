"""Blind source separation: pictures unmixed by their sparse edges.

Four photographs are mixed: each of four observed pictures is a sum of all four, with weights from a normal
distribution. Can the photographs be found again from the mixtures alone? The weights are not known. Principal
components do not help: they are uncorrelated pictures, and so is every rotation of them.

Sparsity singles out one rotation. Gray values are not sparse, but differences between neighboring pixels are:
nearly zero except at edges. Differences mix with the same weights as the pictures. So we take differences as
variables and mixtures as samples, and let `sca` find four sparse loadings. Each is the map of one
photograph's edges, and its score holds the weights of that photograph in the mixtures. The inverse of the
scores unmixes the pictures themselves.

Each recovered picture has a correlation of 0.999 or more with one of the photographs. The best match of
principal components is 0.57 to 0.88, and of `sca` on the gray values, without differences, 0.55 to 0.80. The
weights do not matter: with as many mixtures as photographs and no noise, any invertible weights give the same
recovered pictures, and the loadings are an independent component analysis. An unmixed picture may come out as
a negative and in any order, as in every such analysis. Here signs and order follow the best match.

In the picture, each column follows one photograph: the photograph, a mixture, the principal component and
the component of `sca` that match it best, with their correlations.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment
from skimage import color, transform, util
from skimage import data as pictures

import spcacore

NAMES = ("camera", "astronaut", "coins", "chelsea")


@dataclass(frozen=True)
class Separation:
    """Pictures (4, side, side); what each method found, and its correlations (4,) with the photographs."""

    photographs: np.ndarray
    mixtures: np.ndarray
    found: dict
    correlation: dict


def data(side=128, seed=0):
    """The middle square of each photograph in gray, and as many mixtures of them."""
    photographs = np.empty((len(NAMES), side, side))
    for k, name in enumerate(NAMES):
        image = util.img_as_float(getattr(pictures, name)())
        image = color.rgb2gray(image) if image.ndim == 3 else image
        width = min(image.shape)
        top, left = (np.array(image.shape) - width) // 2
        square = image[top : top + width, left : left + width]
        photographs[k] = transform.resize(square, (side, side), anti_aliasing=True)
    photographs -= photographs.mean(axis=(1, 2), keepdims=True)
    photographs /= photographs.std(axis=(1, 2), keepdims=True)
    weights = np.random.default_rng(seed).standard_normal((len(NAMES), len(NAMES)))
    return photographs, np.tensordot(weights, photographs, 1)


def analyze(photographs, mixtures):
    n = len(mixtures)
    gray = mixtures.reshape(n, -1)
    down, right = np.diff(mixtures, axis=1), np.diff(mixtures, axis=2)
    edges = np.hstack([down.reshape(n, -1), right.reshape(n, -1)])
    weights = spcacore.sca(edges, n, center=False).scores
    found = {
        "PCA": np.linalg.svd(gray, full_matrices=False)[2],
        "sca of gray values": spcacore.sca(gray, n, center=False).loadings.T,
        "sca": np.linalg.solve(weights, gray),
    }
    matched = {name: match(photographs, images) for name, images in found.items()}
    return Separation(
        photographs,
        mixtures,
        found={name: images for name, (images, _) in matched.items()},
        correlation={name: correlation for name, (_, correlation) in matched.items()},
    )


def match(photographs, found):
    """The found pictures in the order and with the signs of the photographs, and the correlations."""
    n = len(photographs)
    found = found.reshape(photographs.shape)
    correlation = np.corrcoef(photographs.reshape(n, -1), found.reshape(n, -1))[:n, n:]
    order = linear_sum_assignment(-abs(correlation))[1]
    best = correlation[np.arange(n), order]
    return found[order] * np.sign(best)[:, None, None], abs(best)


def picture(result):
    from matplotlib.figure import Figure

    rows = {"photographs": result.photographs, "mixtures": result.mixtures}
    rows |= {name: result.found[name] for name in ("PCA", "sca")}
    figure = Figure(figsize=(6.4, 7), layout="constrained")
    for axes, (title, images) in zip(figure.subplots(4, 4), rows.items(), strict=True):
        for k, (ax, image) in enumerate(zip(axes, images, strict=True)):
            ax.imshow(image, cmap="gray")
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
            if title in result.correlation:
                ax.set_xlabel(f"correlation {result.correlation[title][k]:.3f}", fontsize=9)
        axes[0].set_ylabel(title)
    return figure


def main():
    result = analyze(*data())
    for name, correlation in result.correlation.items():
        print(f"{name:18}", correlation.round(4))
    picture(result).savefig(Path(__file__).with_suffix(".png"), dpi=80)


if __name__ == "__main__":
    main()
