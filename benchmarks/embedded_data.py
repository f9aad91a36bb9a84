"""Writes the embedded data of `spcacore.datasets` from their sources: `python benchmarks/embedded_data.py`.

It needs scanpy, which carries the blood cells, and Python 3.11, whose help topics are the text.
"""

import re
from collections import Counter
from pathlib import Path

import numpy as np
import scipy.sparse

ROOT = Path(__file__).resolve().parents[1]
GENES = 250


def write(name, **arrays):
    np.savez_compressed(ROOT / "spcacore" / name, **arrays)
    print(name, (ROOT / "spcacore" / name).stat().st_size)


def stocks():
    """The lower triangle, to four decimals."""
    with np.load(ROOT / "tests" / "data" / "snp500_correlation.npz") as file:
        A, tickers = file["A"], file["tickers"]
    write("stocks.npz", lower=np.rint(1e4 * A[np.tril_indices(len(A))]).astype(np.int16), names=tickers)


def blood_cells():
    """The genes of largest variance, as log-normalized counts to three decimals."""
    import scanpy

    raw = scanpy.datasets.pbmc68k_reduced()
    X = scipy.sparse.csr_matrix(raw.raw.X, dtype=np.float64)
    mean = np.asarray(X.mean(axis=0)).ravel()
    variance = np.asarray(X.multiply(X).mean(axis=0)).ravel() - mean**2
    kept = np.sort(np.argsort(-variance, kind="stable")[:GENES])
    X = X[:, kept].tocsr()
    X.sort_indices()
    write(
        "blood_cells.npz", data=np.rint(1e3 * X.data).astype(np.uint16), indices=X.indices.astype(np.uint8),
        counts=np.diff(X.indptr).astype(np.uint8), names=np.array(raw.raw.var_names[kept], np.str_),
        labels=np.array(raw.obs["bulk_labels"], np.str_),
    )  # fmt: skip


def help_topics():
    """Words of at least three letters in 3 topics or more, and at most half; topics of 50 such words."""
    from pydoc_data.topics import topics

    counts = {name: Counter(re.findall(r"[a-z]{3,}", text.lower())) for name, text in sorted(topics.items())}
    found = Counter(word for count in counts.values() for word in count)
    words = sorted(w for w, n in found.items() if 3 <= n <= len(counts) / 2)
    X = np.array([[count[w] for w in words] for count in counts.values()])
    long = X.sum(axis=1) >= 50
    X = scipy.sparse.csr_matrix(X[long])
    write(
        "help_topics.npz", data=X.data.astype(np.uint16), indices=X.indices.astype(np.uint16),
        counts=np.diff(X.indptr).astype(np.uint16), names=np.array(words),
        samples=np.array([name for name, kept in zip(counts, long, strict=True) if kept]),
    )  # fmt: skip


if __name__ == "__main__":
    stocks()
    blood_cells()
    help_topics()
