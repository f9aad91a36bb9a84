"""Mutants of the C core: do the checks without Python, or else the tests of the package, notice each?

python tests/mutants.py [FILE[:FUNCTION] ...] [--sample 300] [--seed 0] [--jobs 2] [--list]
                        [--like TEXT] [--harness] [--least 0]
                        [--build build/mutants] [--output FILE.json]

A mutant changes one operator, comparison, constant or bound, negates a condition or leaves out a statement
of a file below src_c.  That file alone is compiled, for its precisions, and linked into the harness of
tests/core, of which the checks of CHECKS run; where none notices, into an extension, of which the tests of
PYTHON run.  A sample is drawn over all the functions that are asked for.  What does not compile, or to the
code of the file as it is, is not counted, nor are survivors for which tests/mutants.txt gives a reason.
--harness leaves out the package.
"""

import argparse
import json
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MODULE = "_core.abi3.so"
PLAIN = ["gcc", "-std=c11", "-O1", "-fopenmp-simd", "-ffp-contract=off", "-w", "-DSPCA_TINY"]  # as in nox
# and as in its harness asan: an entry too far is noticed, which no answer would show
CHECKED = [*PLAIN, "-fsanitize=address,bounds", "-fno-sanitize-recover=all"]
DOUBLE = {
    f"check_{name}.c" for name in ("convex", "fingerprint", "pool", "prior", "search", "units")
}  # alone
DOUBLE |= {path.name for path in ROOT.glob("src_c/**/*.c") if "SPCA(" not in path.read_text()}
SEARCHES = "solvers at_rest queries stopped_solvers screened_solvers corners"

JOINT = "joint.c", "joint_column.c", "joint_exchange.c", "joint_given.c", "joint_pool.c", "joint_select.c"
JOINT += "joint_start.c", "joint_values.c"
UNCHANGED = {"clones.c", "pool.c"}  # which decide who runs, not what

# For each file, checks of the harness that concern it, the quickest first.
CHECKS = {
    "ascent.c": "few_reads ascent tiles rotation rows",
    "ascent.h": SEARCHES,
    "dense_block.c": "operator stops",
    "branch_and_bound.c": "branch singular search_corners early_searches",
    "centring.h": "operator",
    "distances.c": "distances early",
    "column_cache.c": "screen stops screened",
    "compressed.c": "operator stops compressed_statistics lengths",
    "compressed_block.c": "operator stops lengths",
    "deflate.c": "deflation no_variance data_deflation",
    "direct.c": "direct refit corners early",
    "dspca.c": "dspca tight_bounds search_corners early_searches",
    "elastic_net.c": "elastic_net guesses search_corners early_searches",
    "fingerprint.c": "fingerprint",
    "generalized_power.c": SEARCHES,
    "gram.c": "operator statistics",
    "gram.h": "operator",
    "compressed_gram.c": "gram operator",
    "rough_gram.c": "gram",
    "column_products.c": "gram operator",
    "dense_columns.c": "gram operator",
    "greedy.c": "greedy corners early",
    "l1_level.c": "l1_threshold lone_entries levels",
    "l1_rotate.c": "rotation rest stopped_rotation corners early",
    "moments.c": "tiles few_reads ascent rotation rows",
    "operator.c": "operator stops solvers screened stopped_solvers",
    "pivot.h": "select l1_threshold levels",
    "penalized_decomposition.c": SEARCHES,
    "small_eigen.c": "greedy",
    "tridiagonal.c": "tridiagonal",
    "truncated_power.c": SEARCHES + " race",
    "planar.h": "rotation rest few_reads ascent rows",
    "dense.c": "operator screen stops screened lengths",
    "prior_support.c": "prior_support",
    "products.c": "matrix_product",
    "real.h": "operator select refit elastic_net dspca rotation",
    "rotate.c": "rotation rest stopped_rotation corners",
    "scotlass.c": "orthogonal_threshold only_direction " + SEARCHES,
    "screen.c": "screened screen screened_solvers stops reference_bounds",
    "screen_bounds.c": "screen_bounds screened screen screened_solvers stops reference_bounds",
    "missing.c": "missing",
    "best_pairs.c": "best_pairs",
    "secular.c": "greedy corners search_corners early_searches",
    "select.c": "select levels solvers",
    "quantize.c": "screen statistics",
    "statistics.c": "statistics compressed_statistics symmetry lengths",
    "threshold.c": "l1_threshold lone_entries levels",
    "tile.c": "matrix_product operator",
    "tile_loops.h": "matrix_product operator",
    "exchange.c": "greedy race early corners",
    "leading_eigenvector.c": "operator early greedy",
    "lines.c": "lines",
    "passes.h": "few_reads ascent tiles rotation rows",
    "passes.c": "few_reads ascent rotation rows",
    "principal.c": "principal_submatrix",
    "quick_swap.c": "greedy race",
    "scores.c": "scores",
    "race.c": "race",
    "race.h": "race",
    "search.c": "race",
    "signed.c": "signed_vector units unit_ascent",
    "statistics_parts.c": "statistics",
    "tree.c": "tree race",
    "tree.h": "tree race",
    "unit_ascent.c": "unit_ascent",
    "unit_net.c": "unit_net",
    "unit_orthogonal.c": "unit_ascent",
    "units.c": "units unit_steps unit_ascent",
    "shaped.c": "shaped dspca",
    "spectrum.h": "dspca tight_bounds",
    "weighted.c": "statistics compressed_statistics",
    "whole.c": "whole",
} | dict.fromkeys(JOINT, "joint")
# How often; the others 100 times
TRIALS = {"early": 30, "rows": 30, "ascent": 600, "few_reads": 300, "units": 1000, "unit_steps": 1000}

# And tests of the package: files, and which of their tests.
PYTHON = {
    "ascent.c": "rotation",
    "ascent.h": "tpower",
    "dense_block.c": "block; probabilistic: tipping",
    "branch_and_bound.c": "exact",
    "centring.h": "operator: products or deflation; block",
    "distances.c": "clustering",
    "column_cache.c": "screening",
    "compressed.c": "block; operator: products",
    "compressed_block.c": "block; probabilistic: tipping",
    "deflate.c": "deflation",
    "direct.c": "c_functions",
    "dspca.c": "dspca",
    "elastic_net.c": "spca",
    "generalized_power.c": "gpower",
    "gram.c": "gram",
    "gram.h": "gram",
    "compressed_gram.c": "gram; working_set",
    "column_products.c": "gram; working_set",
    "rough_gram.c": "gram",
    "dense_columns.c": "gram",
    "greedy.c": "greedy",
    "l1_rotate.c": "l1_rotation",
    "moments.c": "rotation",
    "operator.c": "operator; deflation",
    "pivot.h": "kernels: selection or threshold",
    "penalized_decomposition.c": "pmd",
    "small_eigen.c": "kernels: small",
    "tridiagonal.c": "linalg: tridiagonal",
    "truncated_power.c": "kernels: truncated; tpower",
    "planar.h": "rotation",
    "dense.c": "operator; block",
    "products.c": "kernel; clustering",
    "real.h": "kernels; operator",
    "rotate.c": "rotation",
    "scotlass.c": "scotlass",
    "screen.c": "screening: small_cases; "
    "screening: integers or cancel or nearly or evicted or counts or flow or leaves; "
    "screening: shift or 2.4-F",
    "screen_bounds.c": "screening: integers or cancel or nearly or evicted or counts or flow or leaves",
    "missing.c": "missing",
    "best_pairs.c": "generalized: pairs",
    "secular.c": "greedy",
    "select.c": "kernels: selection",
    "quantize.c": "kernels: shadow",
    "statistics.c": "kernels: statistics",
    "tile.c": "gram",
    "tile_loops.h": "gram",
    "threshold.c": "kernels: threshold; "
    "threshold: ties or denormals or range_few or ignore or rounded or rounding or finite or feasible",
    "exchange.c": "tpower: exchange or swap; greedy; generalized",
    "leading_eigenvector.c": "operator: eigenv",
    "passes.c": "rotation",
    "passes.h": "rotation",
    "principal.c": "search",
    "quick_swap.c": "search; greedy",
    "scores.c": "operator: scores; block",
    "race.c": "search; exact",
    "race.h": "search; exact",
    "search.c": "search; exact",
    "signed.c": "choice",
    "statistics_parts.c": "operator",
    "tree.c": "search; exact",
    "unit_ascent.c": "choice; supports",
    "unit_net.c": "spca; choice",
    "unit_orthogonal.c": "choice_orthogonal",
    "units.c": "choice; supports",
    "shaped.c": "dspca_choice",
    "spectrum.h": "dspca",
    "weighted.c": "weights",
    "whole.c": "moments",
} | dict.fromkeys(JOINT, "refinement")

PYTHON["l1_level.c"] = PYTHON["threshold.c"]

TOKEN = re.compile(
    r"(?P<skip>/\*.*?\*/|//[^\n]*|\s+|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*')"
    r"|(?P<number>0[xX][0-9a-fA-F.]+(?:[pP][+-]?\d+)?[fFuUlL]*|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFuUlL]*)"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<operator><<=|>>=|->|\+\+|--|<=|>=|==|!=|&&|\|\||<<|>>|[-+*/%&|^]=|.)",
    re.S,
)
PREPROCESSOR = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.)*", re.M | re.S)
SWAPS = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&",
    "+": "-", "-": "+", "*": "/", "/": "*", "&": "|", "|": "&", "+=": "-=", "-=": "+=", "*=": "/=",
    "/=": "*=", "|=": "&=", "++": "--", "--": "++", "fmax": "fmin", "fmin": "fmax",
    "min_int": "(spca_int)fmax",
}  # fmt: skip
KEYWORDS = {"return", "else", "case", "do", "sizeof"}
DECLARED = re.compile(
    r"(?:const|static|enum|struct|typedef|extern|inline|unsigned|real|whole|double|float|int|char)$"
)
HEAD = re.compile(  # of a function, some of which a macro of simd.h begins
    r"^(?:VECTORIZED(?:_WIDE|_TO)?\((?:\w+, )??(?P<loops>\w+),\s*\("
    r"|\w[\w *]*?\b(?:SPCA\((?P<of>\w+)\)|(?P<own>\w+))\()",
    re.M,
)


def tokens(text):
    """(kind, start, end) of all tokens; preprocessor lines and comments are none."""
    blank = PREPROCESSOR.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)
    return [(m.lastgroup, m.start(), m.end()) for m in TOKEN.finditer(blank) if m.lastgroup != "skip"]


def other_numbers(number):
    if re.search(r"[.eEpP]", number) and not number.startswith("0x1.fp"):
        return ["0"]  # a margin or a tolerance
    if re.fullmatch(r"\d+", number):
        n = int(number)
        return ["1"] if n == 0 else ["0", "2"] if n == 1 else [str(n + 1), str(n - 1)]
    return []


def mutations(text):
    """(start, end, replacement) of every mutation, in order."""
    found, all_tokens, depth = [], tokens(text), 0
    word = [text[start:end] for _, start, end in all_tokens]
    closing, stack, inside = {}, [], []
    for i, w in enumerate(word):
        inside.append(bool(stack) and word[stack[-1]] == "(")
        if w in "([{":
            stack.append(i)
        elif w in ")]}":
            closing[stack.pop()] = i
    opening = {j: i for i, j in closing.items()}
    for i, (kind, start, end) in enumerate(all_tokens):
        w, before = word[i], word[i - 1] if i else ""
        depth += (w == "{") - (w == "}")
        if depth == 0:
            continue
        binary = bool(re.match(r"[\w)\]]", before)) and before not in KEYWORDS
        if kind == "number":
            found += [(start, end, n) for n in other_numbers(w)]
        elif w in SWAPS and (binary or w in ("++", "--") or kind == "name"):
            found.append((start, end, SWAPS[w]))
        if w in ("if", "while") and word[i + 1] == "(":
            first, last = all_tokens[i + 1][2], all_tokens[closing[i + 1]][1]
            found.append((first, last, f"!({text[first:last]})"))
        head = before == ")" and word[opening[i - 1] - 1] in ("if", "for", "while")
        begins = before in ("{", "}", ";", "else", "do") or head
        if begins and not inside[i] and (kind == "name" or w in ("*", "(", "++", "--")):
            last = i  # of a statement
            while word[last] not in (";", "{", "}"):
                last = closing[last] + 1 if word[last] in "([" else last + 1
            if word[last] == ";" and not (
                DECLARED.match(w) or w in ("return", "continue", "break", "if", "for", "while", "do", "else")
                or (kind == "name" and (w.endswith("_t") or w.startswith("spca_")) and word[i + 1] != "(")
            ):  # fmt: skip
                found.append((start, all_tokens[last][1], ""))
    return sorted(found)


class Mutant:
    """One change of a file: `text`, the changed line, says which it is within its function."""

    def __init__(self, path, source, change, function=""):
        self.path, self.name, self.function = path, path.name, function
        self.original, self.change = source, change
        start, end, new = change
        first, last = source.rfind("\n", 0, start) + 1, source.find("\n", end)
        shown = new or f"/* {source[start:end]} */"
        self.text = " ".join(f"{source[first:start]}{shown}{source[end:last]}".split())

    @property
    def source(self):
        start, end, new = self.change
        return self.original[:start] + new + self.original[end:]

    def __str__(self):
        return f"{self.name} :: {self.function} :: {self.text}"


def wanted(asked):
    """The mutants of the files and functions that are asked for, in an order that folders do not change."""
    found = []
    if missing := {f.name for f in (ROOT / "src_c").rglob("*.c")} - {*CHECKS} - UNCHANGED:
        raise SystemExit(f"no row says which checks concern {', '.join(sorted(missing))}")
    names = {a.partition(":")[0]: set() for a in asked} or dict.fromkeys(CHECKS, ())
    for a in asked:
        names[a.partition(":")[0]] |= {a.partition(":")[2]} - {""}
    for path in sorted((ROOT / "src_c").rglob("*.[ch]"), key=lambda path: path.name):
        if path.name in names:
            source = path.read_text()
            heads = [(h.start(), h["loops"] or h["of"] or h["own"]) for h in HEAD.finditer(source)]
            for change in mutations(source):
                function = max((h for h in heads if h[0] <= change[0]), default=(0, "-"))[1]
                if not names[path.name] or function in names[path.name]:
                    found.append(Mutant(path, source, change, function))
    return found


def reasons():
    """Lines FILE :: FUNCTION or * :: part of the changed line, or /expression/ :: reason."""
    lines = (ROOT / "tests/mutants.txt").read_text().splitlines()
    return [line.split(" :: ") for line in lines if line and not line.startswith("#")]


def reason(mutant, known):
    """Why no answer can show the mutation, or None."""
    for name, function, like, why in known:
        expression = like[1:-1] if re.fullmatch(r"/(?!\*).*/|//", like) else re.escape(like)
        here = name == mutant.name and function in ("*", mutant.function)
        if here and re.search(expression, mutant.text):
            return why
    return None


def run(command, limit=None, **options):
    """Its status, or None where it does not end in time; and what it said."""
    with tempfile.TemporaryFile() as log:
        child = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, **options)
        try:
            child.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, 9)
            child.wait()
            return None, ""
        log.seek(0)
        return child.returncode, log.read().decode(errors="replace")


def must(command, **options):
    status, text = run(command, **options)
    if status:
        raise SystemExit(f"{shlex.join(map(str, command))}: {text}")
    return text


class Build:
    """The harness and the extension as they are, and with the objects of a changed file."""

    def __init__(self, folder, jobs, package):
        self.folder, self.sources = folder, sorted((ROOT / "src_c").rglob("*.c"))
        if not (folder / "build.ninja").exists():
            must(["meson", "setup", folder, ROOT, "-Dbuildtype=release"])
        if package:
            must(["ninja", "-C", folder, MODULE])
        listed = must(["ninja", "-C", folder, "-t", "commands", MODULE])
        commands = [c for c in map(shlex.split, listed.splitlines()) if "-o" in c]
        self.link = next(c for c in commands if MODULE in c)
        precisions = "-DSPCA_SINGLE", "-DSPCA_DOUBLE"
        self.flags = {
            "plain": [[*PLAIN, p] for p in precisions],
            "checked": [[*CHECKED, p] for p in precisions],
        }
        packaged = self.flags["package"] = []
        for c in commands:
            if "-c" in c and c[-1].endswith("/threshold.c"):
                # without vectors: compiled in a third of the time, and the answers are the same
                flags = [f for f in c if re.match(r"-[Dfs]", f) and not f.endswith("_CLONES")]
                packaged.append(["gcc", "-O2", *flags, "-w"])
        packaged.sort(key=lambda flags: precisions[0] not in flags)
        core = ROOT / "tests/core"
        checks = [*sorted(core.glob("check_*.c")), core / "makers.c", core / "reference_blas.c"]
        both = [*self.sources, *checks]
        self.headers = [*(ROOT / "src_c").rglob("*.h"), *core.glob("*.h")]
        self.harness = folder / "harness"
        self.harness.mkdir(exist_ok=True)
        with ThreadPoolExecutor(jobs) as pool:
            made = pool.map(lambda f: self.objects(f, self.harness, ROOT / "src_c"), both)
            self.base = dict(zip(both, made, strict=True))
        self.main = [self.harness / "core.o", self.harness / "main.o"]
        for made in self.main:
            source = core / f"{made.stem}.c"
            must([*CHECKED, *self.include(ROOT / "src_c"), "-c", source, "-o", made])

    @staticmethod
    def include(source):
        return [
            f"-I{f}" for f in (source, *(d for d in source.rglob("*") if d.is_dir()), ROOT / "tests/core")
        ]

    def objects(self, file, out, source, way="checked"):
        """The file for its precisions, in a way of `flags`, or nothing where it does not compile."""
        made = []
        for i, flags in enumerate(self.flags[way]):
            if file.name in DOUBLE and i == 0:
                continue
            made.append(out / f"{file.stem}{i}{way}.o")
            named = f"-ffile-prefix-map={source}=src_c"  # in what assert() says, the same in each folder
            command = [*flags, named, *self.include(source), "-c", file, "-o", made[-1]]
            newest = max(f.stat().st_mtime for f in (file, *self.headers))
            fresh = out == self.harness and made[-1].exists() and made[-1].stat().st_mtime > newest
            if not fresh and run(command)[0]:
                return []
        return made

    def users(self, path):
        """The sources that a file is part of."""
        parts = {path.name}
        for _ in range(3):
            for f in (ROOT / "src_c").rglob("*.[ch]"):
                if parts & set(re.findall(r'#include "(?:[^"]*/)?([^"/]+)"', f.read_text())):
                    parts.add(f.name)
        return [f for f in self.sources if f.name in parts]

    def compiled(self, mutant, folder, way):
        """Its objects, by source; None where it does not compile."""
        source = folder / "src_c"
        if not source.exists():
            shutil.copytree(ROOT / "src_c", source)
            (source / mutant.path.relative_to(ROOT / "src_c")).write_text(mutant.source)
        made = {}
        for f in self.users(mutant.path):
            made[f] = self.objects(source / f.relative_to(ROOT / "src_c"), folder, source, way)
            if not made[f]:
                return None
        return made

    def linked(self, made, folder):
        """A harness of these objects, and the others as they are."""
        objects = [o for group in (self.base | made).values() for o in group]
        must([*CHECKED, *self.main, *objects, "-o", folder / "harness", "-lm", "-lpthread"])
        return folder / "harness"

    def module(self, made, folder):
        """A package of these objects, which come before those of the archives; the folder that it is in."""
        site = folder / "site"
        shutil.copytree(
            ROOT / "spcacore", site / "spcacore", ignore=shutil.ignore_patterns("*.so", "__pycache__")
        )
        link = [site / "spcacore" / MODULE if w == MODULE else w for w in self.link]
        at = link.index("-Wl,--start-group")
        must([*link[:at], *(o for group in made.values() for o in group), *link[at:]], cwd=self.folder)
        return site


def code_of(made):
    return [o.read_bytes() for group in made.values() for o in group]


def check(harness, names, limit):
    """killed, timeout or survived, and by what."""
    for name in names.split():
        status, text = run([harness, "turns", str(TRIALS.get(name, 100)), name], limit, cwd=harness.parent)
        if status is None:
            return "timeout", name
        if status:
            said = re.search(r"not so: .{0,80}|ERROR: \S+ \S+|runtime error: .{0,60}|: the result.*", text)
            return "harness", f"{name}: {said[0] if said else status}"
    return "survived", ""


def test(site, tests, limit):
    off = [f"-pno:{plugin}" for plugin in ("cacheprovider", "xdist", "faulthandler", "randomly")]
    environment = os.environ | {"PYTHONPATH": str(site), "OPENBLAS_NUM_THREADS": "1"}
    found = [sys.executable, "-P", "-c", "import spcacore; print(spcacore.__file__)"]
    if str(site) not in must(found, env=environment):
        raise SystemExit("an editable installation hides the mutants")
    for file, _, expression in (one.partition(": ") for one in tests.split("; ") if one):
        command = [sys.executable, "-P", "-m", "pytest", "-x", "-q", "--tb=no", "--assert=plain", *off]
        command += [*ROOT.glob(f"tests/*/test_{file}.py"), "-k", expression]
        command += ["--all-cases", "--hypothesis-profile", "unshrunk"]
        status, text = run(command, limit, cwd=site, env=environment)
        if status is None:
            return "timeout", file
        if status:
            failed = re.search(r"^(?:FAILED|ERROR) (.{0,100})", text, re.M)
            if not failed and status > 0:
                raise SystemExit(f"no tests were run: {text}")
            return "python", failed[1] if failed else f"status {status}"
    return "survived", ""


class Examiner:
    """What is noticed; first, once, that nothing is in a file as it is, and how long that takes."""

    def __init__(self, build, package):
        self.build, self.package = build, package
        self.limits, self.code, self.lock = {}, {}, defaultdict(threading.RLock)

    def verdict(self, name, made, folder, package, limit):
        if package:
            return test(self.build.module(made, folder), PYTHON[name], limit)
        return check(self.build.linked(made, folder), CHECKS[name], limit)

    def limit(self, name, package):
        """Seconds for the mutants of a file."""
        with self.lock[name]:
            if (name, package) not in self.limits:
                start = time.monotonic()
                with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
                    verdict = self.verdict(name, {}, Path(folder), package, None)
                if verdict[0] != "survived":
                    raise SystemExit(f"{name} as it is: {verdict}")
                self.limits[name, package] = 4 * (time.monotonic() - start) + 30
            return self.limits[name, package]

    def same_code(self, mutant, folder):
        """Whether the compiler makes the same of the file as it is."""
        with self.lock[mutant.path]:
            if mutant.path not in self.code:
                same = Mutant(mutant.path, mutant.original, (0, 0, ""))
                with tempfile.TemporaryDirectory(prefix="mutant-") as other:
                    self.code[mutant.path] = code_of(self.build.compiled(same, Path(other), "plain"))
        return code_of(self.build.compiled(mutant, folder, "plain")) == self.code[mutant.path]

    def examine(self, mutant):
        with tempfile.TemporaryDirectory(prefix="mutant-") as name:
            for package in (False, True)[: 1 + self.package]:
                limit = self.limit(mutant.name, package)
                made = self.build.compiled(mutant, Path(name), "package" if package else "checked")
                if made is None:
                    return "not compiled", ""
                verdict = self.verdict(mutant.name, made, Path(name), package, limit)
                if verdict[0] != "survived":
                    break
                if not package and self.same_code(mutant, Path(name)):
                    return "same code", ""
            return verdict


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("asked", nargs="*", metavar="FILE[:FUNCTION]")
    parser.add_argument("--sample", type=int, help="so many of them all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--like", default="", help="only those whose changed line holds this")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--harness", action="store_true")
    parser.add_argument("--build", type=Path, default=ROOT / "build/mutants")
    parser.add_argument("--least", type=float, default=0, help="fail where a smaller share is killed")
    parser.add_argument("--output", type=Path, default=os.devnull)
    args = parser.parse_args()
    mutants = [m for m in wanted(args.asked) if args.like in m.text]
    if args.sample and args.sample < len(mutants):
        mutants = random.Random(args.seed).sample(mutants, args.sample)
    if not mutants:
        raise SystemExit("nothing of what is asked for can be changed")
    if args.list:
        print(*mutants, sep="\n")
        return
    build = Build(args.build.resolve(), args.jobs, not args.harness)
    examiner, known, counts = Examiner(build, not args.harness), reasons(), {}

    def report(mutant):
        status, by = examiner.examine(mutant)
        why = reason(mutant, known)
        if status == "survived" and why:
            status, by = "equivalent", why
        counts.setdefault(mutant.name, Counter())[status] += 1
        if status in ("survived", "equivalent"):
            print(f"{status}: {mutant}  {by}", flush=True)
        with open(args.output, "a") as file:
            file.write(json.dumps([mutant.name, mutant.function, mutant.text, status, by]) + "\n")

    with ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(report, mutants))
    columns = ("harness", "python", "timeout", "survived", "equivalent", "same code", "not compiled")
    print("| file | " + " | ".join(columns) + " | killed |\n|" + " --- |" * 9)
    for name, c in [*sorted(counts.items()), ("all", sum(counts.values(), Counter()))]:
        killed = c["harness"] + c["python"] + c["timeout"]
        share = killed / max(killed + c["survived"], 1)
        print(f"| {name} | " + " | ".join(str(c[s]) for s in columns) + f" | {share:.1%} |")
    if share < args.least:
        raise SystemExit(f"{share:.1%} are killed, not {args.least:.1%}")


if __name__ == "__main__":
    main()
