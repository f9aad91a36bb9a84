"""The examples in docstrings and in the README give the output they show."""

import ast
import doctest
import importlib.util
import inspect
import pkgutil
import re
import runpy
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from calls import SETTINGS
from extras import lacking, skipping
from processes import output_of

import spcacore
from spcacore import _limits

ROOT = Path(__file__).resolve().parents[2]
PAGES = [page for page in sorted((ROOT / "docs").rglob("*.md")) if ">>> " in page.read_text()]
MARKS = {"single_cells": [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]}  # those of scanpy
MODULES = [
    m.name
    for m in pkgutil.walk_packages(spcacore.__path__, "spcacore.")
    if not m.name.endswith(("_core", "__main__"))
]


@pytest.fixture(autouse=True)
def _figures(monkeypatch):
    """Examples draw without a screen, and leave no figure open."""
    monkeypatch.setenv("MPLBACKEND", "agg")
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")


class Lacking(Exception):
    """An example needs a package that is not installed."""


class Runner(doctest.DocTestRunner):
    package = None  # the last that was missing; a name that is not defined may be one of those given up

    def report_unexpected_exception(self, out, test, example, exc_info):
        found = lacking(exc_info[1])
        if found is None and not (self.package and isinstance(exc_info[1], NameError)):
            return super().report_unexpected_exception(out, test, example, exc_info)
        self.package = found or self.package
        raise Lacking(f"{test.name} needs {self.package}")


def check(tests):
    """That examples give what they show; those that need what is not installed skip the test, but last."""
    runner, skipped = Runner(), []
    for test in tests:
        try:
            runner.run(test, clear_globs=False)
        except Lacking as error:
            skipped.append(str(error))
    assert runner.summarize().failed == 0
    if skipped:
        pytest.skip(", ".join(skipped))


def check_page(path):
    """The blocks of a page in Markdown, each of which may use what those before it define."""
    text = path.read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    assert sum(block.count(">>> ") for block in blocks) == text.count(">>> ") > 0
    tests = [
        doctest.DocTestParser().get_doctest(block, {}, f"{path.name}, block {i}", str(path), 0)
        for i, block in enumerate(blocks, 1)
    ]
    for test in tests:
        test.globs = tests[0].globs
    check(tests)


@pytest.mark.share(12)
@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    with skipping():
        module = importlib.import_module(name)
    check(doctest.DocTestFinder().find(module))


def test_examples_of_the_methods_of_estimators():
    """They stand in other modules than the one that the estimators name as theirs."""
    with skipping():
        from spcacore import sklearn as estimators
    methods = {
        method
        for name in estimators.__all__
        for kind in getattr(estimators, name).__mro__
        if kind.__module__.startswith("spcacore")
        for method in vars(kind).values()
        if inspect.isfunction(method) and ">>> " in (method.__doc__ or "")
    }
    assert len(methods) > 20
    ordered = sorted(methods, key=lambda method: (method.__module__, method.__qualname__))
    check([test for m in ordered for test in doctest.DocTestFinder().find(m, m.__qualname__, module=False)])


def test_every_public_function_is_documented_in_full():
    for name in spcacore.__all__:
        thing = getattr(spcacore, name)
        if inspect.isfunction(thing) and name not in SETTINGS:
            for section in ("Parameters", "Returns", "Raises", "References", "Examples"):
                assert f"\n{section}\n---" in inspect.getdoc(thing), (name, section)
            for parameter in inspect.signature(thing).parameters:
                assert parameter in thing.__doc__, (name, parameter)


def test_readme_example(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check_page(ROOT / "README.md")


def cells(page, section, row, column):
    """Entries of the first table under a title, of the rows whose first entries match."""
    table = re.search(rf"(?ms)^#+ {section}\n.*?(^\|.*?)(?:^$|\Z)", (ROOT / "docs" / page).read_text())[1]
    return [line.split("|")[column].strip() for line in re.findall(rf"(?m)^\| {row} \|.*", table)]


def cell(*place):
    (entry,) = cells(*place)
    return entry


def test_claims_of_the_readme_are_those_of_the_measurements():
    table = (ROOT / "README.md").read_text().partition("## What to expect\n")[2].partition("## ")[0]
    users = "measured/performance.md", "What users of Python run today"
    genes = "measured/methods.md", "Gene expression, 72 × 7129"
    real = "measured/real_data.md", "Data, by default", "all of these"
    ours, expert = (float(cell(*users, row, 5)) for row in ("spcacore", "expert NumPy"))
    assert "Five planted components of 500" in table
    assert (
        "take 0.06 to 0.2 s on one core: two fifths (without AVX-512) to a seventh of the time of an expert"
        in table
    )
    assert 0.06 <= ours <= 0.2
    assert 1 / 7 < ours / expert < 0.4
    assert "fit of scikit-learn's `SparsePCA` takes half a minute to a minute" in table
    assert 25 < float(cell(*users, "scikit-learn SparsePCA", 5).partition("one fit takes ")[2]) < 65
    ours, expert = (float(cell(*users, row, 2)) for row in ("spcacore", "expert NumPy"))
    assert "takes 0.03 to 0.05 s, 1.4 to 2.6 times as long as the expert's" in table
    assert 0.03 <= ours <= 0.05
    assert 1.4 <= ours / expert <= 2.6

    ours, theirs = r"as they are \| sparse_pca, 50 each", r"as they are \| scikit-learn SparsePCA"
    assert "found about 20 times as fast" in table
    assert 15 < float(cell(*genes, ours, 4)) < 30
    assert f"{cell(*genes, ours, 6)} % of the variance, not {cell(*genes, theirs, 6)} %" in table
    of = "measured/sparse_data.md", "Sparse data"
    seen, texts = (list(map(float, cells(*of, rf"{r} \| CS[RC]", 7))) for r in (r"[bp][^|]+", r"words[^|]+"))
    assert "Cells and blogs are searched 1.3 to 4 times as fast" in table
    assert (len(seen), min(seen), round(max(seen))) == (8, 1.3, 4)
    assert f"random texts {min(texts)} to {max(texts)} times" in table
    halves = cells("measured/real_data.md", "The sets", r"[^|]+ \| [^|-]+", 3)[1:]
    assert f"In {cell(*real, 2)} cases from {len(halves)} sets of real data" in table
    assert f"within 0.2 % of the best component known in {cell(*real, 5)} % of the cases" in table


def test_pages_for_users_are_short():
    """Words outside of code. What only developers need is in docs/developer and docs/measured."""
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "guide").glob("*.md")]
    words = {page.name: len(re.sub(r"(?s)```.*?```", " ", page.read_text()).split()) for page in pages}
    assert max(words.values()) <= 1200, words
    assert sum(words.values()) <= 12_000, words


def test_how_to_install_is_said_so_that_it_works():
    """The package is in no index, so extras are those of the source directory; groups need a new pip."""
    extras = set(re.findall(r"(?m)^(\S+) = \[", (ROOT / "pyproject.toml").read_text()))
    files = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.rst")]
    for file in (*files, *(ROOT / "spcacore").rglob("*.py")):
        text = file.read_text()
        assert "spcacore[" not in text, file
        for named in re.findall(r"""["']\.\[([\w,-]+)\]["']""", text):
            assert set(named.split(",")) <= extras, (file, named)
        assert "install --group" not in text or "pip 25.1" in text, file


SECTORS = {  # by the Global Industry Classification Standard
    "Utilities": "ED XEL WEC DUK",
    "Real Estate": "WELL O AVB UDR",
    "Consumer Staples": "GIS K CPB KMB",
    "Energy": "DVN APA COP EOG",
    "Financials": "KEY TFC RF FITB",
    "Information Technology": "MCHP ON AMAT ADI",
}


def test_the_stocks_of_the_readme():
    """What the words below the picture say, and the labels of its columns."""
    stocks = spcacore.datasets.load_stocks()
    A = stocks.correlation
    result = spcacore.sparse_pca(A, 6, cardinality=20, kind="covariance")
    leading = [{stocks.names[j] for j in np.argsort(-abs(v))[:4]} for v in result.loadings.T]
    assert leading == [set(names.split()) for names in SECTORS.values()]
    shares, ordinary = result.explained_variance_ratio.sum(), np.linalg.eigvalsh(A)[-6:].sum() / np.trace(A)
    readme = (ROOT / "README.md").read_text()
    typed = (ROOT / "docs" / "_static" / "browser.html").read_text()
    assert all(line in typed for line in re.findall(r"(?m)^>>> (.+?)(?:  #|$)", readme)[:4])
    caption = " ".join(readme.split())
    assert f"Together these components explain {100 * shares:.1f} % of the variance" in caption
    assert f"each of all {len(A)} stocks, explain {100 * ordinary:.1f} %" in caption


@pytest.mark.share(9)
@pytest.mark.parametrize(
    "page", [pytest.param(page, id=page.stem, marks=MARKS.get(page.stem, ())) for page in PAGES]
)
def test_examples_on_pages(page, tmp_path, monkeypatch):
    """Of docs/*.md; what they write goes to a folder of its own."""
    monkeypatch.chdir(tmp_path)
    check_page(page)


def test_every_public_name_is_in_the_reference():
    listed = set("\n".join(page.read_text() for page in (ROOT / "docs" / "reference").glob("*.rst")).split())
    assert not {n for n in spcacore.__all__ if not inspect.ismodule(getattr(spcacore, n))} - listed


def test_pages_have_no_python_that_is_not_run():
    """Each block shows its output, but for parts of programs that have tests of their own."""
    elsewhere = {ROOT / "docs" / name for name in ("distributed.md", "developer/downstream.md")}
    for page in set((ROOT / "docs").rglob("*.md")) - elsewhere:
        for block in page.read_text().split("```python\n")[1:]:
            assert block.startswith(">>> "), page


def test_calls_between_words_have_arguments_that_exist():
    """Of pages and docstrings, but for two pages that also have calls of R and of 0.2."""
    with skipping():
        modules = spcacore, *map(importlib.import_module, ("spcacore.sklearn", "spcacore.plot"))
    public = {name: getattr(module, name) for module in reversed(modules) for name in module.__all__}
    pages, others = (ROOT / "docs").rglob("*.md"), ("coming_from_r.md", "renamed.md")
    seen = 0
    for file in [page for page in pages if page.name not in others] + [*(ROOT / "spcacore").rglob("*.py")]:
        for code in re.findall(r"(?<!`)(?:`|``)([^`]+)`", file.read_text()):
            with suppress(SyntaxError, ValueError):
                for call in ast.walk(ast.parse(" ".join(code.split()))):
                    if isinstance(call, ast.Call):
                        named = call.args[:1] if ast.unparse(call.func) == "partial" else [call.func]
                        thing = public.get(ast.unparse(named[0]).removeprefix("spcacore.")) if named else None
                        words = {word.arg for word in call.keywords}
                        seen += bool(thing and words)
                        assert not thing or words <= set(inspect.signature(thing).parameters), (file, code)
    assert seen > 40, seen


def test_links_between_pages():
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
            made = target.removeprefix("../").startswith("pictures/")  # when the pages are built
            assert made or re.match(r"\w+:", target) or (page.parent / target).exists(), (page, target)


LIMITS = [
    ("docs/guide/cardinality.md", "up to 3000 variables", "EXACT_ORDER", 3000),
    ("docs/guide/cardinality.md", "at most 2000 variables", "RELAXATION_ORDER", 2000),
    ("docs/developer/bounds.md", "Beyond 2000 variables", "BOUND_ORDER", 2000),
    ("docs/developer/bounds.md", "beyond 3000 they come", "LEADING_ORDER", 3000),
    ("docs/developer/bounds.md", "at most 2000, else", "WIDE_SAMPLES", 2000),
    ("docs/measured/generalized.md", "at most 150 variables", "USUAL_BACKWARD_ORDER", 150),
    ("docs/measured/generalized.md", "more than 4e10 multiplications", "PENCIL_GREEDY_WORK", 4e10),
    ("docs/measured/kernel.md", "up to 500 samples", "LAPACK_ORDER", 500),
    ("docs/measured/kernel.md", "512 x 512 entries at a time", "TILE_ROWS", 512),
    ("docs/measured/kernel.md", "exceeds `memory_limit` (2 GiB)", "KERNEL_BYTES", 2 << 30),
    ("docs/developer/inputs.md", "at most 1 GB of columns", "KEPT_BYTES", 1 << 30),
    ("docs/distributed.md", "With up to 3072 variables", "GRAM_BLOCKS_ORDER", 3072),
    ("docs/distributed.md", "at most 1 GB of", "KEPT_BYTES", 1 << 30),
    ("docs/guide/choice.md", "With up to 12 variables", "SIGNED_ORDER", 12),
    ("docs/developer/blocks.md", "32 at a time", "COLUMNS_AT_A_TIME", 32),
    ("docs/developer/blocks.md", "Up to 256 variables", "FETCH_ALL_ORDER", 256),
    ("docs/developer/blocks.md", "at most 16,384 of them", "BLOCKS_SUBMATRIX_ORDER", 16384),
]


@pytest.mark.parametrize(("page", "words", "name", "value"), LIMITS)
def test_limits_on_pages_are_those_of_the_code(page, words, name, value):
    assert words in (ROOT / page).read_text()
    assert getattr(_limits, name) == value


def test_statuses_on_the_page_are_those_of_the_core():
    row = r"(SPCACORE_\w+)`? (?:=|\|) (-?\d+)"
    page = re.findall(row, (ROOT / "docs" / "developer" / "downstream.md").read_text())
    assert page == re.findall(row, (ROOT / "spcacore" / "_core.pxd").read_text())
    assert len(page) == 10


IMPORTS = {  # and what has not come in after each and those before it
    "import spcacore": "spcacore.models spcacore.solvers spcacore.operators click pandas threadpoolctl",
    "from spcacore import row_blocks, sparse_pca": "spcacore.clustering spcacore.generalized",
    "sparse_pca(np.eye(4), 1, 2), sparse_pca(row_blocks(np.eye(4)), 1, 2)": "dask",
    "from spcacore.cli import options": "matplotlib pandas pyarrow h5py spcacore.plot spcacore.cli.runs",
    "import spcacore.plot": "matplotlib",
}
FEW = "scipy.sparse csv importlib.resources email"


def test_import_brings_in_little():
    """scipy.sparse would more than double the time of the import; before it is imported, X cannot need it."""
    asked = [name for name in IMPORTS if "cli" not in name or importlib.util.find_spec("click")]
    script = "import sys, numpy as np, scipy.linalg; before = set(sys.modules)\n"
    told = output_of(script + "\n".join(f"{name}; print(*set(sys.modules) - before)" for name in asked))
    for i, (name, modules) in enumerate(zip(asked, told.splitlines(), strict=True)):
        assert "spcacore._core" in modules.split()
        for absent in IMPORTS[name].split() + FEW.split() * (i < 2):
            assert not re.findall(rf"(?:^| ){re.escape(absent)}\b", modules), (name, absent)


def test_what_is_imported_late_is_there_as_if_it_were_not():
    script = (
        "import spcacore; assert set(spcacore.__all__) <= set(dir(spcacore));"
        "before = set(vars(spcacore)); from spcacore import *; print(*set(spcacore.__all__) - before);"
        "assert sparse_lda is spcacore.sparse_lda is spcacore.generalized.lda.sparse_lda"
    )
    assert {"sparse_lda", "soppca", "KernelPCAResult"} <= set(output_of(script).split())
    with pytest.raises(AttributeError, match="no attribute 'sparse_pcca'"):
        spcacore.sparse_pcca  # noqa: B018


def test_version_is_that_of_the_build():
    build = (Path(__file__).resolve().parents[2] / "meson.build").read_text(encoding="utf-8")
    assert f"version: '{spcacore.__version__}'" in build
    assert "__version__" in dir(spcacore)


def test_the_command_names_what_it_lacks(monkeypatch, capsys):
    """One sentence where its extra is not installed."""
    monkeypatch.setitem(sys.modules, "click", None)
    assert importlib.import_module("spcacore.cli").main(["--version"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("spcacore: the command needs click")
    assert err.count("\n") == 1


def test_python_m_is_the_command(monkeypatch, capsys):
    pytest.importorskip("click")
    pytest.importorskip("pandas")
    monkeypatch.setattr(sys, "argv", ["spcacore", "--version"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("spcacore.cli", run_name="__main__")
    assert not ended.value.code
    assert capsys.readouterr().out.split() == ["spcacore", spcacore.__version__]
