"""What a release says of itself in several places agrees: versions, requirements, workflows, the bill."""

import base64
import hashlib
import json
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CI = ROOT / ".ci"


def text(name):
    if not (ROOT / name).exists():
        pytest.skip(f"{name} is not in this copy of the sources")
    return (ROOT / name).read_text(encoding="utf-8")


def version():
    return re.search(r"^project\(.* version: '([^']+)'", text("meson.build"), re.M)[1]


def project():
    return tomllib.loads(text("pyproject.toml"))


# ---- one version, one set of requirements ------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("CITATION.cff", r"^version: (.+)$"),
        (".zenodo.json", r'^  "version": "(.+)",$'),
        ("recipe/recipe.yaml", r'^  version: "(.+)"$'),
        ("CHANGELOG.md", r"\A# Changelog\n\n## (\S+) "),
        ("docs/developer/policy.md", r"A tag `v(\S+)`"),
    ],
)
def test_version_stands_everywhere_alike(name, pattern):
    assert re.findall(pattern, text(name), re.M) == [version()]


def test_the_changelog_has_each_version_once_and_in_order():
    sections = [
        tuple(map(int, found.split("."))) for found in re.findall(r"^## (\S+)", text("CHANGELOG.md"), re.M)
    ]
    assert sections == sorted(set(sections), reverse=True)


def of_extra(extras, name):
    """Its requirements, those of the extras that it names among them."""
    for line in extras[name]:
        others = re.fullmatch(r"spcacore\[([\w,-]+)\]", line)
        yield from (
            (x for other in others[1].split(",") for x in of_extra(extras, other)) if others else [line]
        )


def test_what_the_tests_need_is_the_extra():
    """A file, so that the second command of the README does not build the package again."""
    lines = text("tests/requirements.txt").splitlines()
    extra = [*of_extra(project()["project"]["optional-dependencies"], "test-all")]
    assert sorted(line for line in lines if not line.startswith("#")) == sorted(set(extra))


def requirements(lines):
    """Lowest version by name, of requirements without a marker."""
    split = (re.fullmatch(r"([\w-]+)\s*>=([\d.]+)", line) for line in lines)
    return {found[1].lower(): found[2] for found in split if found}


def test_the_recipe_asks_for_what_the_package_does():
    recipe = text("recipe/recipe.yaml")
    sections = {
        name: requirements(re.findall(r"^ {4}- (.+)$", lines, re.M))
        for name, lines in re.findall(r"^  (\w+):\n((?: {4}.*\n)+)", recipe.split("requirements:\n")[1], re.M)
    }
    declared = project()
    of_command = declared["project"]["optional-dependencies"]["cli"]
    assert sections["run"] == requirements([*declared["project"]["dependencies"], *of_command])
    assert sections["host"] == requirements(declared["build-system"]["requires"])
    python = declared["project"]["requires-python"].removeprefix(">=")
    assert f'python_min: "{python}"' in recipe
    assert f"spcacore = {declared['project']['scripts']['spcacore']}" in recipe


def test_the_policy_names_the_lowest_versions():
    declared, policy = project()["project"], " ".join(text("docs/developer/policy.md").split())
    lowest = requirements(declared["dependencies"])
    python = declared["requires-python"].removeprefix(">=")
    assert f"Python {python}, NumPy {lowest['numpy']} and SciPy {lowest['scipy']}" in policy
    newer = dict(
        re.findall(r"(\w+)>=([\d.]+); python_version >= '3.13'", "\n".join(declared["dependencies"]))
    )
    assert f"NumPy {newer['numpy']} and SciPy {newer['scipy']} with Python 3.13" in policy


def test_metadata_of_archives_agree():
    citation, archive = text("CITATION.cff"), json.loads(text(".zenodo.json"))
    assert f'title: "{archive["title"]}"' in citation
    assert f"license: {archive['license']}" in citation
    assert archive["license"] == project()["project"]["license"]
    assert [f'name: "{creator["name"]}"' in citation for creator in archive["creators"]] == [True]


def test_wheels_are_made_for_the_oldest_python():
    wheels = project()["tool"]["cibuildwheel"]
    python = project()["project"]["requires-python"].removeprefix(">=").replace(".", "")
    assert f"cp{python}-*" in wheels["build"].split()
    assert f"limited_api: '{python[0]}.{python[1:]}'" in text("meson.build")
    for system in ("linux", "macos", "windows"):
        assert any(".ci/sbom {dest_dir}" in command for command in wheels[system]["repair-wheel-command"])
    named = re.findall(r"\{project\}/(\S+)", json.dumps(wheels).replace('"', " "))
    assert len(named) > 5
    assert [name for name in named if not name.startswith(".ci") and not (ROOT / name).exists()] == []


# ---- workflows ---------------------------------------------------------------------------------------


@pytest.fixture
def workflows():
    found = {path.name: path.read_text("utf-8") for path in ROOT.glob(".github/workflows/*.yml")}
    return found or pytest.skip("no workflows in this copy of the sources")


def test_workflows_name_what_there_is(workflows):
    sessions = set(re.findall(r"^@nox\.session.*\ndef (\w+)", text("noxfile.py"), re.M))
    named = re.findall(r"session: \[(.+)\]", workflows["tests.yml"])
    assert len(named) == 2
    assert {name for names in named for name in names.split(", ")} <= sessions
    every = "\n".join(workflows.values())
    scripts = set(re.findall(r"\.ci/\w+", every))
    assert scripts == {".ci/run", ".ci/sdist"}
    assert all((ROOT / script).read_bytes().startswith(b"#!/usr/bin/env ") for script in scripts)
    assert {
        name for name in re.findall(r"uses: \./\.github/workflows/(\S+)", every) if name not in workflows
    } == set()


def test_workflows_may_do_what_they_must_alone(workflows):
    for name, lines in workflows.items():
        assert re.search(r"^permissions:\n  contents: read\n\n", lines, re.M), name
        assert len(re.findall("actions/checkout@", lines)) == lines.count("persist-credentials: false"), name
        assert lines.count("timeout-minutes:") == lines.count("runs-on:"), name
        assert "secrets." not in lines
        for command in re.findall(r"^ +(?:- )?run: (?:\|\n)?(.+)$", lines, re.M):
            assert "github." not in command, f"{name}: {command}"  # what a stranger may have written
    may_publish = [name for name, lines in workflows.items() if "id-token: write" in lines]
    assert sorted(may_publish) == ["docs.yml", "publish.yml"]


# ---- the bill of materials ---------------------------------------------------------------------------

METADATA = """Metadata-Version: 2.4
Name: spcacore
Version: 9.8.7
License-Expression: BSD-3-Clause
Requires-Dist: numpy>=1.26
Requires-Dist: numpy>=2.1; python_version >= '3.13'
Requires-Dist: scipy>=1.13
Requires-Dist: pandas>=2.2; extra == "data"
"""
CORE = b"\x7fELF _cython_3_1_4limited and more"


def bill_of(folder):
    """The wheel of a folder after `.ci/sbom`: its bytes, and its files by name."""
    if not CI.exists():
        pytest.skip("source distributions have no checks")
    folder.mkdir()
    wheel = folder / "spcacore-9.8.7-cp311-abi3-linux_x86_64.whl"
    info = "spcacore-9.8.7.dist-info/"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in {"spcacore/_core.abi3.so": CORE, info + "METADATA": METADATA}.items():
            archive.writestr(zipfile.ZipInfo(name, (2023, 11, 14, 0, 0, 0)), data)
        record = f"spcacore/_core.abi3.so,,\n{info}METADATA,,\n{info}RECORD,,\n"
        archive.writestr(zipfile.ZipInfo(info + "RECORD", (2023, 11, 14, 0, 0, 0)), record)
    command = [sys.executable, CI / "sbom", folder]
    subprocess.run(command, check=True, cwd=folder)
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
        assert {entry.date_time for entry in archive.infolist()} == {(2023, 11, 14, 0, 0, 0)}
    return wheel, info, files, command


def test_bill_of_materials(tmp_path):
    wheel, info, files, command = bill_of(tmp_path / "one")
    data = files[info + "sboms/spcacore.cdx.json"]
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
    assert files[info + "RECORD"].decode().splitlines() == [
        "spcacore/_core.abi3.so,,",
        f"{info}METADATA,,",
        f"{info}RECORD,,",
        f"{info}sboms/spcacore.cdx.json,sha256={digest},{len(data)}",
    ]
    assert files["spcacore/_core.abi3.so"] == CORE
    bill = json.loads(data)
    package = bill["metadata"]["component"]
    assert (package["purl"], package["licenses"]) == (
        "pkg:pypi/spcacore@9.8.7", [{"license": {"id": "BSD-3-Clause"}}]
    )  # fmt: skip
    assert [tool["purl"] for tool in bill["metadata"]["tools"]["components"]] == ["pkg:pypi/cython@3.1.4"]
    parts = {part["name"]: part for part in bill["components"]}
    assert sorted(parts) == ["numpy", "scipy", "spcacore/_core.abi3.so"]  # no extra
    assert parts["spcacore/_core.abi3.so"]["hashes"][0]["content"] == hashlib.sha256(CORE).hexdigest()
    assert [item["value"] for item in parts["numpy"]["properties"]] == [
        "numpy>=1.26", "numpy>=2.1; python_version >= '3.13'"
    ]  # fmt: skip
    (graph,) = bill["dependencies"]
    assert sorted(graph["dependsOn"]) == sorted(part["bom-ref"] for part in parts.values())
    again, *_ = bill_of(tmp_path / "two")
    assert again.read_bytes() == wheel.read_bytes()
    second = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert second.returncode
    assert "already" in second.stderr
    empty = subprocess.run([*command[:2], tmp_path], cwd=tmp_path, capture_output=True, text=True)
    assert empty.returncode
    assert "no wheel" in empty.stderr
