"""What C, C++ and _core.pyx know of the functions that _core.pxd exports: `interface.py _core.pxd OUT`.

OUT is spcacore.h, or a .pxi. Both have a table: each function for float and for double, in that order.
"""

import re
import sys
import textwrap
from pathlib import Path

STOP = "int (*stop)(void *) noexcept nogil"
REALS = {"s": "float", "d": "double"}
VERSION = 1  # of the table; another one where a function is changed or removed, not where one is added

HEADER = """\
/* spcacore.h - the kernels of spcacore for extensions in C and C++: a table of functions, which
 * spcacore_import() finds at run time, so that nothing is linked.  Include Python.h first.  Made from
 * _core.pxd: spca_NAME is sNAME here for float, dNAME for double, or NAME where it is one function.
 *
{about}
 */
#ifndef SPCACORE_H
#define SPCACORE_H
#include <stddef.h>
#ifdef __cplusplus
extern "C" {{
#endif

#define SPCACORE_TABLE_VERSION {version}

{constants}

typedef ptrdiff_t spcacore_int;
typedef int (*spcacore_stop)(void *ctx);

/* Functions are added at the end, and never changed or removed: an extension works with every later
 * table of the same version. */
typedef struct {{
    int version;
    size_t size; /* of the table, in bytes */
{functions}
}} spcacore_table;

#ifdef Py_PYTHON_H
/* NULL, and an ImportError, where spcacore is missing or older than this header. */
static inline const spcacore_table *spcacore_import(void)
{{
    const spcacore_table *table = (const spcacore_table *)PyCapsule_Import("spcacore._core.table", 0);
    if (table && (table->version != SPCACORE_TABLE_VERSION || table->size < sizeof(spcacore_table))) {{
        PyErr_Format(PyExc_ImportError,
                     "built for a table of spcacore of version %d and %zu bytes, "
                     "but this one has version %d and %zu bytes",
                     SPCACORE_TABLE_VERSION, sizeof(spcacore_table), table->version, table->size);
        return NULL;
    }}
    return table;
}}
#endif

#ifdef __cplusplus
}}
#endif
#endif
"""

TABLE = """\
# Written by interface.py.
from cpython.pycapsule cimport PyCapsule_New

cdef struct spcacore_table:
    int version
    size_t size
{functions}
cdef spcacore_table _table
_table.version, _table.size = {version}, sizeof(spcacore_table)
{entries}
table = PyCapsule_New(&_table, "spcacore._core.table", NULL)
"""


def functions(pxd: str) -> list[tuple[str, str, str, str]]:
    """Comment, result, name and arguments of each function."""
    pattern = r"((?:^#.*\n)*)^cdef (\w+) spca_(\w+)\(([^;]*?)\) noexcept nogil$"
    return re.findall(pattern, pxd.replace(STOP, "spcacore_stop stop"), re.M)


def table(pxd: str, template: str, of_function: str = "") -> str:
    """The template for each function, or for its two precisions, behind a line for the function itself."""
    lines = []
    for note, result, name, arguments in functions(pxd):
        text = "\n     * ".join(line.removeprefix("# ") for line in note.splitlines())
        lines += [of_function.format(text)] if of_function and note else []
        fused = "floating" in arguments
        for letter, real in REALS.items() if fused else [("", "")]:
            given = " ".join(arguments.replace("floating", real).split())
            of = f"spca_{name}[{real}]" if fused else f"spca_{name}"
            lines.append(template.format(result=result, name=letter + name, arguments=given, function=of))
    return "\n".join(lines)


def for_c(pxd: str) -> str:
    """spcacore.h"""
    constants = re.search(r"cdef enum:\n((?: .*\n)+)", pxd)[1]
    about = re.search(r'"""[^\n]*\n\n(.*?)\n"""', pxd, re.S)[1]
    text = table(pxd, "    {result} (*{name})({arguments});", "    /* {} */")
    text = text.replace("Py_ssize_t", "spcacore_int").replace("bint", "int").replace(" *", "~*")
    text = "\n".join(textwrap.fill(line, 118, subsequent_indent=" " * 8) for line in text.splitlines())
    return HEADER.format(
        about="\n".join(f" * {line}".rstrip() for line in about.splitlines()),
        version=VERSION,
        constants="enum {\n"
        + re.sub(r"(-?\d+)( *#)? ?(.*)", r"\1, /* \3 */", constants).replace(" /*  */", "")
        + "};",
        functions=text.replace("~", " "),
    )


def for_cython(pxd: str) -> str:
    """The table for _core.pyx."""
    return TABLE.format(
        functions=table(pxd, "    {result} (*{name})({arguments}) noexcept nogil").replace(
            "spcacore_stop stop", STOP
        ),
        version=VERSION,
        entries=table(pxd, "_table.{name} = {function}"),
    )


if __name__ == "__main__":
    source, out = map(Path, sys.argv[1:])
    write = for_c if out.suffix == ".h" else for_cython
    out.write_text(write(source.read_text(encoding="utf-8")), encoding="utf-8")
