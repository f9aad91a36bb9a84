"""Probabilistic PCA with missing values: 30 % of a data set filled in.

Ten years of monthly mean temperatures at 60 imaginary stations follow a yearly cycle, whose size and lag
differ from place to place, and a slow trend. Thirty percent of the readings are lost, and eight stations each
report nothing for a year and a half. `ppca` fits a normal distribution with few components to the readings
that are there, by an EM algorithm that never lowers its likelihood. `impute` replaces every gap by its
expectation given the other stations of the same month, and the posterior says how sure that is. Nothing is
deleted, and nothing is filled in beforehand. The smallest BIC of the same fits chooses the number of
components.

    python docs/examples/missing_values.py
"""

from pathlib import Path

import numpy as np

import spcacore

BLUE, ORANGE, GRAY = "#2b6ca3", "#d9772b", "#9aa3ab"


def make(seed=0, months=120, stations=60):
    """Temperatures (months, stations), and which readings are lost."""
    rng = np.random.default_rng(seed)
    t = np.arange(months)
    size, lag = rng.uniform(4, 13, stations), rng.uniform(-0.9, 0.9, stations)
    X = rng.uniform(4, 16, stations) + size * np.sin(2 * np.pi * (t[:, None] / 12) - lag)
    walk = np.cumsum(rng.standard_normal(months)) * 0.35
    X += np.outer(walk, rng.uniform(0.2, 1.2, stations)) + 0.8 * rng.standard_normal((months, stations))
    lost = rng.random(X.shape) < 0.3
    for j, start in enumerate(rng.integers(20, 80, 8)):
        lost[start : start + 18, j] = True
    return X, lost


def analyze(seed=0, most=6):
    """Fits of 1 to `most` components to what is left, and the errors of four ways to fill the gaps."""
    X, lost = make(seed)
    Y = np.where(lost, np.nan, X)
    models = [spcacore.ppca(Y, r) for r in range(1, most + 1)]
    best = min(models, key=lambda m: m.bic)
    filled = best.impute(Y)
    variance = np.einsum("jr,irs,js->ij", best.loadings, best.posterior_covariance(Y), best.loadings)
    deviation = np.sqrt(variance + best.noise_variance)
    mean = np.broadcast_to(np.nanmean(Y, axis=0), X.shape)
    rows = np.arange(len(X))
    line = np.stack(
        [np.interp(rows, rows[~gone], x[~gone]) for x, gone in zip(Y.T, lost.T, strict=True)], axis=1
    )
    first = spcacore.ppca(np.where(lost, mean, X), best.n_components)
    low_rank = first.transform(np.where(lost, mean, X)) @ first.loadings.T + first.mean
    error = {
        "mean of the station": mean, "line between neighbors": line,
        "PCA of data filled by means": low_rank, "probabilistic PCA": filled,
    }  # fmt: skip
    return {
        "X": X, "lost": lost, "filled": filled, "deviation": deviation, "model": best,
        "bic": np.array([m.bic for m in models]),
        "error": {name: float(np.sqrt(np.mean((X - Z)[lost] ** 2))) for name, Z in error.items()},
        "covered": float(np.mean(np.abs(X - filled)[lost] < 1.96 * deviation[lost])),
    }  # fmt: skip


def picture(result):
    """Two stations with their gaps, the error of each way to fill them, and the choice of components."""
    import matplotlib.pyplot as plt

    X, lost, filled, deviation = (result[name] for name in ("X", "lost", "filled", "deviation"))
    figure = plt.figure(figsize=(10, 6.4), layout="constrained")
    grid = figure.add_gridspec(3, 2, width_ratios=(2.1, 1), height_ratios=(1, 1, 0.05))
    t = np.arange(len(X)) / 12
    longest = np.lib.stride_tricks.sliding_window_view(lost, 18, axis=0).all(axis=2).any(axis=0)
    for row, station in enumerate(np.flatnonzero(longest)[[1, 2]]):
        axes = figure.add_subplot(grid[row, 0])
        gone = lost[:, station]
        band = 1.96 * deviation[:, station] * gone
        axes.fill_between(
            t, filled[:, station] - band, filled[:, station] + band, color=ORANGE, alpha=0.22, lw=0,
            label="95 % of the posterior",
        )  # fmt: skip
        axes.plot(t, filled[:, station], color=ORANGE, lw=1.3, label="filled in")
        axes.plot(
            t[gone], X[gone, station], "o", ms=3.2, mfc="white", mec=GRAY, mew=0.9, label="lost readings"
        )
        axes.plot(t[~gone], X[~gone, station], "o", ms=3.2, color=BLUE, label="readings that are left")
        axes.set(xlim=(0, 10), ylabel="temperature, °C")
        axes.set_title(f"Station {station + 1}", loc="left", fontsize=11)
        if row == 0:
            axes.tick_params(labelbottom=False)
            axes.legend(
                loc="upper right", ncols=2, fontsize=8, frameon=True, framealpha=0.9, edgecolor="none"
            )
            low, high = axes.get_ylim()
            axes.set_ylim(low, high + 0.35 * (high - low))
        else:
            axes.set_xlabel("year")
    axes = figure.add_subplot(grid[0, 1])
    names = list(result["error"])[::-1]
    values = [result["error"][name] for name in names]
    bars = axes.barh(range(4), values, color=[ORANGE] + [GRAY] * 3, height=0.62)
    axes.bar_label(bars, [f"{v:.2f} °C" for v in values], padding=3, fontsize=9)
    axes.set_yticks(
        range(4), [n.replace(" of ", "\nof ").replace(" between ", "\nbetween ") for n in names], fontsize=9
    )
    axes.set(xlim=(0, 1.3 * max(values)), xticks=[])
    axes.set_title("Error of the lost readings", loc="left", fontsize=11)
    axes.spines["bottom"].set_visible(False)
    axes = figure.add_subplot(grid[1, 1])
    bic = result["bic"] - result["bic"].min()
    r = np.arange(1, len(bic) + 1)
    axes.plot(r, bic, "-o", color=BLUE, ms=5)
    axes.plot(r[bic.argmin()], 0, "o", color=ORANGE, ms=9)
    axes.set(xlabel="components", ylabel="BIC above its least", xticks=r)
    axes.set_yscale("symlog", linthresh=100)
    axes.set_ylim(-30, 3 * bic.max())
    axes.set_title("How many components", loc="left", fontsize=11)
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def main():
    result = analyze()
    print(result["model"])
    for name, error in result["error"].items():
        print(f"{name:30s} {error:.2f}")
    print(f"{100 * result['covered']:.1f} % of the lost readings lie within the band of 95 %")
    picture(result).savefig(Path(__file__).with_suffix(".png"), dpi=110)


if __name__ == "__main__":
    main()
