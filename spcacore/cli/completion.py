"""Completions of the command for bash, zsh and fish, written from its arguments."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator

__all__ = ["SHELLS", "script"]
__dir__ = __all__.copy

SHELLS = ("bash", "zsh", "fish")
_PLAIN = str.maketrans("[]:", "(),", "'\"\\`")


def script(shell: str, parser: argparse.ArgumentParser) -> str:
    """What the shell has to read: `spcacore --completion bash > FILE`."""
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](parser)


def _commands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def _options(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Those with flags."""
    return (a for a in parser._actions if a.option_strings)


def _choices(action: argparse.Action) -> list[str]:
    return [str(choice) for choice in action.choices or ()]


def _bash(parser: argparse.ArgumentParser) -> str:
    lines = [
        "# completions of spcacore for bash: source <(spcacore --completion bash)",
        "_spcacore() {",
        '    local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" words=""',
        '    if [[ "$before" == "=" ]]; then before="${COMP_WORDS[COMP_CWORD-2]}"; fi  # --method=NAME',
        '    if [[ "$word" == "=" ]]; then word=""; fi',
        '    case "${COMP_WORDS[1]}:$before" in',
    ]
    commands = _commands(parser)
    for name, command in commands.items():
        for action in _options(command):
            if action.choices:
                flags = "|".join(f"{name}:{flag}" for flag in action.option_strings)
                lines.append(f"        {flags}) words={shlex.quote(' '.join(_choices(action)))} ;;")
    lines += [
        "    esac",
        '    if [[ -z "$words" && "$word" == -* ]]; then',
        '        case "${COMP_WORDS[1]}" in',
    ]
    for name, command in commands.items():
        flags = " ".join(flag for action in _options(command) for flag in action.option_strings)
        lines.append(f"            {name}) words={shlex.quote(flags)} ;;")
    own = " ".join(flag for action in _options(parser) for flag in action.option_strings)
    lines += [
        f"            *) words={shlex.quote(own)} ;;",
        "        esac",
        '    elif [[ -z "$words" && $COMP_CWORD -eq 1 ]]; then',
        f"        words={shlex.quote(' '.join(commands))}",
        "    fi",
        '    if [[ -n "$words" ]]; then',
        '        COMPREPLY=($(compgen -W "$words" -- "$word"))',
        "    else",
        "        local IFS=$'\\n'",
        '        COMPREPLY=($(compgen -f -- "$word"))',
        "    fi",
        "}",
        "complete -o filenames -F _spcacore spcacore",
    ]
    return "\n".join(lines) + "\n"


def _plain(text: str | None) -> str:
    """The help of an option as one line without what shells take for their own."""
    words = " ".join((text or "").replace("%%", "%").split())
    return words.translate(_PLAIN)


def _zsh(parser: argparse.ArgumentParser) -> str:
    commands = _commands(parser)
    lines = [
        "#compdef spcacore",
        "# completions of spcacore for zsh: source <(spcacore --completion zsh)",
        "_spcacore() {",
        "    if (( CURRENT == 2 )); then",
        f"        compadd -- {' '.join(commands)} --help --version --completion",
        "        return",
        "    fi",
        "    case ${words[2]} in",
    ]
    for name, command in commands.items():
        lines.append(f"        {name})")
        lines.append("            _arguments -S '2:FILE:_files' \\")
        for action in _options(command):
            takes = action.nargs != 0
            what = f"({' '.join(_choices(action))})" if action.choices else "_files"
            value = f":{action.metavar or action.dest}:{what}" if takes else ""
            for flag in action.option_strings:
                both = "=" * (takes and flag.startswith("--"))  # --method NAME and --method=NAME
                lines.append(f"                '{flag}{both}[{_plain(action.help)}]{value}' \\")
        lines += ["                '*:FILE:_files'", "            ;;"]
    lines += ["    esac", "}", 'if [ "$funcstack[1]" = "_spcacore" ]; then _spcacore "$@"; else '
              "compdef _spcacore spcacore; fi"]  # fmt: skip
    return "\n".join(lines) + "\n"


def _fish(parser: argparse.ArgumentParser) -> str:
    commands = _commands(parser)
    names = " ".join(commands)
    lines = [
        "# completions of spcacore for fish: spcacore --completion fish | source",
        f"complete -c spcacore -n 'not __fish_seen_subcommand_from {names}' -a '{names}' -f",
    ]
    for name, command in (("", parser), *commands.items()):
        where = f"__fish_seen_subcommand_from {name}" if name else f"not __fish_seen_subcommand_from {names}"
        for action in _options(command):
            flags = " ".join(
                f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}"
                for flag in action.option_strings
            )
            takes = " -r" * (action.nargs != 0)
            rule = f"complete -c spcacore -n '{where}' {flags}"
            if action.choices:  # apart, or else each is described as the option is
                lines.append(f"{rule} -x -a '{' '.join(_choices(action))}'")
            lines.append(f"{rule}{takes} -d '{_plain(action.help)}'")
    return "\n".join(lines) + "\n"
