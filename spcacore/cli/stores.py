"""Parquet and .h5ad files as tables. What reads them is installed apart; nothing is unpickled."""

from __future__ import annotations

from typing import Any

import scipy.sparse
from numpy.typing import NDArray

from .source import Source
from .table import Arguments, Table, UserError, compressed
from .text import needed, table_of, with_index

__all__ = ["read_h5ad", "read_parquet"]
__dir__ = __all__.copy


def read_parquet(source: Source, args: Arguments) -> Table:
    """Columns of numbers; an index, or a first column of words or of numbers of the rows, names these."""
    needed(source, "pyarrow")
    pandas = needed(source, "pandas")
    frame = pandas.read_parquet(source.file())
    names, index = list(map(str, frame.columns)), []
    if not isinstance(frame.index, pandas.RangeIndex) and args.index_column is None:
        index = [*range(frame.index.nlevels)]
        names = [*(str(name or "") for name in frame.index.names), *names]
        frame = frame.reset_index(names=[f"\0{i}" for i in index])
    elif names:
        index = with_index(frame, [name or "?" for name in names], source, args)
    return table_of(frame, names, index, source, args, order="F")


# ---- .h5ad ------------------------------------------------------------------------------------------


def read_h5ad(source: Source, args: Arguments) -> Table:
    """X, a layer, or the raw X of annotated data, with the names of the variables and observations."""
    h5py, wanted = needed(source, "h5py"), args.array
    with h5py.File(source.file(), "r") as file:
        layers = file.get("layers", {})
        places = {name: f"layers/{name}" for name in layers}
        places |= {name: place for name, place in (("X", "X"), ("raw", "raw/X")) if place in file}
        if (wanted or "X") not in places:
            what = f"has no X, or {wanted!r} among its layers" if wanted else "has no X"
            listed = ", ".join(sorted(places)) or "nothing"
            raise UserError(f"{source} {what}; --array chooses among: {listed}")
        place = places[wanted or "X"]
        matrix = _matrix(source, place, file[place])
        variables = "raw/var" if place == "raw/X" else "var"
        counts = matrix.shape[::-1] if matrix.ndim == 2 else (None, None)
        names, row_names = (
            _names(source, axis, file[axis], count) if axis in file else None
            for axis, count in zip((variables, "obs"), counts, strict=True)
        )
        return Table(matrix, names, row_names, ", ".join(sorted(places)))


def _attribute(node: Any, *names: str) -> Any:
    """The first of the attributes that is there: names have changed with the versions of the format."""
    value = next((node.attrs[name] for name in names if name in node.attrs), None)
    return value.decode() if isinstance(value, bytes) else value


def _numbers(source: Source, place: str, node: Any) -> NDArray[Any]:
    import h5py

    if not isinstance(node, h5py.Dataset) or node.dtype.kind not in "fiub" or node.shape is None:
        what = f"dtype {node.dtype}" if isinstance(node, h5py.Dataset) else "a group"
        raise UserError(f"{source}: {place} holds {what}; real numbers are needed")
    return node[()]


def _matrix(source: Source, place: str, node: Any) -> Any:
    import h5py

    if isinstance(node, h5py.Dataset):
        return _numbers(source, place, node)
    encoding = _attribute(node, "encoding-type", "h5sparse_format")
    formats = {"csr": scipy.sparse.csr_matrix, "csc": scipy.sparse.csc_matrix}
    make = formats.get(str(encoding).removesuffix("_matrix"))
    if make is None:
        raise UserError(f"{source}: {place} is {encoding or 'a group'}; a dense, CSR or CSC matrix is needed")
    parts = [_numbers(source, f"{place}/{part}", node[part]) for part in ("data", "indices", "indptr")]
    shape = _attribute(node, "shape", "h5sparse_shape")
    if shape is None:
        raise UserError(f"{source}: {place} lacks its shape")
    return compressed(make(tuple(parts), shape=tuple(map(int, shape))))


def _names(source: Source, axis: str, node: Any, count: int | None) -> tuple[str, ...]:
    names = _index(source, axis, node)
    if count is not None and len(names) != count:
        raise UserError(f"{source}: {axis} has {len(names)} names for {count}")
    return names


def _index(source: Source, axis: str, node: Any) -> tuple[str, ...]:
    import h5py

    if isinstance(node, h5py.Dataset):  # a table, as in files from before 2020
        fields = node.dtype.names or ()
        field = next((name for name in ("index", "_index") if name in fields), None)
        if field is None:
            raise UserError(f"{source}: {axis} has no index")
        return _strings(source, f"{axis}/{field}", node.fields(field)[()], node.dtype[field])
    place = _attribute(node, "_index") or "_index"
    return _words(source, f"{axis}/{place}", node[place])


def _words(source: Source, place: str, node: Any) -> tuple[str, ...]:
    """The words of a dataset, of a group of categories and codes, or of codes that refer to categories."""
    import h5py

    if isinstance(node, h5py.Group):
        if "categories" not in node:
            return _words(source, place, node["values"])
        codes, categories = node["codes"], node["categories"]
    elif "categories" in node.attrs:  # version 0.7
        codes, categories = node, node.file[node.attrs["categories"]]
    else:
        return _strings(source, place, node[()], node.dtype)
    words = _words(source, place, categories)
    return tuple(words[code] if code >= 0 else "" for code in codes[()])


def _strings(source: Source, place: str, values: NDArray[Any], dtype: Any) -> tuple[str, ...]:
    import h5py

    if dtype.kind not in "iuS" and h5py.check_string_dtype(dtype) is None:
        raise UserError(f"{source}: {place} holds dtype {dtype}; names must be words")
    return tuple(v.decode() if isinstance(v, bytes) else str(v) for v in values.tolist())
