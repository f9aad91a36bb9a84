"""The page docs/measured/performance.md, of what performance.py measures."""

import peers
from families import FAMILIES, K
from pages import origin, table

N = 500  # samples of the data of most rows

# Why a row is missed, for the document; by row
WHY: dict[int, str] = {
    3: "Most of the time of noise, and half of the time of genes, goes into races for what one start misses. "
    "The bytes read would allow a shorter time. In C order, the statistics and the quantized copy go "
    "through each panel of X twice. The starts take ten Gram matrices of 400 columns. The rest is "
    "reading the quantized copy, which one core does. With two BLAS threads, g itself is shorter.",
    4: "The loops add in an order that does not depend on the number of threads. Their threads sleep "
    "between loops. Threads of OpenMP, which spin, made calls far slower beside BLAS with two threads.",
    5: "The kernel meets the target. The public function also looks for the nonzeros of the loading, p "
    "numbers that are not in cache, in NumPy.",
    6: "Removing the component takes two products with it, and each reads 100 columns. A product "
    "afterwards costs nothing measurable.",
    8: "Three passes are made (start, one quasi-Newton step, rotation). Each takes as long as several "
    "reads, because the sums over the pairs of ten columns are limited by arithmetic. A tensor of "
    "fourth moments would have taken about as long.",
    9: "In C order the block is read once, but from three columns on the arithmetic of one core takes "
    "longer than the read: multiplications and additions are kept apart, so that results do not "
    "depend on the processor. In Fortran order a block of rows of a wide matrix does not fit in "
    "cache, and X is read twice.",
    10: "The quantized copy takes 50 MB here, and other numbers of each column about 20 MB. Parts of A in "
    "which searches race take up to 38 MB each, whatever the size of X.",
    11: "About half of it goes into making the classes of some ninety records.",
}


ROWS = {
    1: "screened result equal to the plain loop in every bit",
    2: "reads of X with setup",
    3: "time with setup, in g",
    4: "one plain iteration, in g",
    5: "data deflation in place, in g",
    6: "covariance projection deflation in a solver, in g = A @ v",
    7: "soft threshold at an l1 bound, in memcpys of the vector",
    8: "varimax, in reads of the loadings",
    9: "X'(XV) of 1 to 8 columns, in g",
    10: "peak memory of a whole call above X",
    11: "import of `sparse_pca` beyond NumPy and scipy.linalg",
}
TARGETS_2 = {"medium": 4.5, "gene": 6, "noise": 18}
TARGETS_3 = {"medium": 8, "gene": 12, "noise": 45}


def by_order(values, form="{:.1f}"):
    """C and F side by side."""
    return ", ".join(f"{order} {form.format(values[order])}" for order in "CF")


def summary(m):
    """(row, label, target, measured at each number of threads, met or None) of what was measured."""
    lines = []

    def add(row, label, target, cells, met):
        lines.append((row, label, target, cells, met))

    screened = {t: m[f"3 threads {t}"] for t in (1, 2) if m.get(f"3 threads {t}")}
    if screened:
        cells, met = {}, True
        for threads, results in screened.items():
            equal = [r["equal"] for r in results.values()]
            if threads == 1 and "modes" in m:
                equal += m["modes"].values()
            cells[threads] = f"{sum(equal)} of {len(equal)} cases"
            met &= all(equal)
        add(1, "six families, C and F, float32 and float64", "all", cells, met)
        for row, key, targets in ((2, "reads", TARGETS_2), (3, "time", TARGETS_3)):
            for family, target in targets.items():
                values = {
                    t: {order: results[f"{family} float64 {order}"][key] for order in "CF"}
                    for t, results in screened.items()
                }
                met = all(v <= target for of in values.values() for v in of.values())
                add(row, family, f"{target:g}", {t: by_order(v) for t, v in values.items()}, met)
    four = {t: m[f"4 threads {t}"] for t in (1, 2) if m.get(f"4 threads {t}")}
    for dtype in ("float64", "float32") if four else ():
        values = {t: {order: v[f"{dtype} {order}"] for order in "CF"} for t, v in four.items()}
        met = all(v <= 1.1 for of in values.values() for v in of.values())
        add(4, dtype, "1.1", {t: by_order(v, "{:.2f}") for t, v in values.items()}, met)
    five = m.get("5")
    for order, target in (("F", 0.005), ("C", 0.03)) if five else ():
        cell = f"{five[order]['call']:.4f} (kernel alone {five[order]['kernel']:.4f})"
        add(5, order, f"{target:g}", {1: cell}, five[order]["call"] <= target)
    if six := m.get("6"):
        cell = f"{six['update']:.4f}, and {six['product']:.4f} a product"
        add(6, "p = 10,000", "0.02", {1: cell}, six["update"] + six["product"] <= 0.02)
    if seven := m.get("7"):
        for dtype, v in seven.items():
            cell = f"worst {v['worst']:.1f} ({v['where']}), median {v['median']:.1f}"
            cell += f", over 8 in {v['over']} of {v['cases']}"
            add(7, f"p = 10⁶, {dtype}", "8", {1: cell}, v["worst"] <= 8)
    eight = m.get("8")
    for shape, target in (("1000000 x 10", 14), ("20000 x 50", 400)) if eight else ():
        cell = f"{eight[shape]['reads']:.0f}"
        if "numpy" in eight[shape]:
            cell += (
                f" (SVD iteration in NumPy {eight[shape]['numpy']:.0f}; "
                f"criterion over its: {eight[shape]['optimum']:.6f})"
            )
        add(8, shape.replace(" x ", " × "), f"{target}", {1: cell}, eight[shape]["reads"] <= target)
    if "9" in m:
        if nine := m["9"]:
            for order in "CF":
                blocks = [nine[f"{order} {c}"]["block"] for c in range(1, 9)]
                blas = [nine[f"{order} {c}"]["blas"] for c in range(1, 9)]
                cell = f"{' '.join(f'{b:.2f}' for b in blocks)} (BLAS {' '.join(f'{b:.1f}' for b in blas)})"
                add(9, order, "1.3", {1: cell}, max(blocks) <= 1.3)
        else:
            add(9, "", "1.3", {1: "not there yet"}, None)
    if ten := m.get("10"):
        for dtype, target in (("float64", 0.2), ("float32", None)):
            of = {key: v for key, v in ten.items() if dtype in key}
            worst = max(of, key=of.get)
            family, _, order = worst.split()
            add(
                10, dtype, f"{target:.0%}" if target else "–",
                {1: f"{of[worst]:.1%} ({family}, {order})"}, of[worst] <= target if target else None,
            )  # fmt: skip
    if eleven := m.get("11"):
        add(11, "", "20 ms", {1: f"{eleven['ms']:.1f} ms"}, eleven["ms"] <= 20)
    return lines


def document(m):
    parts = ["# How fast it is", *in_short(m)]
    if m.get("peers"):
        parts += peers_section(m)
    if m.get("3 threads 1"):
        parts += screening_section(m)
    parts += [*targets_section(m), *how_measured(m)]
    return "\n\n".join(parts) + "\n"


def in_short(m):
    """What the tables say, in sentences."""
    lines = []
    if found := m.get("peers"):
        (n1, p1, *_), (n2, p2, *_) = peers.SETS["small"], peers.SETS["large"]
        small, large = (
            [found[f"{package} {name}"]["seconds"] for package in ("spcacore", "expert NumPy")]
            for name in ("small", "large")
        )
        lines += [
            f"* On wide data ({n2} × {p2:,}) this package was {large[1] / large[0]:.1f} times as fast as a "
            "NumPy program written by an expert in this run, and much faster than the other Python packages.",
            f"* On small data ({n1} × {p1:,}) the expert's NumPy program is {small[0] / small[1]:.1f} times "
            "as fast as this package. Both take a fraction of a second.",
        ]
    if screened := m.get("3 threads 1"):
        saved = [r["plain"] / r["time"] for r in screened.values()]
        lines += [
            f"* [Screening](../glossary.md#screening) makes a search in {m['p']:,} variables "
            f"{min(saved):.1f} to {max(saved):.1f} times as fast, and does not change the result by a single "
            "bit. It saves most where components stand out, and least in pure noise.",
        ]
    return ["## Summary", "\n".join(lines)] if lines else []


def how_measured(m):
    parts = [
        "## How this was measured",
        "Times are ratios. They are medians, taken alternately in one process, on the same array, with the "
        "same number of BLAS threads: CPU time of one thread, wall time of two. Whole calls of over 10 s are "
        "timed once. Ratios of times vary from run to run and from machine to machine; reads, bits and "
        "memory do not.",
        f"Measured on {m['date']}: {m['machine']}.",
    ]
    if m["quick"]:
        parts.append("**A quick run**: fewer columns, fewer samples, one thread.")
    return [*parts, origin("performance", "performance", "--peers ")]


def targets_section(m):
    lines = summary(m)
    if not lines:
        return []
    parts = [
        "## Targets",
        "Goals that we set ourselves, and what was reached. The unit "
        "[g](../glossary.md#g) is the time of one `X.T @ u` by the BLAS in use. "
        f"Data are {N} × {m['p']:,} and float64, ten components of {K} nonzeros, unless said otherwise.",
    ]
    body, last = [], None
    for row, label, target, cells, met in lines:
        what = ROWS[row] if row != last else ""
        state = {True: "met", False: "**missed**", None: "–"}[met]
        number = row if row != last else ""
        body.append([number, what, label, target, cells.get(1, "–"), cells.get(2, "–"), state])
        last = row
    parts.append(table(["#", "what", "", "target", "1 thread", "2 threads", ""], body))
    missed = sorted({row for row, *_, met in lines if met is False})
    if missed:
        parts.append("Missed: " + "; ".join(f"row {row}, {ROWS[row]}" for row in missed) + ".")
        parts += [f"Row {row}: {WHY[row]}" for row in missed if row in WHY]
    else:
        parts.append("No target measured here is missed.")
    return parts


def screening_section(m):
    parts = [
        "## Screening, by kind of data",
        f"Each row is a whole call on {N} × {m['p']:,} data: ten components of {K} nonzeros from the default "
        'start. Compare the last column, the time of the screened call, with "plain time", the time of the '
        "search without screening; both are in g, one `X.T @ u`. Plain passes are the products with X that "
        "the plain search makes. [Reads](../glossary.md#read) count the bytes of X and of its "
        "quantized copy that the screened call reads, setup included, over the bytes of X. Cells are C order "
        "/ F order.",
        "\n".join(f"* *{name}*: {what}." for name, what in FAMILIES.items()),
        "A component that is no more correlated than noise is searched for again, where all columns of a "
        "part of A start, because its best support is easily missed: most of the time of *weak* and *noise*.",
    ]
    for threads in (1, 2):
        results = m.get(f"3 threads {threads}")
        if not results:
            continue
        rows = []
        for dtype in ("float64", "float32"):
            for family in FAMILIES:
                c, f = (results[f"{family} {dtype} {order}"] for order in "CF")
                rows.append(
                    [
                        family,
                        dtype,
                        c["passes"],
                        f"{c['plain']:.0f} / {f['plain']:.0f}",
                        c["mode"] if c["mode"] == f["mode"] else f"{c['mode']} / {f['mode']}",
                        f"{c['reads']:.1f} / {f['reads']:.1f}",
                        f"{c['time']:.1f} / {f['time']:.1f}",
                    ]
                )
        parts.append(f"{threads} BLAS thread{'s' * (threads > 1)}:")
        header = ["data", "", "plain passes", "plain time", "screening", "reads", "time"]
        parts.append(table(header, rows))
    return parts


def peers_section(m):
    def cells(package, name):
        result, planted = m["peers"][f"{package} {name}"], peers.R * peers.SETS[name][2]
        if "failure" in result:
            tried = f"; one fit takes {result['fit']:.0f}" if "fit" in result else ""
            return [result["failure"] + tried, "–", "–"]
        fits = f"{result['fits']:g}"
        if abs(result["nonzeros"] - planted) > 0.05 * planted:
            fits += f", unmatched: {result['nonzeros']:.0f} nonzeros for {planted}"
        return [f"{result['seconds']:.3g}", fits, f"{result['recall']:.2f}"]

    (n1, p1, k1, v1), (n2, p2, k2, v2) = peers.SETS["small"], peers.SETS["large"]
    rows = [[package, *cells(package, "small"), *cells(package, "large")] for package in peers.PACKAGES]
    return [
        "## What users of Python run today",
        f"Data with {peers.R} planted components (`make_spiked`) in unit noise. *Small* is {n1} × {p1:,} "
        f"with {k1} nonzeros in each component and variances {', '.join(f'{v:g}' for v in v1)}. *Large* is "
        f"{n2} × {p2:,} with {k2} nonzeros and variances {', '.join(f'{v:g}' for v in v2)}. Times are CPU "
        f"seconds of one thread, the median over at most {peers.DRAWS} draws (as many as a package finishes "
        f"in {m['limit']:g} s). Recall is the share of the planted variables that is found: 1 is all.",
        "All packages find equally many nonzeros: a penalty was bisected until they agreed to 5 %. The time "
        "is for the last fit alone; the column beside it counts the fits it took to get there. A package "
        f"may use {peers.MEMORY >> 30} GiB.",
        table(["", "small: CPU s", "fits", "recall", "large: CPU s", "fits", "recall"], rows),
        f"For scale, `X.T @ u` takes {1e3 * m['unit large']:.1f} ms on the large set. "
        "`sparse-decomposition` 0.1.0 cannot be imported: its wheel lacks the modules. `nnpcapy` 0.1.0 has "
        "no parameter for sparsity. "
        "Versions: " + ", ".join(f"{name} {v}" for name, v in m["peer versions"].items()) + ".",
    ]
