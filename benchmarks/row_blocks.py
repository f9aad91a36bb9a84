"""What data in blocks of rows cost: CPU time beside that in memory, and the constants of
docs/measured/row_blocks.md.

python benchmarks/row_blocks.py [--write]: one and two processes of one thread each, with four blocks of 32 MB
that are made there. CPU time is that of workers, scheduler and client together; what they spend idle counts.
With --estimate nothing is measured: only the estimate for a billion rows is written.
"""

import os
import signal
import statistics
import sys
import time
from contextlib import contextmanager

import numpy as np
import pages

P, ROWS, BLOCKS, R, REPEATS = 4000, 2000, 4, 10, 1
CASES = {
    "2 components of 20": (2, 20),
    "10 components of 20": (10, 20),
    "10 components of 50": (10, 50),
}


def make(block, n=ROWS, p=P):
    """Ten components of 50 variables each, of variance 12 to 3 in unit noise; float32."""
    rng = np.random.default_rng([1, block])
    X = rng.standard_normal((n, p), dtype=np.float32)
    X *= np.linspace(1.1, 1, p, dtype=np.float32)
    for t in range(R):
        size = np.sqrt(np.float32((12 - t) / 50))
        X[:, 50 * t : 50 * t + 50] += size * rng.standard_normal((n, 1), dtype=np.float32)
    return X + 1


def median(f):
    """Median CPU time of this process, in seconds."""
    return pages.timed(f, 3)[0]


def constants():
    """Of one block, on one core: nanoseconds an entry."""
    import scipy.sparse

    from spcacore.operators.block_operator import _first_rows, _products
    from spcacore.operators.moments import statistics as of_columns
    from spcacore.operators.problem import Affine

    X, some = make(0), np.arange(0, P, 100)
    S = scipy.sparse.random(20_000, 20_000, 0.005, "csr", np.float32, rng=0)
    dense, sparse, out = Affine().operator(X), Affine().operator(S), {}
    w = np.ones((len(some), 1), np.float32)
    for name, entries, run in (
        ("statistics", X.size, lambda: of_columns(X)),
        ("product with a vector of 40 nonzeros", X.size, lambda: _products(dense, some, w)),
        ("submatrix of 80 variables", X.size, lambda: _first_rows(dense, np.arange(80), 80)),
        ("32 columns of the covariance", X.size, lambda: _products(dense, np.arange(32), None)),
        ("64 columns of the covariance", X.size, lambda: _products(dense, np.arange(64), None)),
        ("CSR, a stored entry: statistics", S.nnz, lambda: of_columns(S)),
        ("CSR: product with a vector", S.nnz, lambda: _products(sparse, some, w)),
        ("CSR: 32 columns of the covariance", S.nnz, lambda: _products(sparse, np.arange(32), None)),
    ):
        out[name] = median(run) / entries
    return {name: 1e9 * value for name, value in out.items()}


def nothing(block):
    """The smallest task."""
    return np.zeros(1)


def estimate():
    """Ten components of 20 of a billion rows of a million variables, from constants near those measured."""
    n, p, r, k = 10**9, 10**6, 10, 20
    passes, task, link, dollars = 1 + 3 * r, 3e-3, 1.25e9, 2
    column, core = 4 * p, 32
    block = 50 * k * column
    lines = [
        "| | sparse, 1000 entries a row | dense |",
        "|---|---|---|",
        "| stored (float32, 32-bit indices) | 8 TB | 4 PB |",
        f"| a block returns | {column / 1e6:.0f} MB a column, {k * column / 1e6:.0f} MB for {k} | the same |",
    ]
    kinds = []
    for entries, size, first, more, workers, memory in (
        (1000 * n, 8, 5, 20, 40, 256), (p * n, 4, 0.7, 1.6, 10_000, 512)
    ):  # fmt: skip
        assert entries * size < workers * memory * 1e9
        blocks = entries * size / block
        hours = entries * (first + r * more) * 1e-9 / 3600
        tasks, sent = blocks * task, blocks * k * column / (workers * link)
        wall = hours / (workers * core) + (passes * tasks + r * sent) / 3600
        kinds.append(
            (
                f"{blocks:,.0f} of {block / 1e9:.0f} GB",
                f"10^{len(str(entries)) - 1} entries x ({first} + {r} x {more}) ns = {hours:,.0f} core hours",
                f"{tasks:.0f} s a pass" if tasks < 60 else f"{tasks / 60:.0f} minutes a pass",
                f"{blocks * k * column / 1e12:,g} TB",
                f"{workers:,} of {memory} GB and {core} cores",
                f"{sent:.0f} s a pass",
                f"{60 * wall:.0f} minutes" if wall < 1 else f"{wall:.0f} hours, nearly all of it tasks",
                f"about {float(f'{wall * workers * dollars:.1g}'):,.0f} dollars",
            )
        )
    names = (
        f"blocks, of {block // (k * column)} times that",
        "arithmetic: statistics, and three passes a component",
        f"tasks, {1e3 * task:.0f} ms each", "returned in a pass of columns", "workers that hold the data",
        "sent, at 10 Gb/s a worker", "in all", f"at an assumed {dollars} dollars an hour a worker",
    )  # fmt: skip
    lines += [f"| {name} | {a} | {b} |" for name, a, b in zip(names, *kinds, strict=True)]
    return "\n".join(lines)


@contextmanager
def cluster_of(n_workers):
    """A client, what counts the bytes that come to it, and X there."""
    import dask
    import dask.array as da
    from distributed import Client, LocalCluster, wait

    with (
        LocalCluster(
            n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=None,
            memory_limit="2GiB",
        ) as cluster,
        Client(cluster) as client,
    ):  # fmt: skip
        make_one = dask.delayed(make, pure=True)
        parts = [da.from_delayed(make_one(b), (ROWS, P), np.float32) for b in range(BLOCKS)]
        array = da.concatenate(parts).persist()
        wait(array)
        gather, come = client.gather, [0]

        def counted(futures, **options):
            found = gather(futures, **options)
            come[0] += size(found)
            return found

        client.gather = counted
        yield client, come, array


def size(found):
    if isinstance(found, (list, tuple)):
        return sum(map(size, found))
    if hasattr(found, "__dict__"):
        return size(list(vars(found).values()))
    return getattr(found, "nbytes", 0)


def cpu_of(client):
    return sum(client.run(time.process_time).values()) + time.process_time()


def overhead(client, array):
    """Of a pass of empty tasks: wall time, CPU time of a task, and that of the idle cluster in a second."""
    import spcacore
    from spcacore.operators.blocks import sum_parts

    blocks, passes = spcacore.row_blocks(array), 30
    blocks.reduced(sum_parts, nothing)
    start, wall = cpu_of(client), time.monotonic()
    for _ in range(passes):
        blocks.reduced(sum_parts, nothing)
    task = (cpu_of(client) - start) / passes / BLOCKS
    wall = (time.monotonic() - wall) / passes
    start = cpu_of(client)
    time.sleep(2)
    return wall, task, (cpu_of(client) - start) / 2


def in_process():
    """CPU times in memory, without and with screening, and of blocks of the same array; and the results."""
    import spcacore

    X = np.concatenate([make(b) for b in range(BLOCKS)])
    for name, (r, k) in CASES.items():
        ways = {
            "none": lambda r=r, k=k: spcacore.sparse_pca(X, r, k, method=spcacore.TPower(screening="none")),
            "auto": lambda r=r, k=k: spcacore.sparse_pca(X, r, k),
            "rows": lambda r=r, k=k: spcacore.sparse_pca(
                spcacore.row_blocks(X, block_bytes=X.nbytes // BLOCKS), r, k
            ),
        }
        found = {way: pages.timed(run, REPEATS) for way, run in ways.items()}
        yield name, {way: seconds for way, (seconds, _) in found.items()}, found["none"][1]


def on_cluster(client, come, array, kill=False):
    """Of each case the CPU and wall times, the bytes that come to the client, passes and result."""
    import spcacore
    from spcacore.operators.dask import DaskBlocks

    submit = DaskBlocks._submitted
    for name, (r, k) in CASES.items():
        seconds, walls = [], []
        for _ in range(1 if kill else REPEATS):
            blocks, killed = spcacore.row_blocks(array), []

            def kill_then_submit(self, *arguments, killed=killed):
                if self.passes == 3 and not killed:
                    killed.append(next(iter(client.run(os.getpid).values())))
                    os.kill(killed[0], signal.SIGKILL)
                return submit(self, *arguments)

            DaskBlocks._submitted = kill_then_submit if kill else submit
            come[0], start, wall = 0, 0.0 if kill else cpu_of(client), time.monotonic()
            result = spcacore.sparse_pca(blocks, r, k)
            walls.append(time.monotonic() - wall)
            seconds.append(0.0 if kill else cpu_of(client) - start)
        DaskBlocks._submitted = submit
        yield name, statistics.median(seconds), statistics.median(walls), come[0], blocks.passes, result
        if kill:
            return


def main():
    if {"--write", "--estimate"} & set(sys.argv):
        pages.rewrite("measured/row_blocks.md", "estimate", estimate())
    if "--estimate" in sys.argv:
        return
    lines = ["| on one core, of a block of 32 MB | ns an entry |", "|---|---|"]
    lines += [f"| {name} | {value:.2f} |" for name, value in constants().items()]
    print(*lines, sep="\n", flush=True)
    memory = {name: (times, result) for name, times, result in in_process()}
    found = {}
    for n_workers in (1, 2):
        with cluster_of(n_workers) as (client, come, array):
            wall, task, idle = overhead(client, array)
            for name, *told in on_cluster(client, come, array):
                print(name, n_workers, told[:4], flush=True)
                found[name, n_workers] = told
            if n_workers == 2:
                ((first, _, dying, _, _, again),) = on_cluster(client, come, array, kill=True)
    lines += [
        "",
        f"A pass of {BLOCKS} empty tasks takes {1e3 * wall:.0f} ms; each costs {1e3 * task:.1f} ms of CPU,",
        f"and the idle cluster {1e3 * idle:.0f} ms a second.",
        "",
        "| CPU time over memory's | screened | blocks | 1 worker | 2 workers | passes | MB a component |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, (times, expected) in memory.items():
        one, two = found[name, 1], found[name, 2]
        same = np.array_equal(one[-1].loadings, two[-1].loadings)
        assert same, "other bits with two workers"
        assert np.array_equal(one[-1].loadings != 0, expected.loadings != 0), "other supports than in memory"
        unit = times["none"]
        ratio = [times["auto"] / unit, times["rows"] / unit, one[0] / unit, two[0] / unit]
        lines.append(
            f"| {name} ({unit:.2f} s) | "
            + " | ".join(f"{x:.2f}" for x in ratio)
            + f" | {two[3]} | {two[2] / 1e6 / len(expected.cardinality):.1f} |"
        )
    assert np.array_equal(again.loadings, found[first, 2][-1].loadings)
    walls = found[first, 1][1], found[first, 2][1]
    lines += [
        "",
        f"{first.capitalize()} take {walls[0]:.2f} s with one worker, {walls[1]:.2f} s with two, and",
        f"{dying:.1f} s where one of two dies in the third pass, so that its blocks are made again. All",
        "loadings have the same bits.",
    ]
    text = "\n".join(lines)
    print(text)
    if "--write" in sys.argv:
        pages.rewrite("measured/row_blocks.md", "measured", text)


if __name__ == "__main__":
    main()
