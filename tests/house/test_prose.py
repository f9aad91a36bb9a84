"""Plain words: what pages and docstrings do not say, because a reader stops at it.

`PHRASES` has a pattern and what to write instead. Spelling is checked by codespell, `nox -s lint`.
"""

import ast
import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest
from extras import skipping

ROOT = Path(__file__).resolve().parents[2]
PHRASES = {
    r"some (hundred|thousand|dozen|ten|twenty)\b": "a few hundred, about ten",
    r"\bto be had\b": "available, possible",
    r"\b(takes?|took) no notice\b": "ignores",
    r"\b(makes?|does|do|is) (it |so )?all the same\b": "still does",
    r"\bhears? (of )?(Ctrl-C|an interrupt)": "reacts to Ctrl-C",
    r"\bnobody is given\b": "not shown",
    r"\bwants \d+ of\b": "needs",
    r"\bby more the more\b": "more so when",
    r"\bwhich knows no\b": "which has no",
    r"\b(whilst|amongst|thereof|wherein|heretofore)\b": "while, among, of it, where",
    r"\bsome [`$]?\d": "about",
    r"\b(one|a) (row|column|line|gene|name)? ?a (sample|variable|line|row)\b": "one row per sample",
    r"\b(is|are) to be taken\b": "how to read, take",
    r"\b(repeated|ask(s|ed)?) so often\b": "that often",
    r"\bnothing is asked of\b|\bno word on\b": "any will do; nothing says",
    r"\brightly\b": "correctly",
    r"\b(is|are) told on\b": "the page says",
    r"\bto the end of which\b|\bthat of which\b": "a sentence of its own",
    r"\bkinds? of cells? it is about\b|\bsay nothing of\b|\bsays nothing of\b": "does not say",
    r"\bvery\b": "nothing, or a number",
    r"\b(utilize|leverage[sd]?|in order to)\b": "use, to",
    r"\b(simply|obviously|of course)\b": "nothing",
    r"\bas without\b": "also without",
}
OPEN = {  # in what others read: every page, and the docstrings of what is public
    r"\b(that|those) of\b": "the noun again",
    r"\bof which\b": "a sentence of its own",
    r"\bwhat is known of\b": "what you know about",
    r"\b(for|and|or|from|is) what is no\b": "something that is not",
    r"\bthe roots? of (the number|their|p\b)": "the square root of",
    r"\ba file an? (?!and\b)\w+": "a file for each",
}
FRAGMENTS = r"(?m)^#+ (Of|By|With|Without|And|While|From|In|To|For|At|As|On|Under|Beyond|Over)\b.*"
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "docs" / "gallery_scripts").glob("*")]
EXAMPLES = [*sorted((ROOT / "docs" / "examples").glob("*.py")), ROOT / "spcacore" / "cli" / "help.py"]
MODULES = sorted((ROOT / "spcacore").rglob("*.py"))


def prose(page):
    """A page without code, the docstrings of a module without their examples, or the help of the command."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".py" and page.stem != "help":
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
        nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, documented)]
        text = "\n\n".join(ast.get_docstring(node) or "" for node in nodes)
        return re.sub(r"(?m)^ *(>>>|\.\.\.) .*$", "", text)
    return re.sub(r"(?s)```.*?```|`[^`\n]*`", " ", text)


def found(text, phrases=PHRASES):
    flat = re.sub(r"\s+", " ", text)
    return [
        f"{hit[0]!r}: write {instead}"
        for pattern, instead in phrases.items()
        for hit in re.finditer(pattern, flat, re.IGNORECASE)
    ]


@pytest.mark.parametrize(
    ("pages", "phrases"),
    [([*PAGES, *EXAMPLES], PHRASES | OPEN), (MODULES, PHRASES)],
    ids=["pages", "modules"],
)
def test_plain_words(pages, phrases):
    told = {str(page.relative_to(ROOT)): found(prose(page), phrases) for page in pages}
    assert not {page: words for page, words in told.items() if words}


@pytest.mark.parametrize("module", ["", ".sklearn", ".plot", ".datasets", ".cli"])
def test_plain_words_of_what_is_public(module):
    """Also where a paragraph is filled in, of methods, and of records."""
    with skipping():
        module = importlib.import_module("spcacore" + module)
    for name in module.__all__:
        thing = getattr(module, name)
        methods = [m for key, m in inspect.getmembers(thing) if inspect.isclass(thing) and key[0] != "_"]
        for documented in [module, thing, *methods]:
            if inspect.isroutine(documented) or isinstance(documented, type | property | ModuleType):
                assert not found(inspect.getdoc(documented) or "", OPEN), (name, documented)


def test_headings_are_no_fragments():
    """A title is a noun, a sentence or a question, not the rest of one."""
    for page in PAGES:
        if page.suffix == ".md":
            text = re.sub(r"(?s)```.*?```", " ", page.read_text(encoding="utf-8"))
            assert not [match[0] for match in re.finditer(FRAGMENTS, text)], page


def test_titles_of_pages_for_users_ask():
    for page in [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "guide").glob("*.md")]:
        if page.stem != "index":
            assert page.read_text(encoding="utf-8").splitlines()[0].endswith("?"), page


def test_the_phrases_are_found():
    text = "It wants 24 of the 30, some\nhundred, mostly the tightest to be had, takes no notice, "
    assert len(found(text + "makes it all the same. Two numbers nobody is given. Methods hear Ctrl-C.")) == 7
    assert len(found("Twice as without.")) == 1
    assert len(found("Its time is that of a pass, of which there are two, and those\nof others.", OPEN)) == 3
    assert re.findall(FRAGMENTS, "# Guide\n\n## In short\n\n## By hand\n") == ["In", "By"]
    assert not found("There are a few hundred rows of the same kind. Everybody knows nothing about a number.")
