"""Whether the tests ran enough: lines and branches of the Python, and which lines of _core.pyx.

Called with the directory of a build with --coverage, which holds report.json too, and the least percentages.
Of Cython, gcov counts the C made of it, and Cython's comments tell the lines. A line has run if C of any of
its fused types has, without the GIL or with it, in any thread or process; line tracing would see the first of
these only, and slow them.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

SOURCE = re.compile(r'\s*/\* "(.*)":(\d+)$')
ELSEWHERE = re.compile(r"\s*(/\* function exit code \*/|__pyx_L\d+\w*error:;)")  # of no line


def counts(build: Path) -> dict[int, int]:
    """How often each line of the generated C ran."""
    (data,) = build.rglob("*_core.pyx.c.gcda")
    command = ["gcov", "--json-format", "--stdout", data]
    told = subprocess.run(command, capture_output=True, check=True, cwd=build).stdout
    (file,) = [f for f in json.loads(told)["files"] if f["file"].endswith("_core.pyx.c")]
    ran: dict[int, int] = {}
    for line in file["lines"]:
        ran[line["line_number"]] = max(ran.get(line["line_number"], 0), line["count"])
    return ran


def lines(build: Path) -> dict[tuple[str, int], int]:
    """The same, by file and number, of the lines of Cython that C was made of."""
    (generated,) = build.rglob("_core.pyx.c")
    ran, found, current = counts(build), {}, None
    for number, text in enumerate(generated.read_text().splitlines(), 1):
        if source := SOURCE.match(text):
            name = Path(source[1]).name
            current = (name, int(source[2])) if name.startswith("_core") else None
        elif ELSEWHERE.match(text):
            current = None
        elif current is not None and number in ran:
            found[current] = max(found.get(current, 0), ran[number])
    return found


if __name__ == "__main__":
    build, least = Path(sys.argv[1]).resolve(), list(map(float, sys.argv[2:]))
    totals = json.loads((build / "report.json").read_text())["totals"]
    shares = [totals[f"percent_{what}_covered"] for what in ("statements", "branches")]
    found = lines(build)
    missing = sorted(line for line, count in found.items() if not count)
    shares.append(100 * (1 - len(missing) / len(found)))
    for what, share in zip(("statements", "branches", f"{len(found)} lines of _core"), shares, strict=True):
        print(f"{what}: {share:.1f} %")
    print(f"not run of _core: {missing or 'none'}")
    sys.exit(any(share < bar for share, bar in zip(shares, least, strict=True)))
