"""Which lines of _core.pyx ran: gcov's counts of the C made of it, by Cython's comment before each line.

Called with the directory of a build with --coverage and the least percentage. A line has run if C of any of
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
    found = lines(Path(sys.argv[1]).resolve())
    missing = sorted(line for line, count in found.items() if not count)
    share = 100 * (1 - len(missing) / len(found))
    print(f"_core: {share:.1f} % of {len(found)} lines; not run: {missing or 'none'}")
    sys.exit(share < float(sys.argv[2]))
