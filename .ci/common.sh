# What the stages share: source it from the root of the repository.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_QUIET=1

python_of() { # the newest interpreter of a version: a pyenv one, else on PATH
    local found
    for found in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$1".*/bin/python "$(command -v "python$1" || true)"; do
        if [ -x "$found" ] && "$found" -c 'import venv' 2>/dev/null; then echo "$found"; return; fi
    done
}

need() { # the first of some versions of Python that is here
    local version
    for version in "$@"; do
        if [ -n "$(python_of "$version")" ]; then python_of "$version"; return; fi
    done
    echo "none of Python $* is here" >&2
    return 1
}

readme_command() { # the commands that the README gives, by number
    sed -n 's/^\$ \(pip install .*\)/\1/p' "$root/README.md" | sed -n "$1p"
}

have() { # COMMAND PACKAGE...: installed by apt-get where we may, else said to be missing
    if command -v "$1" >/dev/null; then return; fi
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get -qq update && apt-get -qq install -y "${@:2}" >/dev/null && return
    fi
    echo "$1 is not here: left out"
    return 1
}
