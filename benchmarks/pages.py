"""The parts of a page between `<!-- NAME -->` and `<!-- end -->`, which a script writes."""

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"


def rewrite(page, name, text):
    path = DOCS / page
    pattern = rf"(?s)(<!-- {name} -->\n).*?(<!-- end -->)"
    new, count = re.subn(pattern, lambda m: f"{m[1]}{text}\n{m[2]}", path.read_text(encoding="utf-8"))
    if count != 1:
        raise ValueError(f"{path} has {count} parts named {name}")
    path.write_text(new, encoding="utf-8")
