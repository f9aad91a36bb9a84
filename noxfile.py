"""The checks: `nox --list` names them, `nox -s lint docs` runs some, and `.ci/run` those that must pass.

A check that cannot run here, for want of a compiler or a version of Python, fails; `.ci/run --may-skip`, or
SPCACORE_MAY_SKIP=1 in the environment, lets it be skipped, which the summary then counts.
"""

import ast
import atexit
import glob
import json
import os
import re
import shutil
import tempfile
from itertools import pairwise
from pathlib import Path

import nox

ROOT = Path(__file__).parent
CORE = ROOT / "tests" / "core"
TABLE = (CORE / "checks.h").read_text()
RARE = int(re.search(r"RARE = (\d+)", TABLE)[1])  # one trial of a rarer check takes seconds
CHECKS = [name for name, share in re.findall(r"ROW\((\w+), (\d+)", TABLE) if int(share) > RARE]
BUILD = "meson-python>=0.18", "meson>=1.5", "Cython>=3.1", "scipy>=1.13", "ninja"
NO_ABI3 = "-Csetup-args=-Dpython.allow_limited_api=false"
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
# Of tables, and more examples of properties, for what must hold of every line or kernel
ALL_CASES = "--all-cases", "--hypothesis-profile", "repeatable"
EXAMPLES = (
    "tests/house/test_documentation.py",
    "tests/house/test_examples.py",
    "tests/house/test_dendrograms.py",
)
SPELLED = (
    "spcacore",
    "src_c",
    "docs",
    "tests",
    "benchmarks",
    "noxfile.py",
    *sorted(str(page) for page in ROOT.glob("*.md")),
)
MAY_SKIP = os.environ.get("SPCACORE_MAY_SKIP", "") not in ("", "0")

PYENV = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
os.environ["PATH"] += "".join(f":{path}" for path in sorted(glob.glob(f"{PYENV}/versions/3.1[1-9].*/bin")))
os.environ |= {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_QUIET": "1"}
WORK = Path(tempfile.mkdtemp(prefix="spcacore-"))  # what one session leaves to the next
atexit.register(shutil.rmtree, WORK, ignore_errors=True)
os.environ["PYTHONPYCACHEPREFIX"] = str(WORK / "bytecode")
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
nox.needs_version = ">=2024.4"
nox.options.default_venv_backend = "venv"
nox.options.sessions = ["readme", "bare", "kernels", "docs", "lint", "types"]


def first(*versions):
    """The first of some versions of Python that is here."""
    return next((version for version in versions if shutil.which(f"python{version}")), versions[0])


USUAL, OLDEST = first("3.12", "3.11", "3.13"), first("3.11", "3.12")
NEWEST = first("3.14", "3.13", "3.12", "3.11")


def tests_of(*modules):
    """The paths of files of tests, wherever they are below tests/."""
    found = {path.stem: str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")}
    return [found[module] for module in modules]


def leave_out(session, what):
    """Skip where that is allowed, else fail."""
    (session.skip if MAY_SKIP else session.error)(f"{what}; --may-skip allows to leave it out")


def here(command, *packages):
    """Whether a command is here, installed by apt-get where we may."""
    if not shutil.which(command) and os.geteuid() == 0 and shutil.which("apt-get"):
        os.system(f"apt-get -qq update && apt-get -qq install -y {' '.join(packages)} >/dev/null")
    return shutil.which(command) is not None


CLANG = "clang-14", "clang-14", "libclang-rt-14-dev"
VALGRIND = "valgrind", "valgrind"


def wheel_of(session):
    """The package, built once, by the oldest Python here, for all sessions that ask for no options."""
    place = WORK / "wheel"
    if not list(place.glob("*.whl")):
        session.run(f"python{OLDEST}", "-m", "venv", WORK / "build", external=True)
        pip = WORK / "build" / "bin" / "pip"
        session.run(pip, "wheel", "--no-deps", "--wheel-dir", place, ROOT, external=True)
    return str(next(place.glob("*.whl")))


def environment(session, *packages, build=(), groups=()):
    """Install packages for a session, without isolation where `build` has options; return a directory."""
    session.install("--upgrade", "pip")
    for group in groups:
        session.install("--group", group)
    if build:
        session.install(*BUILD, "setuptools")  # by which a package of the tests without a wheel is built
        session.install("--no-build-isolation", *build, *packages)
    elif packages:
        built = wheel_of(session) if any(package.startswith(".[") for package in packages) else ""
        session.install(*(re.sub(r"^\.(?=\[)", built, package) for package in packages))
    return Path(tempfile.mkdtemp(prefix=f"spcacore-{session.name}-"))


def meson(session, out, *options, compiler="gcc"):
    """A build of the harness alone, without Python: https://mesonbuild.com/Unit-tests.html."""
    strict = "-Dwerror=true", "-Dwarning_level=3"
    session.run("meson", "setup", out, "-Dpython.allow_limited_api=false", *strict, *options,
                env={"CC": compiler}, silent=True)  # fmt: skip
    return out


def run_suites(session, build, *options, **more):
    """Tests of a build of the harness, of which each suite must have some: Meson passes where it has none."""
    for option, suite in pairwise(options):
        listed = "meson", "test", "-C", build, "--list", "--suite", suite
        if option == "--suite" and f":{suite}" not in session.run(*listed, silent=True):
            session.error(f"the harness has no tests of the suite {suite}")
    session.run("meson", "test", "-C", build, "--print-errorlogs", *options, **more)


# ---- quick -----------------------------------------------------------------------------------------


@nox.session(python=OLDEST)
def readme(session):
    """The two commands of the README in a fresh environment, with every extra."""
    commands = re.findall(r"^\$ (pip install .*)$", (ROOT / "README.md").read_text(), re.M)[:2]
    if len(commands) < 2:
        session.error("the README has no two commands that install")
    for command in commands:
        session.run("bash", "-ec", command, external=True)


def of_extras():
    """The tests that use what may not be installed: their text names tests/extras.py, or what does so."""
    trees = {path.stem: ast.parse(path.read_text()) for path in (ROOT / "tests").rglob("*.py")}
    uses, tests = {}, []
    for module, tree in trees.items():
        known = {}  # what is imported from another file of tests
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (other := (node.module or "").split(".")[-1]) in trees:
                known |= {alias.asname or alias.name: (other, alias.name) for alias in node.names}
        for node in tree.body:
            own, names, used = getattr(node, "name", ""), [], set()
            for inner in ast.walk(node):
                if isinstance(inner, ast.Name):
                    used.add(known.get(inner.id, (module, inner.id)))
                    names += [inner.id] * (isinstance(inner.ctx, ast.Store) and not own)
                elif isinstance(inner, ast.Attribute):
                    owner = "extras" if inner.attr == "importorskip" else getattr(inner.value, "id", "")
                    used.add((owner, inner.attr))
                elif isinstance(inner, ast.arg):  # a fixture
                    used |= {(module, inner.arg), ("conftest", inner.arg)}
            for name in names or [own]:
                uses.setdefault((module, name), set()).update(used)
            tests += [(module, own)] * own.startswith("test_")
    found = {name for used in uses.values() for name in used if name[0] == "extras"}
    while more := {name for name, used in uses.items() if name not in found and used & found}:
        found |= more
    whole = {module for module, name in found if not name}  # skipped as a file
    chosen = {tests_of(module)[0] + f"::{name}" * (module not in whole) for module, name in tests
              if module in whole or (module, name) in found}  # fmt: skip
    return sorted(chosen)


@nox.session(python=NEWEST)
def bare(session):
    """What a lack of extras could decide, on the newest Python, in random order, BLAS by one thread.

    That is: every call, the command, and the tests that use an extra.
    """
    environment(session, ".[test]", "pytest-randomly")
    files = (
        "tests/models/test_components.py",
        "tests/operators/test_operator.py",
        "tests/every_call/test_calls.py",
        "tests/cli",
    )
    session.run("pytest", "-n", "auto", *of_extras(), *files, *session.posargs, env=ONE_THREAD)


@nox.session(python=NEWEST)
def docs(session):
    """The documentation, with warnings as errors, and the examples that the default run leaves out."""
    work = environment(session, ".[all,test]", groups=["docs"])
    session.run("sphinx-build", "-j", "auto", "-q", "-W", "--keep-going", "-b", "html", "docs", work / "html")
    session.run(
        "pytest",
        "-n",
        "auto",
        "-m",
        "slow",
        *tests_of("test_documentation", "test_examples", "test_dendrograms"),
    )


@nox.session(python=USUAL)
def lint(session):
    """The linters of Python, C, Cython, shell and spelling."""
    environment(session, groups=["lint"])
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    sources = [*ROOT.glob("src_c/**/*.[ch]"), *ROOT.glob("tests/**/*.[ch]")]
    session.run("clang-format", "--dry-run", "-Werror", *map(str, sources))
    session.run("cython-lint", "spcacore", "tests/downstream")
    session.run("codespell", *SPELLED)
    for script in ROOT.glob(".ci/*"):
        if script.read_text().startswith("#!/usr/bin/env bash"):
            session.run("bash", "-n", script, external=True)


@nox.session(python=USUAL)
def types(session):
    """The annotations, by mypy; what users see of them, by mypy --strict and pyright."""
    work = environment(session, ".[sklearn]", "mypy>=1.15", "pyright[nodejs]>=1.1.400")
    session.run("mypy", "spcacore")
    session.chdir(work)  # away from the source, so that the package is the installed one
    session.run("mypy", "--strict", str(ROOT / "tests" / "typing"))
    asked = "pyright", "--verifytypes", "spcacore", "--ignoreexternal", "--outputjson"
    told = session.run(*asked, silent=True, success_codes=[0, 1])
    share = json.loads(told[told.index("{") :])["typeCompleteness"]["completenessScore"]
    if share < 0.98:
        session.error(f"pyright knows the types of {share:.1%} of the symbols, of 98 %")


@nox.session(python=USUAL)
def kernels(session):
    """Tests that BLAS or clones of kernels could decide, under each choice, by 1 or 2 threads in turn."""
    # OpenBLAS 0.3.34 of later ones crashes if Haswell's kernels are asked for on a processor with AVX-512
    work = environment(session, ".[test]", "pytest-randomly", "numpy<2.5.1")
    session.run("bash", ".ci/kernels", str(work), external=True)


# ---- thorough --------------------------------------------------------------------------------------


@nox.session(python=USUAL)
def slow(session):
    """What `pytest` leaves out: long tests, the other cases of tables, and more examples of properties."""
    environment(session, ".[test-all]")
    options = "-m", "slow or hypothesis", "--hypothesis-profile", "repeatable"
    session.run("pytest", "-n", "auto", *options, *session.posargs)


@nox.session(python=USUAL)
def every_kernel(session):
    """Those of `kernels` and of clones under each choice and the usual one, with all cases of tables."""
    # OpenBLAS 0.3.34 of later ones crashes if Haswell's kernels are asked for on a processor with AVX-512
    work = environment(session, ".[test]", "pytest-randomly", "numpy<2.5.1")
    session.run("bash", ".ci/kernels", str(work), *ALL_CASES, external=True)


@nox.session(python=OLDEST)
def wheel(session):
    """Distributions are complete and repeatable; the wheel serves Python 3.11 to 3.13, NumPy old and new."""
    work = environment(
        session, "build", *BUILD, "auditwheel", "abi3audit", "cyclonedx-python-lib[json-validation]"
    )
    session.run("bash", ".ci/wheel", str(work), external=True)
    (built,) = map(str, (work / "dist1").glob("*-cp311-abi3-*.whl"))
    core = tests_of(
        "test_downstream",
        "test_c_interface",
        "test_c_functions",
        "test_operator",
        "test_components",
        "test_deflation",
    )
    test = "pytest", "pytest-xdist", "hypothesis", "threadpoolctl"
    old = {"3.11": ("1.26.0", "1.13.0"), "3.12": ("1.26.0", "1.13.0"), "3.13": ("2.1.0", "1.14.1")}
    missing = [version for version in old if not shutil.which(f"python{version}")]
    session.chdir(work / "sdist")  # without spcacore: the tests see what is installed

    def fresh(name, version, *packages):
        session.run(f"python{version}", "-m", "venv", work / name, external=True)
        session.run(work / name / "bin" / "pip", "install", *packages, external=True)
        return lambda program, *options: session.run(
            work / name / "bin" / program, *options, external=True, env=ONE_THREAD
        )

    for version, (numpy, scipy) in old.items():
        if version not in missing:
            fresh(f"new{version}", version, built, *test)("pytest", "-q", "-n", "2", *core[:2])
            pins = f"numpy=={numpy}", f"scipy=={scipy}"
            fresh(f"old{version}", version, *pins, built, *test)("pytest", "-q", "-n", "2", *core)
    down = fresh("down", NEWEST, f"{built}[all]", *test, *BUILD, "numba", "mypy")
    down("pytest", "-q", "-m", "slow or not slow", core[0])
    allow = "--allowlist", "tests/stubtest.txt", "--ignore-unused-allowlist"
    down("python", "-m", "mypy.stubtest", "spcacore._core", "--mypy-config-file", "pyproject.toml", *allow)
    if missing:
        leave_out(session, f"Python {', '.join(missing)} is not here")


WITH_CLONES = "-Db_lundef=false", "-Dbuildtype=debugoptimized"
SANITIZED = *WITH_CLONES, "-Dclones=false"
HALT = {
    "ASAN_OPTIONS": "detect_stack_use_after_return=1:strict_string_checks=1",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=1",
}
HARNESS = {  # what must be here; compiler; options of Meson; options of its tests
    "plain": ((), "gcc", ["-Dclones=false", "-Dharness=100"], ["--suite", "turns"]),
    "clones": ((), "gcc", ["-Dharness=100"], ["--suite", "turns"]),
    "asan": ((), "gcc", [*WITH_CLONES, "-Db_sanitize=address,undefined", "-Dharness=50"],
             ["--suite", "turns", "--suite", "corpus"]),
    "ubsan": (CLANG, "clang-14", [*SANITIZED, "-Db_sanitize=undefined", "-Dharness=50",
              "-Dc_args=-fsanitize=float-cast-overflow,local-bounds"], ["--suite", "turns"]),
    "msan": (CLANG, "clang-14", [*WITH_CLONES, "-Db_sanitize=memory", "-Dharness=30",
             "-Dc_args=-fsanitize=memory -fsanitize-memory-track-origins"],
             ["raw generic", "raw avx2"]),  # it reports masked loads of AVX-512
    "tsan": ((), "gcc", [*SANITIZED, "-Db_sanitize=thread", "-Dharness=20"], ["--suite", "threads"]),
    "valgrind": (VALGRIND, "gcc", ["-Dbuildtype=debugoptimized", "-Dharness=5"],  # knows no AVX-512
                 ["--suite", "raw", "--wrapper", "valgrind -q --error-exitcode=99 --leak-check=full "
                  "--show-leak-kinds=all --track-origins=yes"]),
}  # fmt: skip


@nox.session(python=USUAL)
def harness(session):
    """The C core without Python, on a reference BLAS, under every sanitizer: `-- plain asan` for some."""
    work = environment(session, *BUILD)
    prototypes = "".join((ROOT / "src_c" / f"spca_{name}.h").read_text() for name in ("proto", "double"))
    called = "".join(path.read_text() for path in CORE.glob("*.c"))
    tables = "".join(path.read_text() for path in (ROOT / "src_c" / "operator").glob("*.c"))
    kernels = "".join(path.read_text() for path in (ROOT / "src_c").rglob("*.c"))
    for of, name in re.findall(r"A->(\w+) = (SPCA\(\w+\));", tables):  # those that an operator's table has
        through = rf"(>|[(_]){of.removesuffix('_work')}\)?\("  # itself, or by SPCA(apply_block) and its like
        called += name if re.search(through, called) else ""
    for name in set(re.findall(r"(SPCA\(\w+\)|\bspca_\w+)\(", prototypes)):
        called += name * (kernels.count(f"{name}(") > 1)  # beside its definition, by another kernel
    uncalled = {name for name in re.findall(r"(SPCA\(\w+\)|\bspca_\w+)\(", prototypes) if name not in called}
    if uncalled:
        session.error(f"not called: {', '.join(sorted(uncalled))}")
    missing = []
    for name in session.posargs or HARNESS:
        needed, compiler, options, suites = HARNESS[name]
        if needed and not here(*needed):
            missing.append(name)
            continue
        meson(session, work / name, *options, compiler=compiler)
        run_suites(session, work / name, *suites, env=HALT)
    if missing:
        leave_out(session, f"{', '.join(missing)} did not run: no compiler or valgrind for it")


CROSS = {  # prefix of the compiler, and its package; what runs a program; system, family and byte order
    "aarch64": ("aarch64-linux-gnu", "gcc-aarch64-linux-gnu", "qemu-aarch64", "linux", "aarch64", "little"),
    "armhf": ("arm-linux-gnueabihf", "gcc-arm-linux-gnueabihf", "qemu-arm", "linux", "arm", "little"),
    "i686": ("i686-linux-gnu", "gcc-i686-linux-gnu", "qemu-i386", "linux", "x86", "little"),
    "riscv64": ("riscv64-linux-gnu", "gcc-riscv64-linux-gnu", "qemu-riscv64", "linux", "riscv64", "little"),
    "s390x": ("s390x-linux-gnu", "gcc-s390x-linux-gnu", "qemu-s390x", "linux", "s390x", "big"),
    "wasm": ("em", "emscripten", "node", "emscripten", "wasm32", "little"),
    "windows": ("x86_64-w64-mingw32", "gcc-mingw-w64-x86-64", "wine", "windows", "x86_64", "little"),
}
RUNNERS = {"node": ("nodejs",), "wine": ("wine", "wine64")}  # packages; of the others "qemu-user"
COMPILED = {"wasm": "-pthread -Wno-ignored-optimization-argument"}  # Meson takes warnings for support
LINKED = {  # wasm: eight threads of the checks, others of the pool, and a first one that may not block
    "wasm": "-pthread -sPROXY_TO_PTHREAD -sPTHREAD_POOL_SIZE=16 -sEXIT_RUNTIME -sALLOW_MEMORY_GROWTH",
    "windows": "-static",
}


@nox.session(python=USUAL)
def cross(session):
    """The quick checks of the C core for other processors and systems, emulated: `-- s390x wasm` for some."""
    work = environment(session, *BUILD)
    missing = []
    for name in session.posargs or CROSS:
        prefix, package, runner, system, family, endian = CROSS[name]
        native = name == "i686" and os.uname().machine == "x86_64"  # qemu 7.2 hangs in one check
        compiler, archiver = ("emcc", "emar") if name == "wasm" else (f"{prefix}-gcc", f"{prefix}-ar")
        if not (here(compiler, package) and here(runner, *RUNNERS.get(runner, ("qemu-user",)))):
            missing.append(name)
            continue
        (work / f"{name}.ini").write_text(f"""
[binaries]
c = '{compiler}'
ar = '{archiver}'
[built-in options]
c_args = {COMPILED.get(name, "").split()}
c_link_args = {LINKED.get(name, "").split()}
[host_machine]
system = '{system}'
cpu_family = '{family}'
cpu = '{family}'
endian = '{endian}'
[properties]
skip_sanity_check = true # of Cython, by the headers of the Python that runs here
""")
        meson(session, work / name, "--cross-file", work / f"{name}.ini", "-Dharness=1")
        alone = {"WINEDEBUG": "-all", "WINEPREFIX": str(work / "wine"), "NODE_PATH": "/usr/share/nodejs"}
        session.run("meson", "compile", "-C", work / name, "harness", env=alone)
        built = work / name / "tests" / "core"
        run = runner, "-L", f"/usr/{prefix}"
        if native:
            run = f"/usr/{prefix}/lib/ld-linux.so.2", "--library-path", f"/usr/{prefix}/lib"
        elif runner in RUNNERS:
            run = (runner, *(["--no-experimental-fetch"] if runner == "node" else []))  # of Emscripten 3.1
        run = *run, built / ("harness" + {"node": ".js", "wine": ".exe"}.get(runner, ""))
        for check in CHECKS:
            session.run(*run, "turns", "1", check, external=True, env=alone)
        session.run(*run, "threads", "1", external=True, env=alone)
    if missing:
        leave_out(session, f"{', '.join(missing)} did not run: no compiler or emulator for it")


@nox.session(python=USUAL)
def fuzz(session):
    """Each check of the C core under libFuzzer: `-- [--keep] [seconds [checks]]`; --keep: to the corpus."""
    if not here(*CLANG):
        leave_out(session, "clang-14 is not here")
    fuzzed = "-Db_sanitize=address,undefined", "-Dc_args=-fsanitize=fuzzer-no-link", "-Dharness=1"
    work = meson(session, environment(session, *BUILD) / "build", *SANITIZED, *fuzzed, compiler="clang-14")
    session.run("meson", "compile", "-C", work, "fuzz")
    arguments = [argument for argument in session.posargs if argument != "--keep"]
    keep = "keep" if len(arguments) < len(session.posargs) else ""
    seconds, *chosen = arguments or ["10"]
    session.run("bash", ".ci/fuzz", str(work), keep, seconds, *(chosen or CHECKS), external=True)


@nox.session(python=USUAL)
def asan(session):
    """The tests with address and undefined behavior sanitizers; then leaks, of every public call."""
    options = [NO_ABI3, *(f"-Csetup-args={x}" for x in WITH_CLONES)]
    work = environment(
        session, ".[test-all]", build=[*options, "-Csetup-args=-Db_sanitize=address,undefined"]
    )
    session.run("bash", ".ci/asan", str(work), external=True, env=ONE_THREAD)


@nox.session(python=USUAL)
def valgrind(session):
    """Every kernel in one process under valgrind, which sees values that were never set."""
    if not here(*VALGRIND):
        leave_out(session, "valgrind is not here")
    environment(session, ".[test]", build=["-Csetup-args=-Dbuildtype=debugoptimized"])
    session.run("bash", ".ci/valgrind", external=True, env=ONE_THREAD | {"PYTHONMALLOC": "malloc"})


@nox.session(python=USUAL)
def coverage_c(session):
    """Nearly every line and branch of src_c is run, by the tests of the kernels and by the harness."""
    build = Path(tempfile.mkdtemp(prefix="spcacore-coverage-"))
    options = "-Db_coverage=true", "-Dbuildtype=debug", "-Db_ndebug=true", "-Dclones=false", "-Dharness=100"
    build_options = [f"-Cbuild-dir={build}", NO_ABI3, *(f"-Csetup-args={option}" for option in options)]
    environment(session, ".[test]", "gcovr>=8.4", build=build_options)
    run_suites(session, build, "--suite", "turns")
    names = (
        "operator block screening deflation threshold tpower gpower pmd scotlass greedy exact dspca rotation "
        "rotated spca clustering structured kernel variance methods gram choice_count"
    )
    late = (
        "--deselect=tests/solvers/test_exact.py::test_time_limit",
        "--deselect=tests/solvers/test_exact.py::test_callback",
        "--deselect=tests/operators/test_gram.py::test_a_callback_that_raises_or_ends_stops_the_pass",
    )
    files = tests_of(*(f"test_{name}" for name in names.split()))
    options = "-q", "-n", "auto", "-p", "no:cacheprovider", *ALL_CASES
    session.run("pytest", *options, *files, *late, env=ONE_THREAD)
    # Float and double, and copies of a function for constant arguments, are one text: a branch counts once
    session.run(
        "gcovr", "-r", ROOT, "--filter", "src_c/", "--exclude", "tests/", "--merge-lines",
        "--merge-mode-functions=merge-use-line-min", "--gcov-suspicious-hits-threshold", "0",
        "--gcov-ignore-parse-errors", "negative_hits.warn_once_per_file",  # counts of threads that met
        "--txt-metric", "branch", "--print-summary", "--fail-under-line", "99", "--fail-under-branch", "96",
        build,
    )  # fmt: skip


@nox.session(python=USUAL)
def coverage_python(session):
    """Lines and branches of the package that the tests run, and lines of the Cython layer."""
    build = Path(tempfile.mkdtemp(prefix="spcacore-coverage-"))
    filtered = "-Csetup-args=-Dc_args=--coverage -fprofile-filter-files=.*_core.*"
    linked = "-Csetup-args=-Dc_link_args=--coverage"
    environment(
        session, ".[test-all]", "coverage>=7.10", build=[f"-Cbuild-dir={build}", NO_ABI3, filtered, linked]
    )
    data = {
        "COVERAGE_RCFILE": str(ROOT / "pyproject.toml"),
        "COVERAGE_FILE": str(build / "data"),
        **ONE_THREAD,
    }
    pytest = shutil.which("pytest", path=session.bin)
    apart = (f"--ignore={path}" for path in tests_of("test_security", "test_memory"))  # gcov alters both
    session.run("coverage", "run", pytest, "-q", "-n", "auto", *ALL_CASES, *apart, env=data)
    session.run("coverage", "combine", "-q", env=data)
    session.run("coverage", "report", env=data)
    session.run("coverage", "json", "-q", "-o", build / "report.json", env=data)
    session.run("python", ".ci/coverage.py", build, "98", "95", "98")


@nox.session(python=USUAL)
def parallel(session):
    """Every call of the table by eight threads at the same time, three times each."""
    environment(session, ".[test]", "pytest-run-parallel")
    options = "--parallel-threads", "8", "--iterations", "3", "--all-cases", "tests/every_call/test_calls.py"
    session.run("pytest", *options, *session.posargs, env=ONE_THREAD)


@nox.session(python=USUAL)
def threads(session):
    """Every call of the table by 2 to 64 threads, with loops cut into tiny parts, of which none is alone."""
    environment(session, ".[test-all]", build=["-Csetup-args=-Dharness=1"])
    options = "-m", "slow or not slow", "-k", "every_call or random_calls"
    files = tests_of("test_threads", "test_random_calls")
    session.run("pytest", *options, *files, *session.posargs, env=ONE_THREAD)


# ---- before a release ------------------------------------------------------------------------------


@nox.session(python=USUAL)
def soak(session):
    """An hour of random calls in one process, whose memory must stay as it is; or `-- --calls 100000`."""
    environment(session, ".[test-all]")
    session.run("python", "tests/soak.py", *session.posargs, env=ONE_THREAD)


@nox.session(python=USUAL)
def mutants(session):
    """300 changes of the C core, one at a time: does a check or a test notice nine of ten?"""
    work = environment(session, ".[test]", build=["--verbose"], groups=["dev"])
    arguments = session.posargs or ["--sample", "300", "--jobs", "2", "--least", ".9"]
    session.run("python", "-P", "tests/mutants.py", "--build", work / "build", *arguments, env=ONE_THREAD)


@nox.session(python=USUAL)
def mutants_python(session):
    """Functions of the Python layer with one thing changed, 300 at random: do tests notice at least 90 %?"""
    work = environment(session, ".[test-all]", groups=["dev"])
    tree = work / "tree"  # the sources, with the extension that was built beside them
    site = session.run(
        "python", "-P", "-c", "import spcacore; print(spcacore.__path__[0])", silent=True
    ).strip()
    for name in ("tests", "docs", "benchmarks", "src_c"):
        shutil.copytree(ROOT / name, tree / name)
    shutil.copytree(site, tree / "spcacore")
    for name in ("pyproject.toml", "README.md", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tree)
    arguments = session.posargs or ["--sample", "300", "--least", "90"]
    session.run("python", "-P", tree / "tests" / "mutation" / "python.py", *arguments, env=ONE_THREAD)
