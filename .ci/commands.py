"""The stages of .ci/run as commands of spin: `spin readme`, `spin asan`, ...; and `spin check`."""

import subprocess
from pathlib import Path

import click

HERE = Path(__file__).parent


def stage(name: str, text: str) -> click.Command:
    @click.command(name, help=text, context_settings={"ignore_unknown_options": True})
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    def run(arguments: tuple[str, ...]) -> None:
        raise SystemExit(subprocess.run(["bash", HERE / name, *arguments], check=False).returncode)

    return run


for path in sorted(HERE.iterdir()):
    if path.is_file() and not path.suffix and path.name != "run":
        first = path.read_text().splitlines()[1].removeprefix("# ")
        globals()[path.name.replace("-", "_")] = stage(path.name, first)
check = stage("run", "The quick stages; `all`: every stage; or the names of some.")
check.name = "check"
