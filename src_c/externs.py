"""What _core.pyx knows of the C core: `externs.py spca_proto.h spca_double.h OUT BLAS_NOTHING`.

Structs and functions of the first are declared for float and for double, functions of the second as they are.
Each function of the first that takes a REAL also gets one of a fused type, `kernel_NAME`, which calls the one
or the other: for it an operator is a `const void *`, and a vector its three fields.
"""

import re
import sys
from pathlib import Path

PRECISIONS = {"float": "s", "double": "d"}
STRUCTS = (r"typedef struct \{(?P<body>[^}]*)\} SPCA\((?P<name>\w+)\);",
           r"(?<!typedef )struct SPCA\((?P<name>\w+)\) \{(?P<body>[^}]*)\};")  # fmt: skip
VECTOR = """
cdef inline spca_?vector ?vector(spca_int nnz, const spca_int *index, const REAL *value) noexcept nogil:
    cdef spca_?vector v
    v.nnz, v.index, v.value = nnz, index, value
    return v
"""


def of_precision(text: str, real: str) -> str:
    """The text with the names and the real type of one precision."""
    text = re.sub(r"SPCA\((\w+)\)", rf"spca_{PRECISIONS[real]}\1", text)
    return re.sub(r"\bREAL\b", real, text).replace("?", PRECISIONS[real])


def struct(name: str, body: str) -> str:
    fields = (" ".join(field.split()) for field in body.split(";") if field.strip())
    lines = (f"        {field}{' noexcept nogil' if '(*' in field else ''}" for field in fields)
    return "\n".join([f"    ctypedef struct SPCA({name}):", *lines])


def split_argument(argument: str) -> tuple[str, str] | None:
    """Its type and its name, which some prototypes leave out."""
    found = re.fullmatch(r"(.*[\s*])(\w+)", argument.strip())
    return (found[1].strip(), found[2]) if found and found[2] not in ("REAL", "spca_int") else None


def fused(result: str, name: str, arguments: list[tuple[str, str]]) -> str:
    """The function of a fused type."""
    taken, passed = [], []
    for kind, x in arguments:
        if kind == "SPCA(vector)":
            taken += [f"spca_int {x}_nnz", f"const spca_int *{x}_index", f"const floating *{x}_value"]
            passed.append(f"?vector({x}_nnz, {x}_index, {x}_value)")
        elif "SPCA(operator)" in kind:
            taken.append(f"const void *{x}")
            passed.append(f"<const SPCA(operator) *> {x}")
        else:
            taken.append(f"{kind.replace('REAL', 'floating')} {x}")
            passed.append(x)
    call = f"        {'' if result == 'void' else 'return '}SPCA({name})({', '.join(passed)})"
    result = result.replace("REAL", "floating")
    return (
        f"\ncdef inline {result} kernel_{name}({', '.join(taken)}) noexcept nogil:\n"
        f"    if floating is float:\n{of_precision(call, 'float')}\n    else:\n{of_precision(call, 'double')}"
    )


def plain(header: str) -> str:
    """A header without comments and line ends."""
    return " ".join(re.sub(r"/\*.*?\*/", " ", header, flags=re.S).split())


def externs(header: str, double: str) -> str:
    """The text of the whole file."""
    header = plain(header)
    declared = [struct(m["name"], m["body"]) for pattern in STRUCTS for m in re.finditer(pattern, header)]
    declared += [f"    {variable}" for variable in re.findall(r"extern ([^;]*);", header)]
    functions = re.sub(r"(typedef )?struct [^{;]*\{[^}]*\}[^;]*;", " ", header)
    both = []
    for result, name, arguments in re.findall(r"([\w() ]+?[ *]+)SPCA\((\w+)\)\(([^;]*)\);", functions):
        declared.append(f"    {result.strip()} SPCA({name})({arguments}) noexcept")
        named = [split_argument(argument) for argument in re.split(r",\s*", arguments)]
        if None not in named and any("REAL" in kind or kind == "SPCA(vector)" for kind, _ in named):
            both.append(fused(result.strip(), name, named))
    lines = ["# Written by externs.py.", 'cdef extern from "spca.h" nogil:']
    for real in PRECISIONS:
        lines += [of_precision(text, real) for text in declared]
    lines += [f"    {function.strip()} noexcept" for function in plain(double).split(";") if function.strip()]
    lines += [of_precision(VECTOR, real) for real in PRECISIONS]
    return "\n".join(lines + both) + "\n"


if __name__ == "__main__":
    *files, nothing = sys.argv[1:]
    *sources, out = map(Path, files)
    text = externs(*(source.read_text(encoding="utf-8") for source in sources))
    out.write_text(text.replace("BLAS_NOTHING", nothing), encoding="utf-8")
