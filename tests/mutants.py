"""Mutants of the selection, threshold, centring, statistics and screening kernels: do the tests see each?

python tests/mutants.py [FILE ...] [--sample N] [--seed 0] [--only NUMBER,...] [--jobs 2] [--list]
                        [--sanitize] [--build build/mutants] [--output FILE.json]

A mutant changes one token or leaves out one statement of a file of src_c, in a copy.  That file is compiled
for both precisions, linked before the other objects into an extension of its own, and the tests that concern
it run until the first that fails.  What does not compile, or to the same code as the file or as another
mutant, is not counted; nor is what EQUIVALENT gives a reason for.  --sanitize compiles with ASan and UBSan,
for mutants that only read or write where they should not.
"""

import argparse
import hashlib
import json
import os
import random
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MODULE = "_core.abi3.so"
SANITIZE = ["-fsanitize=address,undefined", "-g", "-O1"]

# For each file, the tests: (file, expression or None), the quickest first.
TESTS = {
    "select.c": [("test_kernels", "selection")],
    "threshold.c": [
        ("test_kernels", "threshold"),
        ("test_threshold", "ties or denormals or range_few or ignore or rounded or rounding or finite"),
        ("test_threshold", "feasible"),
    ],
    "centring.h": [("test_operator", "products or deflation"), ("test_block", None)],
    "statistics.c": [("test_kernels", "statistics")],
    "screen.c": [
        ("test_screening", "small_cases"),
        ("test_screening", "integers or cancel or nearly or evicted or counts or flow or leaves"),
        ("test_screening", "shift or 2.4-F"),
    ],
    "shadow.c": [("test_kernels", "shadow")],
}

# Functions that decide nothing but the time: every answer is checked against exact sums or counts afterwards.
# A mutant of these that gives a wrong answer is to be killed; one that does not is not counted.
TIME = {
    "select.c": ["enclose"],
    "threshold.c": ["draw", "estimate", "tell", "closed_form", "predict", "snap", "inside", "choose"],
    "screen.c": ["fetch"],
}

# Mutated lines that no answer can show: what they look like, and why.
EQUIVALENT = {
    "statistics.c": {
        r"bad -= ": "0 or NaN, either way",
        r"(least|most|low|high)\S* = .* (<=|>=) (least|most|low|high)\S* \? ": "the smaller of equals",
        r"low (<=) out|high (>=) out|x0\[j\] (<=|>=) x1": "the smaller of equals",
        r"i \+ (4|WAYS) < r;": "the loop over what is left does the same",
        r"^enum|^spca_int width|^width|^: width|^: TILE": "sizes of tiles and panels: the time",
        r"\(read (\+|-)= |read = |1 << 2": "how often it asks whether to stop",
    },
    "shadow.c": {r"^column\(n, X - j|center\[j \+ j0\]|inverse\[j \+ j0\]": "columns come one at a time"},
    "threshold.c": {
        r"^(LANES|BLOCK|STRETCH|SAMPLE|WHOLE|FEW|ATTEMPTS)": "sizes of blocks and of the sample",
        r"inside\[l\] -= y > low": "a lane is looked at in vain",
        r"anchored = 2": "is asked only whether it is 0",
        r"limit / 3": "squares are far from overflow at either limit",
        r"exponent < 1 - limit|: 1 - limit\)": "a power of two nearby, subnormal or not, does as well",
        r"m\.scale != 1\)\) draw": "the sample decides nothing but the time",
        r"if \(exact && \(status": "once more with the largest entry known: the time",
        r"start : 0, before = -2": "is asked only whether it is negative, or a count",
    },
    "screen.c": {
        r"\(3 \+ (sum_b|total)\) \* GRAIN": "a wider margin: the time",
        r"1e-6\) \+ 0;|\(1 \+ 0\) \+ 1e-12": "within GRAIN, of which the roundings of the bounds take half",
        r"int32_t sum = 1;": "off by 2^-13 step_j, and GRAIN ||q_j|| step_j, ||q_j|| >= 127, is added",
        r"a0 <= n; a0 \+= GROUP": "an empty group",
        r"a <= count && list\[a\] < j": "what stands behind the list is not used",
        r"<< 22\) / s->ld": "how often it asks whether to stop",
        r"enum \{ SHADOW_SHARE|k >= p / SPCA_GUESS_SHARE": "when to read all: the time",
    },
    "centring.h": {r"if \(v\.index \|\| dense\)": "w is overwritten"},
    "select.c": {
        r"^(LANES|BLOCK|LEAST|MOST|FEW)": "sizes of blocks and of the sample",
        r"while \(low <= high\)": "one entry is its own k-th largest",
        r"p - start > BLOCK": "a whole block is copied as it is",
        r"within\[LANES\] = \{1\}": "a lane is looked at in vain",
        r"enclose\(p, x, k": "whether to take a sample: the time",
        r"if \(k >= more && k": "with no ties, any level between two entries selects the same",
        r"spca_int above = 1, equal = 0, j = count": "what is above is not used there",
        r"start < p && found <= k": "the loops inside end where found = k",
    },
}

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


def changed(text, mutation):
    start, end, new = mutation
    return text[:start] + new + text[end:]


def described(text, mutation):
    """Line number, and the line as it is in the mutant."""
    line = text.count("\n", 0, mutation[0])
    return line + 1, " ".join(changed(text, mutation).split("\n")[line].split())


def reason(name, text, mutation):
    """Why no answer can show the mutation, or None."""
    heads = re.findall(r"^\w[\w *]*?\b(?:SPCA\((\w+)\)|(\w+))\(", text[: mutation[0]], re.M)
    if heads and "".join(heads[-1]) in TIME.get(name, []):
        return "nothing but the time"
    line = described(text, mutation)[1]
    return next((why for like, why in EQUIVALENT.get(name, {}).items() if re.search(like, line)), None)


class Build:
    """What the flags, the other objects and the unchanged module are taken from."""

    def __init__(self, folder):
        self.folder = folder
        if not (folder / "build.ninja").exists():
            subprocess.run(["meson", "setup", folder, ROOT], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["ninja", "-C", folder, MODULE], check=True, stdout=subprocess.DEVNULL)
        listed = subprocess.run(
            ["ninja", "-C", folder, "-t", "commands", MODULE], check=True, capture_output=True, text=True
        )
        commands = [c for c in map(shlex.split, listed.stdout.splitlines()) if "-o" in c]
        self.link = next(c for c in commands if MODULE in c)
        self.compile = {}
        for c in commands:
            if "-c" in c and "src_c" in c[-1]:
                # without vectors: compiled in a third of the time, and the answers are the same
                flags = ["-O2", *(f for f in c if re.match(r"-[Dfs]", f) and f != "-DSPCA_CLONES")]
                self.compile.setdefault(Path(c[-1]).name, []).append([c[0], *flags, "-w", "-I."])

    def objects(self, source, name, sanitize):
        """Object files of the sources in `source` that the change of `name` touches, or None."""
        pattern = f'#include "{name}"'
        users = [f for f in self.compile if pattern in (source / f).read_text()]
        made = []
        for f in users or [name]:
            for i, command in enumerate(self.compile[f]):
                made.append(source / f"{f}.{i}.o")
                flags = [*(SANITIZE if sanitize else []), "-c", f, "-o", made[-1]]
                if subprocess.run([*command, *flags], cwd=source, stderr=subprocess.DEVNULL).returncode:
                    return None
        return made

    def module(self, objects, out, sanitize):
        link = [out if w == MODULE else w for w in self.link]
        at = link.index("-Wl,--start-group")
        flags = SANITIZE if sanitize else []
        subprocess.run([*link[:at], *objects, *flags, *link[at:]], cwd=self.folder, check=True)


def preload(names):
    """What the tests import, once; not the package."""
    import hypothesis
    import pytest  # noqa: F401
    import scipy.sparse.linalg  # noqa: F401
    import threadpoolctl  # noqa: F401

    if "threshold.c" in names:
        import cvxpy  # noqa: F401
    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)  # what fails need not be made small
    hypothesis.settings.register_profile("mutants", phases=phases)
    hypothesis.settings.load_profile("mutants")


def run_tests(site, tests):
    """0, or what pytest says of the first test that fails."""
    import pytest

    sys.path.insert(0, str(site))
    off = (f"-pno:{plugin}" for plugin in ("cacheprovider", "xdist", "faulthandler"))
    options = ["-x", "-q", "-s", "--tb=no", "--assert=plain", *off]
    for file, expression in tests:
        code = pytest.main([*options, str(ROOT / f"tests/{file}.py"), "-k", expression or "test"])
        if code != 0:
            return int(code)
    return 0


def start(site, tests, log, sanitize, limit):
    """A process that runs the tests of the extension in `site`; its number."""
    env = {"PYTHONPATH": str(site)}
    if sanitize:
        libraries = [
            subprocess.run(
                ["gcc", f"-print-file-name={n}"], capture_output=True, text=True, check=True
            ).stdout.strip()
            for n in ("libasan.so", "libubsan.so")
        ]
        env |= {
            "LD_PRELOAD": ":".join(libraries), "PYTHONMALLOC": "malloc", "UBSAN_OPTIONS": "halt_on_error=1",
            "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:halt_on_error=1",
        }  # fmt: skip
    child = os.fork()
    if child:
        return child
    try:
        os.environ.update(env)
        os.chdir(site)
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 5))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if sanitize:
            os.execv(sys.executable, [sys.executable, "-P", __file__, "--run", str(site), json.dumps(tests)])
        code = run_tests(site, tests)
        sys.stdout.flush()
        os._exit(code)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(99)


def finish(wait_status, log):
    """survived, killed or timeout, and by what."""
    text, status = log.read_text(errors="replace"), os.waitstatus_to_exitcode(wait_status)
    if status == 0:
        return "survived", ""
    if status in (4, 5, 99):
        raise SystemExit(f"no tests were run: {text}")
    if -status == signal.SIGXCPU:
        return "timeout", ""
    report = re.search(r"(AddressSanitizer: [\w-]+|runtime error: .{0,60})", text)
    failed = re.search(r"^(?:FAILED|ERROR) (.{0,100})", text, re.M)
    return "killed", (report or failed)[1] if report or failed else f"status {status}"


def examine(build, chosen, jobs, sanitize, report):
    """Runs the tests of each mutant, `jobs` at a time; report(mutant, status, by, seconds)."""
    base = Path(tempfile.mkdtemp(prefix="mutants-"))
    running, seen, limit = {}, {}, 600.0

    def collect():
        """Waits for a process; the CPU time that its tests took."""
        child, status, used = os.wait4(-1, 0)
        mutant, folder = running.pop(child)
        report(mutant, *finish(status, folder / "log"), used.ru_utime)
        shutil.rmtree(folder)
        return used.ru_utime

    try:
        for mutant in chosen:
            name, number, mutation = mutant
            folder = base / f"{name}-{number}"
            source, site = folder / "src_c", folder / "site"
            shutil.copytree(ROOT / "src_c", source)
            if mutation:
                (source / name).write_text(changed((source / name).read_text(), mutation))
            objects = build.objects(source, name, sanitize)
            code = objects and hashlib.sha256(b"".join(o.read_bytes() for o in objects)).hexdigest()
            if not code or code in seen:
                report(mutant, *(("same code", seen[code]) if code else ("does not compile", "")), 0)
                shutil.rmtree(folder)
                continue
            seen[code] = f"as {number}"
            shutil.copytree(ROOT / "spcacore", site / "spcacore")
            build.module(objects, site / "spcacore" / MODULE, sanitize)
            while len(running) >= (jobs if mutation else 1):
                collect()
            running[start(site, TESTS[name], folder / "log", sanitize, limit)] = mutant, folder
            if not mutation:  # what takes much longer than the file as it is does not end
                limit = 2 * collect() + 3
        while running:
            collect()
    finally:
        for child in running:
            os.kill(child, signal.SIGKILL)
        shutil.rmtree(base, ignore_errors=True)


def main():
    if sys.argv[1:2] == ["--run"]:
        preload(())
        raise SystemExit(run_tests(sys.argv[2], json.loads(sys.argv[3])))
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", metavar="FILE", default=list(TESTS))
    parser.add_argument("--sample", type=int, help="that many of each file; else all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=lambda s: {int(n) for n in s.split(",")})
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--sanitize", action="store_true")
    parser.add_argument("--build", type=Path, default=ROOT / "build/mutants")
    parser.add_argument("--output", type=Path, default=os.devnull)
    args = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

    chosen, texts = [], {name: (ROOT / "src_c" / name).read_text() for name in args.files}
    for name, text in texts.items():
        mutants = [(name, i, m) for i, m in enumerate(mutations(text), 1) if not args.only or i in args.only]
        if args.sample and args.sample < len(mutants):
            mutants = sorted(random.Random(args.seed).sample(mutants, args.sample))
        chosen += [(name, 0, None), *mutants]  # first the file as it is
    if args.list:
        for name, number, mutation in chosen:
            if mutation:
                print(f"{name}:{number} line {described(texts[name], mutation)}")
        return
    counts = {name: Counter() for name in texts}

    def report(mutant, status, by, seconds):
        name, number, mutation = mutant
        if mutation is None:
            if status != "survived":
                raise SystemExit(f"the tests of {name} fail as it is: {by}")
            return
        line, text = described(texts[name], mutation)
        why = reason(name, texts[name], mutation)
        if status == "survived" and why:
            status, by = "equivalent", why
        counts[name][status] += 1
        counts[name]["seconds"] += seconds
        if status in ("survived", "timeout", "equivalent"):
            print(f"{status}: {name}:{number}, line {line}: {text}  {by}", flush=True)
        with open(args.output, "a") as file:
            file.write(json.dumps([name, number, status, by, round(seconds, 1), line, text]) + "\n")

    preload(args.files)
    examine(Build(args.build.resolve()), chosen, args.jobs, args.sanitize, report)
    for name, c in counts.items():
        killed = c["killed"] + c["timeout"]
        total = killed + c["survived"]
        print(
            f"{name}: {killed} of {total} killed ({killed / max(total, 1):.1%}); not counted: "
            f"{c['equivalent']} equivalent, {c['same code']} of the same code, {c['does not compile']} not "
            f"compiled; {c['seconds']:.0f} s"
        )


if __name__ == "__main__":
    main()
