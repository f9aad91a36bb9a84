"""What the scripts of this folder share: the data of the tests, CPU times, and pages of docs."""

import argparse
import re
import statistics
import sys
import time
from pathlib import Path

sys.path.extend(
    str(Path(__file__).resolve().parents[1] / "tests" / name) for name in ("", "generalized", "solvers")
)

from files import arrays

__all__ = ["arrays", "main", "origin", "parser", "rewrite", "table", "timed", "write"]
DOCS = Path(__file__).resolve().parents[1] / "docs"


def timed(call, repeats=1, enough=float("inf")):
    """Median CPU seconds, and the last result; once is enough where it takes more than `enough` seconds."""
    times = []
    while not times or (len(times) < repeats and times[0] <= enough):
        start = time.process_time()
        result = call()
        times.append(time.process_time() - start)
    return statistics.median(times), result


def parser(description):
    """The options of a script that writes a page."""
    options = argparse.ArgumentParser(description=description.splitlines()[0])
    options.add_argument("-o", "--output", type=Path, help="the Markdown document; default: standard output")
    return options


def write(text, output):
    if output:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text, encoding="utf-8")
    else:
        print(text)


def main(page, description):
    """The whole of a script whose `page()` is the page."""
    output = parser(description).parse_args().output
    write(page(), output)


def origin(script, page, options=""):
    """The last line of a page: where it comes from."""
    command = f"python benchmarks/{script}.py {options}-o docs/measured/{page}.md"
    return f"*Written by `{command}`, which anyone can run; edit that script, not this page.*"


def table(header, rows):
    return "\n".join(
        "| " + " | ".join(map(str, row)) + " |" for row in (header, ["---"] * len(header), *rows)
    )


def head(*names):
    """The first two lines of a table whose other columns are numbers."""
    return ["| " + " | ".join(map(str, names)) + " |", "| --- |" + " ---: |" * (len(names) - 1)]


def rewrite(page, name, text):
    """Write the part of a page between `<!-- NAME -->` and `<!-- end -->` anew."""
    path = DOCS / page
    pattern = rf"(?s)(<!-- {name} -->\n).*?(<!-- end -->)"
    new, count = re.subn(pattern, lambda m: f"{m[1]}{text}\n{m[2]}", path.read_text(encoding="utf-8"))
    if count != 1:
        raise ValueError(f"{path} has {count} parts named {name}")
    path.write_text(new, encoding="utf-8")
