"""Mutants of the functions of spcacore/: do the tests see each?

python tests/mutation/python.py [--sample 300] [--seed 0] [--module NAME] [--function TEXT] [--tests NAME ...]
            [--seconds 20] [--jobs 2] [--data build/mutation] [--output FILE] [--least 90]
            [--list]

A mutant changes one operator, number, comparison, condition, keyword argument, call or statement of a
function.  The first run measures which lines each test of the default run runs (four minutes of a
processor; kept in --data, by file of tests, until that file or the package changes).  A mutant is then put
into the loaded functions of a forked process, where the tests that run its line are run, those that a
condition refuses, the module's own and the fastest first, as many as take --seconds, until the first that
fails.  It needs Python 3.12, for `sys.monitoring`.

equivalent.txt, beside this file, lists mutants that no answer can show, with reasons.  What is not mutated:
module level, annotations, strings, what is in `raise` and `warnings.warn`, widths and places of what is
drawn, `strict=` of zip, and `copy=False`.  Where a number is a choice, nobody asks whether it belongs to what
it limits, nor for one more than a large number: comparisons with what `_limits.py` names are turned round,
and numbers from 8 on become 0.  Tests that start processes, send signals or need an installed package
are left out.

mutmut 3 was tried.  It runs in a copy of this tree, but its trampolines replace the signatures that other
tests compare, it has no way to take a few fast tests of the thousands that run a shared line, and most of its
mutants are of error messages or replace an argument with None.
"""

import argparse
import ast
import copy
import gc
import hashlib
import importlib
import json
import os
import pkgutil
import random
import resource
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE, TESTS = ROOT / "spcacore", ROOT / "tests"
EQUIVALENT = Path(__file__).with_name("equivalent.txt")
LEFT_OUT = {
    "test_benchmarks", "test_concurrency", "test_determinism", "test_documentation", "test_downstream",
    "test_examples", "test_interrupts", "test_memory", "test_security",
}  # fmt: skip
AT_IMPORT = "import"  # in the place of a test: what is run by then is not run again
PYTEST = ["-q", "--tb=no"]
PYTEST += [f"-pno:{plugin}" for plugin in ("randomly", "cacheprovider", "xdist", "faulthandler")]

COMPARE = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
BINARY = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.MatMult: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
NAMES = {
    "min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "any": "all", "all": "any",
    "ceil": "floor", "floor": "ceil", "argmin": "argmax", "argmax": "argmin", "sum": "mean", "mean": "sum",
    "fmin": "fmax", "fmax": "fmin", "zeros": "ones", "cumsum": "cumprod",
}  # fmt: skip
NO_CHANGE = {"abs", "sqrt", "sorted", "copy", "square", "exp", "log", "conj", "ravel", "clip"}
TURNED = {ast.Lt: ast.Gt, ast.LtE: ast.Gt, ast.Gt: ast.Lt, ast.GtE: ast.Lt}
LOOKS = {
    "alpha", "edgecolor", "facecolor", "fontsize", "linestyle", "linewidth", "markeredgecolor",
    "markeredgewidth", "markerfacecolor", "markersize", "stacklevel", "strict", "zorder",
}  # fmt: skip


def other_numbers(n):
    if isinstance(n, int):
        return [n + 1 if n < 8 else 0] + ([0] if n == 1 else [])
    return [0.0 if abs(n) < 1e-3 else 1.5 * n] if isinstance(n, float) and n else []


def shows_nothing(keyword):
    value = keyword.value
    plain = isinstance(value, ast.Constant | ast.Name)
    return (
        keyword.arg in LOOKS
        or (keyword.arg == "color" and plain)
        or (keyword.arg == "copy" and plain and getattr(value, "value", None) is False)
    )


def other_comparison(node, op):
    """Without or with the limit itself; the other way round at a limit of `_limits.py` or at rounding."""
    names = [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]
    chosen = any(name.isupper() and len(name) > 2 for name in names)
    return (TURNED if chosen and type(op) in TURNED else COMPARE)[type(op)]()


def other_expressions(node):
    """What may stand in place of an expression."""
    new = []
    match node:
        case ast.Constant(value=bool(b)):
            new = [ast.Constant(not b)]
        case ast.Constant(value=int() | float()):
            new = [ast.Constant(n) for n in other_numbers(node.value)]
        case ast.UnaryOp(op=ast.USub() | ast.Not() | ast.Invert()):
            new = [node.operand]
        case ast.BinOp(left=ast.JoinedStr() | ast.Constant(value=str())):
            pass
        case ast.BinOp() if type(node.op) in BINARY:
            new = [ast.BinOp(node.left, BINARY[type(node.op)](), node.right)]
        case ast.BoolOp():
            new = [ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)]
        case ast.Compare():
            for i, op in enumerate(node.ops):
                ops = [*node.ops[:i], other_comparison(node, op), *node.ops[i + 1 :]]
                new.append(ast.Compare(node.left, ops, node.comparators))
        case ast.IfExp():
            new = [ast.IfExp(node.test, node.orelse, node.body)]
        case ast.Attribute(attr="T"):
            new = [node.value]
        case ast.Call():
            function, args = node.func, node.args
            name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", None)
            if name in NAMES and isinstance(function, ast.Attribute):
                new.append(
                    ast.Call(ast.Attribute(function.value, NAMES[name], ast.Load()), args, node.keywords)
                )
            elif name in NAMES and name != "sum":
                new.append(ast.Call(ast.Name(NAMES[name], ast.Load()), args, node.keywords))
            if name in NO_CHANGE:
                new.append(args[0] if args else getattr(function, "value", node))
            for i, keyword in enumerate(node.keywords):
                if keyword.arg is not None and not shows_nothing(keyword):
                    new.append(ast.Call(function, args, [*node.keywords[:i], *node.keywords[i + 1 :]]))
    return new


def is_warning(node):
    return isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "warn"


class Module:
    """The mutants of a module, as places in its tree."""

    def __init__(self, path):
        self.path, self.tree = path, ast.parse(path.read_text())
        self.name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        self.mutants = []
        self.visit_body(self.tree, (), None)

    def visit_body(self, node, qualified, outer):
        """`outer`: the name of the function or method around, which has code of its own."""
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                self.visit_body(child, (*qualified, child.name), outer)
            elif isinstance(child, ast.FunctionDef):
                name = (*qualified, child.name)
                self.function(child, ".".join(name), outer or ".".join(name))
            elif isinstance(child, ast.stmt) and outer is None:
                self.visit_body(child, qualified, outer)

    def function(self, node, name, outer):
        assigned = {a.arg for a in (*node.args.args, *node.args.kwonlyargs)}
        if name == outer:
            for field in ("defaults", "kw_defaults"):
                for i, default in enumerate(getattr(node.args, field)):
                    if default is not None:
                        for new in other_expressions(default):
                            self.add(node, (node.args, field, i, new), name, outer, default=True)
        self.block(node, "body", name, outer, assigned)

    def block(self, parent, field, name, outer, assigned):
        statements = getattr(parent, field)
        for i, s in enumerate(statements):
            if isinstance(s, ast.FunctionDef):
                self.function(s, f"{name}.{s.name}", outer)
                continue
            if isinstance(s, ast.Raise | ast.Assert | ast.ClassDef | ast.Import | ast.ImportFrom):
                continue
            docstring = isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)
            if docstring or (isinstance(s, ast.Expr) and is_warning(s.value)):
                continue
            gone = ast.copy_location(ast.Pass(), s)
            targets = {n.id for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            stored = isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Subscript | ast.Attribute)
            again = isinstance(s, ast.Assign) and targets <= assigned
            if isinstance(s, ast.AugAssign | ast.Expr) or stored or again:
                self.add(s, (parent, field, i, gone), name, outer)
            elif isinstance(s, ast.Break | ast.Continue):
                new = ast.Continue() if isinstance(s, ast.Break) else ast.Break()
                self.add(s, (parent, field, i, ast.copy_location(new, s)), name, outer)
            if isinstance(s, ast.AugAssign) and type(s.op) in BINARY:
                self.add(s, (s, "op", None, BINARY[type(s.op)]()), name, outer)
            if isinstance(s, ast.If | ast.While):
                new = ast.UnaryOp(ast.Not(), s.test) if s.orelse else ast.Constant(False)
                self.add(s, (s, "test", None, new), name, outer)
            assigned |= targets
            for f, value in ast.iter_fields(s):
                if f in ("body", "orelse", "finalbody") and value:
                    self.block(s, f, name, outer, assigned)
                elif f == "handlers":
                    for handler in value:
                        self.block(handler, "body", name, outer, assigned)
                elif f == "cases":
                    for case in value:
                        self.block(case, "body", name, outer, assigned)
                elif f not in ("annotation", "target", "type_comment"):
                    self.expressions(s, s, f, value, name, outer)

    def expressions(self, statement, parent, field, value, name, outer):
        for i, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(node, ast.AST) or isinstance(node, ast.JoinedStr) or is_warning(node):
                continue
            if isinstance(node, ast.keyword) and shows_nothing(node):
                continue
            if self.path.parent.name == "plot" and isinstance(getattr(node, "value", None), float):
                continue
            if isinstance(node, ast.expr):
                for new in other_expressions(node):
                    self.add(statement, (parent, field, i, new), name, outer)
            for f, v in ast.iter_fields(node):
                self.expressions(statement, node, f, v, name, outer)

    def add(self, statement, place, name, outer, default=False):
        self.mutants.append(Mutant(self, statement, place, name, outer, default))


def header(statement):
    """The source of a statement, without the statements inside it."""
    short = copy.copy(statement)
    for field in ("body", "orelse", "finalbody", "handlers", "decorator_list", "cases"):
        if hasattr(short, field):
            setattr(short, field, [ast.Expr(ast.Constant(...))] if field == "body" else [])
    text = ast.unparse(ast.fix_missing_locations(short)) if not isinstance(short, ast.Match | ast.Try) else ""
    return " ".join(text.removesuffix("...").split())


def same(a, b):
    """How many characters two texts begin with in common."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


class Mutant:
    def __init__(self, module, statement, place, function, outer, default):
        self.module, self.statement, self.place = module, statement, place
        self.function, self.outer, self.default = function, outer, default
        old = header(statement)
        with self:
            new = "pass" if isinstance(place[3], ast.Pass) else header(statement)
            if isinstance(place[3], ast.Break | ast.Continue):
                new = ast.unparse(place[3])
        start = same(old, new)
        end = same(old[start:][::-1], new[start:][::-1])
        while start > 0 and (old[start - 1].isalnum() or old[start - 1] in "_."):
            start -= 1
        while end > 0 and (old[len(old) - end].isalnum() or old[len(old) - end] in "_."):
            end -= 1
        before, after = old[:start], old[len(old) - end :]
        if len(before) > 70:
            before = "…" + before[-70:]
        if len(after) > 50:
            after = after[:50] + "…"
        self.text = f"{before}[{old[start : len(old) - end]} => {new[start : len(new) - end]}]{after}"
        self.key, self.whole = f"{function}: {self.text}", f"{function}: {old}"

    def put(self, new):
        parent, field, i, _ = self.place
        if i is None:
            old = getattr(parent, field)
            setattr(parent, field, new)
        else:
            old = getattr(parent, field)[i]
            getattr(parent, field)[i] = new
        return old

    def __enter__(self):
        self.old = self.put(self.place[3])

    def __exit__(self, *_):
        self.put(self.old)

    def lines(self):
        """The lines of which a test must run one, and those of the function, where none runs it."""
        s = self.statement
        if self.default:
            return {line for b in s.body for line in range(b.lineno, b.end_lineno + 1)}
        body = getattr(s, "body", None)
        last = body[0].lineno - 1 if isinstance(body, list) and body[0].lineno > s.lineno else s.end_lineno
        return set(range(s.lineno, last + 1))

    def apply(self, functions):
        """Puts the changed code into the functions that are loaded."""
        with self:
            tree = ast.fix_missing_locations(copy.deepcopy(self.module.tree))
        path, found = str(self.module.path), []

        def look(code):
            for c in code.co_consts:
                if hasattr(c, "co_qualname"):
                    if c.co_qualname == self.outer:
                        found.append(c)
                    elif "<locals>" not in c.co_qualname:
                        look(c)

        look(compile(tree, path, "exec", dont_inherit=True))
        assert functions[path, self.outer], f"{self.outer} of {path} is not loaded"
        for function in functions[path, self.outer]:
            for code in found:
                if code.co_firstlineno == function.__code__.co_firstlineno:
                    function.__code__ = code
                    if self.default:
                        self.set_default(function)

    def set_default(self, function):
        arguments, field, i, new = self.place
        expression = ast.fix_missing_locations(ast.Expression(copy.deepcopy(new)))
        value = eval(compile(expression, "default", "eval"), function.__globals__)
        if field == "defaults":
            function.__defaults__ = (*function.__defaults__[:i], value, *function.__defaults__[i + 1 :])
        else:
            function.__kwdefaults__ = {**function.__kwdefaults__, arguments.kwonlyargs[i].arg: value}


# --- which tests run which lines ----------------------------------------------------------------------------


def measure(*places):
    """Runs files of tests, of each `FILE=OUT`: which lines each test ran, and its time, in OUT."""
    os.environ.setdefault("MPLBACKEND", "agg")
    sys.path.insert(0, str(ROOT))
    import pytest

    outs = dict(place.split("=", 1) for place in places)
    tool, events = sys.monitoring.COVERAGE_ID, sys.monitoring.events
    ran, lines, seconds, bad = set(), defaultdict(dict), {}, set()

    def start(code, _):
        if code.co_filename.startswith(str(PACKAGE)):
            sys.monitoring.set_local_events(tool, code, events.LINE)
        return sys.monitoring.DISABLE

    def line(code, number):
        ran.add((code.co_filename, number))
        return sys.monitoring.DISABLE  # once in a test

    sys.monitoring.use_tool_id(tool, "mutants")
    sys.monitoring.register_callback(tool, events.PY_START, start)
    sys.monitoring.register_callback(tool, events.LINE, line)
    sys.monitoring.set_events(tool, events.PY_START)

    class Contexts:
        @pytest.hookimpl(wrapper=True)
        def pytest_runtest_protocol(self, item, nextitem):
            told(AT_IMPORT, 0.0)  # before the first test
            sys.monitoring.restart_events()
            began = time.process_time()
            try:
                return (yield)
            finally:
                told(item.nodeid, time.process_time() - began)
                if nextitem is None or nextitem.path != item.path:
                    keep(outs.pop(str(item.path.relative_to(ROOT))))

        def pytest_runtest_logreport(self, report):
            if report.outcome != "passed":
                bad.add(report.nodeid)

    def told(test, used):
        seconds[test] = round(used, 4)
        for path, number in ran if test not in bad else ():
            lines[str(Path(path).relative_to(ROOT))].setdefault(test, []).append(number)
        ran.clear()

    def keep(out):
        Path(out).write_text(json.dumps({"seconds": seconds, "lines": lines}))
        seconds.clear()
        lines.clear()

    code = pytest.main([*PYTEST, *outs], plugins=[Contexts()])
    for event in (events.PY_START, events.LINE):
        sys.monitoring.register_callback(tool, event, None)
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED):
        return f"tests could not be collected ({code})"
    for out in outs.values():  # nothing of it is run
        keep(out)
    return None


def digest(*paths):
    return hashlib.sha256(b"".join(p.read_bytes() for p in paths)).hexdigest()[:12]


def name_of(file):
    """Of what is measured of a file of tests: two folders may have files of one name."""
    return f"{file.parent.name}.{file.stem}"


def measured(data, jobs, names):
    """For each test its seconds; for each file and line the tests that run it."""
    data.mkdir(parents=True, exist_ok=True)
    package = digest(*sorted(PACKAGE.rglob("*.py")))
    files = [f for f in sorted(TESTS.glob("*/test_*.py")) if f.stem in (names or {f.stem} - LEFT_OUT)]
    wanted = {f: data / f"{name_of(f)}-{digest(f)}-{package}.json" for f in files}

    places = []
    for file, out in wanted.items():
        if not out.exists():
            for old in data.glob(f"{name_of(file)}-*"):
                old.unlink()
            places.append(f"{file.relative_to(ROOT)}={out}")
    shares = [places[i::jobs] for i in range(jobs) if places[i::jobs]]
    command = [sys.executable, __file__, "--measure"]
    running = [subprocess.Popen([*command, *share], cwd=ROOT) for share in shares]
    if sum(process.wait() != 0 for process in running):
        raise SystemExit("tests could not be measured")
    seconds, users = {}, defaultdict(list)
    for out in wanted.values():
        found = json.loads(out.read_text())
        seconds |= found["seconds"]
        for path, tests in found["lines"].items():
            for test, lines in tests.items():
                for line in lines if "interrupt" not in test else ():
                    users[path, line].append(test)
    return seconds, users


def chosen_tests(mutant, seconds, users, budget):
    """Tests that run the changed line: those that come to its `raise`, few cases of each, the fastest."""
    path = str(mutant.module.path.relative_to(ROOT))
    tests = {t for line in mutant.lines() for t in users.get((path, line), ())}
    if tests != {AT_IMPORT}:
        tests.discard(AT_IMPORT)
    if mutant.default:  # which no test need call to see
        tests |= {t for t in seconds if "::test_defaults_are" in t or "::test_defaults_of" in t}
    refusals = [s.lineno for s in getattr(mutant.statement, "body", ()) if isinstance(s, ast.Raise)]
    refused = {t for line in refusals for t in users.get((path, line), ())}
    own, cases, ranked = mutant.module.path.stem.strip("_"), Counter(), []
    for test in sorted(tests, key=lambda t: (seconds[t], t)):
        function = test.partition("[")[0]
        rank = cases[function] // 3, f"test_{own}" not in function, seconds[test]
        ranked.append((test not in refused, *rank, test))
        cases[function] += 1
    chosen, total = [], 0.0
    for *_, used, test in sorted(ranked):
        if total + used <= budget or not chosen:
            chosen.append(test)
            total += used
    return chosen, total


# --- the run ------------------------------------------------------------------------------------------------


class Run:
    """A pytest plugin: collects all tests once, and runs some for each mutant, in forked processes."""

    def __init__(self, jobs, plans, report, data):
        self.jobs, self.plans, self.report, self.data = jobs, plans, report, data
        self.running, self.in_child = {}, False

    def pytest_collection(self, session):
        from hypothesis import Phase, settings

        base = settings.get_profile("repeatable")  # what fails need not be made small
        settings.register_profile(
            "mutants", base, phases=(Phase.explicit, Phase.generate), database=None, print_blob=False
        )
        settings.load_profile("mutants")

    def pytest_runtest_logreport(self, report):
        if self.in_child and report.failed:
            os.write(self.log, report.nodeid.encode())
            os._exit(1)

    def pytest_runtestloop(self, session):
        self.items = {item.nodeid: item for item in session.items}
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        session.config.pluginmanager.unregister(reporter)
        import spcacore

        for info in pkgutil.walk_packages(spcacore.__path__, "spcacore."):
            if not info.name.endswith("__main__"):
                importlib.import_module(info.name)
        functions = defaultdict(list)
        gc.unfreeze()  # what conftest.py froze is not among the objects
        for f in gc.get_objects():
            code = getattr(f, "__code__", None) if type(f).__name__ == "function" else None
            if code is not None and code.co_filename.startswith(str(PACKAGE)):
                functions[code.co_filename, code.co_qualname].append(f)
        self.functions = functions
        gc.freeze()
        killers = set()
        for mutant, (tests, total) in self.plans:
            if tests in ([], [AT_IMPORT]):
                self.report(mutant, "not applicable" if tests else "survived", "no test runs it", 0.0)
                continue
            while len(self.running) >= self.jobs:
                self.wait(killers)
            self.start(mutant, tests, total)
        while self.running:
            self.wait(killers)
        for test in sorted(killers):  # each must pass on the code as it is
            while len(self.running) >= self.jobs:
                self.wait(None)
            self.start(None, [test], 60)
        while self.running:
            self.wait(None)
        return True

    def start(self, mutant, tests, total):
        log = self.data / f"log-{len(self.running)}-{time.monotonic_ns()}"
        child = os.fork()
        if child:
            self.running[child] = mutant, log, time.monotonic(), tests
            return
        try:
            self.in_child = True
            self.log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            limit = int(4 * total + 15)
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(10 * limit)
            if mutant:
                mutant.apply(self.functions)
            items = [self.items[t] for t in tests if t in self.items]
            for item, following in zip(items, [*items[1:], None], strict=True):
                item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
            os._exit(0 if items else 5)
        except BaseException as error:
            os.write(self.log, f"{type(error).__name__}: {error}".encode()[:200])
            os._exit(3)

    def wait(self, killers):
        child, status, used = os.wait4(-1, 0)
        mutant, log, _, tests = self.running.pop(child)
        text = log.read_text(errors="replace") if log.exists() else ""
        log.unlink(missing_ok=True)
        code = os.waitstatus_to_exitcode(status)
        result = {0: "survived", 1: "killed", -signal.SIGXCPU: "timeout", -signal.SIGALRM: "timeout"}.get(
            code
        )
        if mutant is None:
            if code != 0:
                print(f"unsure: {tests[0]} fails without a mutation ({code})", flush=True)
            return
        if code == 1:
            killers.add(text)
        if code in (3, 5):
            result = "error" if "Error: code" not in text else "not applicable"
        self.report(mutant, result or "killed", text or f"status {code}", used.ru_utime + used.ru_stime)


def equivalents():
    """{key: reason}; a line has a mutant, or how statements begin, and a star; below it is the reason."""
    reasons, key = {}, None
    for line in EQUIVALENT.read_text().splitlines() if EQUIVALENT.exists() else []:
        if line.startswith(" ") and key:
            reasons[key] = f"{reasons[key]} {line.strip()}".strip()
        elif line and not line.startswith("#"):
            key = line.strip()
            reasons[key] = ""
    return reasons


def is_listed(mutant, key):
    return mutant.whole.startswith(key[:-1]) if key.endswith("*") else mutant.key == key


def main():
    if sys.argv[1:2] == ["--measure"]:
        return measure(*sys.argv[2:])
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sample", type=int, help="that many of those asked for; else all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--module", action="append", help="of these only: spcacore.exact")
    parser.add_argument("--function", help="of functions whose `name: text` contains this")
    parser.add_argument("--tests", nargs="+", help="of these files only: test_exact")
    parser.add_argument("--seconds", type=float, default=20, help="of tests a mutant")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--data", type=Path, default=ROOT / "build/mutation")
    parser.add_argument("--output", type=Path, help="one line of JSON for each mutant")
    parser.add_argument("--least", type=float, default=0, help="fail where fewer per cent are killed")
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("MPLBACKEND", "agg")

    modules = [Module(p) for p in sorted(PACKAGE.rglob("*.py")) if p.name != "__main__.py"]
    mutants = [m for module in modules for m in module.mutants]
    for key in equivalents():
        if not any(is_listed(m, key) for m in mutants):
            print(f"no longer a mutant: {key}")
    if args.module:
        mutants = [m for m in mutants if m.module.name in args.module]
    if args.function:
        mutants = [m for m in mutants if args.function in m.key]
    if args.sample and args.sample < len(mutants):
        mutants = random.Random(args.seed).sample(mutants, args.sample)
    if not mutants:
        return "nothing of what is asked for can be changed"
    if args.list:
        for m in mutants:
            print(f"{m.module.name}  {m.key}")
        return None
    sys.path[:0] = [str(ROOT), str(TESTS)]
    os.chdir(ROOT)
    seconds, users = measured(args.data, args.jobs, args.tests)
    plans = [(m, chosen_tests(m, seconds, users, args.seconds)) for m in mutants]
    files = sorted({t.partition("::")[0] for _, (tests, _) in plans for t in tests} - {AT_IMPORT})
    counts, reasons = defaultdict(Counter), equivalents()

    def report(mutant, status, by, used):
        listed = next((key for key in reasons if is_listed(mutant, key)), None)
        if status == "survived" and listed:
            status, by = "equivalent", reasons[listed]
        counts[mutant.module.name][status] += 1
        if status != "killed":
            print(f"{status}: {mutant.module.name}  {mutant.key}  {by}", flush=True)
        if args.output:
            with open(args.output, "a") as file:
                line = [mutant.module.name, mutant.key, status, by, round(used, 1), mutant.statement.lineno]
                file.write(json.dumps(line, ensure_ascii=False) + "\n")

    import pytest

    pytest.main([*PYTEST, "--no-summary", *files], plugins=[Run(args.jobs, plans, report, args.data)])
    print(f"{'module':28} killed timeout survived equivalent  share")
    total = sum(counts.values(), Counter())
    for name, c in [*sorted(counts.items()), ("all", total)]:
        found = c["killed"] + c["timeout"]
        share = found / max(found + c["survived"], 1)
        row = f"{c['killed']:6} {c['timeout']:7} {c['survived']:8} {c['equivalent']:10} {share:6.1%}"
        print(f"{name:28} {row}{'  errors: ' + str(c['error']) if c['error'] else ''}")
    return f"fewer than {args.least:g} % are killed" if 100 * share < args.least else None


if __name__ == "__main__":
    sys.exit(main())
