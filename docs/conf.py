"""The pages of spcacore: `sphinx-build -W --keep-going -b html docs build/html`, with the package installed.

Nothing is fetched when the pages are built or read: formulas are MathML, which browsers draw themselves.
"""

import ast
import contextlib
import dataclasses
import doctest
import os
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version as installed
from importlib.resources import files
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont
from matplotlib import rc_context
from sphinx.addnodes import pending_xref
from sphinx.util import logging

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "agg")

import spcacore

HERE = Path(__file__).parent

project = "spcacore"
author = "the spcacore developers"
copyright = author
version = release = installed("spcacore")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
# Each script is run when the pages are built, and an error or a warning of one is an error of the pages
sphinx_gallery_conf = {
    "examples_dirs": "gallery_scripts",
    "gallery_dirs": "gallery",
    "filename_pattern": "plot_",
    "plot_gallery": True,
    "abort_on_example_error": True,
    "download_all_examples": False,
    "capture_repr": (),
    "show_memory": False,
    "min_reported_time": 1e9,
    "remove_config_comments": True,
    "write_computation_times": False,
}
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
exclude_patterns = ["reference/templates", "gallery_scripts"]
nitpicky = True
default_role = "code"
language = "en"
smartquotes = False  # x'Ax keeps its prime

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3

templates_path = ["reference/templates"]
autosummary_generate = True
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_validation_checks = {  # what each means: numpydoc.validate.ERROR_MSGS
    *("GL03", "GL05", "GL06", "GL07", "GL08", "GL09", "GL10", "SS01", "SS03", "SS04", "SS06"),
    *("PR02", "PR05", "PR06", "PR09", "PR10", "RT05", "YD01"),
}
numpydoc_validation_exclude = {r"\.kernels\.ManyComponents\."}  # fields whose words are Python's

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = "spcacore"
html_static_path = ["_static"]
html_css_files = ["spcacore.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "spcacore"},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button-field"],
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "show_nav_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
    "pygments_dark_style": "github-dark",
}
html_sidebars = {"index": []}
html_context = {"default_mode": "auto"}


def mathml(self, node, *, block):
    try:
        text = tex2mathml(node.astext(), as_block=block)
        return re.sub(r'<mo(?: class="\w+")?>([‖|∣])</mo>', r'<mo stretchy="false">\1</mo>', text)  # norms
    except MathError as error:
        logging.getLogger(__name__).warning("formula: %s", error, location=node)
        return ""


def inline_formula(self, node):
    self.body.append(mathml(self, node, block=False))
    raise nodes.SkipNode


def block_formula(self, node):
    self.body.append(f'<div class="formula">{mathml(self, node, block=True)}</div>\n')
    raise nodes.SkipNode


def as_code(name, rawtext, text, lineno, inliner, options=None, content=None):
    """`text` in a docstring."""
    return [nodes.literal(rawtext, text, classes=["code"])], []


PUBLIC = {name for name in spcacore.__all__ if callable(getattr(spcacore, name))}


def formulas_of_docstrings(app, what, name, obj, options, lines):
    """Indented lines before the parameters are formulas, to be shown as they stand."""
    end = next((i for i, line in enumerate(lines) if line.startswith("---")), len(lines))
    for i in range(end - 1, 1, -1):
        before = lines[i - 2]
        if lines[i].startswith("    ") and not lines[i - 1] and before and before[0] not in " *-.=":
            lines[i:i] = [".. code-block:: none", ""]


def no_signature(app, what, name, obj, options, signature, annotation):
    """Results are made by functions, not by their readers."""
    if what == "class" and dataclasses.is_dataclass(obj) and not hasattr(obj, "fit"):
        return "", None
    return None


def not_ours(app, what, name, obj, skip, options):
    """Estimators inherit from scikit-learn, which documents what it brings."""
    return True if (getattr(obj, "__module__", None) or "").startswith("sklearn.") else None


def example_pages(app):
    """A page for each script in docs/examples: its story, its picture and its text."""
    for script in sorted((HERE / "examples").glob("*.py")):
        story = ast.get_docstring(ast.parse(script.read_text()))
        title, _, story = story.partition(".\n\n")
        story = re.sub(
            r"(?m)(?:^    python .*\n?)+",
            lambda lines: "```console\n" + lines[0].replace("    python", "$ python").rstrip() + "\n```\n",
            story,
        )
        page = [f"# {title}", story, f"![{title}]({script.stem}.png)", f"## {script.name}"]
        first = ast.parse(script.read_text()).body[1].lineno  # after the docstring
        page += [f"```{{literalinclude}} {script.name}\n:lines: {first}-\n```"]
        target = script.with_suffix(".md")
        text = "\n\n".join(page) + "\n"
        if not target.exists() or target.read_text() != text:
            target.write_text(text)


def finish(app, doctree):
    """Code that is a public name is linked to its reference; sizes of pictures; ends of examples."""
    for code in list(doctree.findall(nodes.literal)):
        name = code.astext().removeprefix("spcacore.").removesuffix("()")
        inside = code.parent
        while inside is not None and not isinstance(inside, (nodes.reference, pending_xref, nodes.title)):
            inside = inside.parent
        if name in PUBLIC and inside is None:
            code.replace_self(reference_to(name, code))
    for image in doctree.findall(nodes.image):
        if "pictures/" in image["uri"] and "width" not in image:
            width = (HERE / image["uri"]).read_bytes()[16:20]
            image["width"] = f"{int.from_bytes(width) * 100 // FIGURES['savefig.dpi']}px"
    for block in doctree.findall(nodes.literal_block):  # doctests end with an empty line
        if block.rawsource == block.astext():
            block.rawsource = block.rawsource.rstrip()
            block[:] = [nodes.Text(block.rawsource)]


def reference_to(name, code):
    link = pending_xref("", refdomain="py", reftype="obj", reftarget=f"spcacore.{name}", refexplicit=True)
    link += code.deepcopy()
    return link


def links(app, docname, source):
    """To a script: to its page; out of docs/: none."""
    text = source[0]
    folder = (HERE / docname).parent

    def link(match):
        label, target = match.groups()
        if "://" not in target and not (folder / target).resolve().is_relative_to(HERE):
            return label
        target = re.sub(r"gallery_scripts/(\w+)[.]py$", r"gallery/\1.rst", target)
        target = target.replace("gallery_scripts/README.rst", "gallery/index.rst")
        return f"[{label}]({re.sub(r'(?<=[a-z])[.]py$', '.md', target)})"

    source[0] = re.sub(r"\[([^]]*)\]\(([^)\s]+)\)", link, text)


FIGURES = {"savefig.dpi": 200}


def pictures(app):
    """The pictures of pages, drawn by the examples on them or by a script in docs/pictures."""
    for source in [
        *sorted((HERE / "pictures").glob("*.py")),
        HERE / "getting_started.md",
        HERE / "guide" / "single_cells.md",
    ]:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), rc_context(FIGURES):
            if source.suffix == ".py":
                runpy.run_path(str(source))
            elif doctest.testfile(str(source), module_relative=False).failed:
                logging.getLogger(__name__).warning("%s: an example gives other output", source.name)
            for picture in Path(folder).glob("*.png"):
                shutil.copy(picture, HERE / "pictures")


class Commands(Directive):
    """What `spcacore` prints, and the help of each of its commands."""

    def run(self):
        commands = re.findall(r"(?m)^  spcacore (\w+) FILE", self.printed("--help"))
        return [self.block(), *(self.section(name) for name in commands)]

    def printed(self, *arguments):
        here = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = os.environ | {"COLUMNS": "100", "PATH": here}
        command = ["spcacore", *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, check=True, env=environment, cwd="/"
        ).stdout

    def block(self, *arguments):
        text = f"$ {' '.join(['spcacore', *arguments])}\n{self.printed(*arguments).rstrip()}"
        return nodes.literal_block(text, text, language="console")

    def section(self, name):
        section = nodes.section("", nodes.title("", name), self.block(name, "--help"), ids=[name])
        self.state.document.note_explicit_target(section)
        return section


def math_font(app, exception):
    """STIX Two Math, as ziamath brings it: browsers without a font for formulas draw them badly."""
    if exception is None and app.builder.format == "html":
        font = TTFont(files("ziamath") / "fonts" / "STIXTwoMath-Regular.ttf")
        options = Options(flavor="woff", layout_features=["*"])
        subsetter = Subsetter(options)
        subsetter.populate(unicodes=[*range(0x20, 0x2400), *range(0x1D400, 0x1D800)])
        subsetter.subset(font)
        font.flavor = "woff"
        font.save(app.outdir / "_static" / "STIXTwoMath.woff")


def setup(app):
    app.add_directive("commands", Commands)
    app.add_html_math_renderer("mathml", (inline_formula, None), (block_formula, None))
    app.add_role("code", as_code, override=True)
    app.connect("builder-inited", example_pages)
    app.connect("builder-inited", pictures)
    app.connect("source-read", links)
    app.connect("doctree-read", finish)
    app.connect("build-finished", math_font)
    app.connect("autodoc-process-docstring", formulas_of_docstrings, priority=100)
    app.connect("autodoc-process-signature", no_signature)
    app.connect("autodoc-skip-member", not_ours)


html_math_renderer = "mathml"
