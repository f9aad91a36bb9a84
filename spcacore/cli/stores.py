"""Parquet and .h5ad files as tables. What reads them is installed apart; nothing is unpickled."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from .source import Source
from .table import Table, UserError, compressed

__all__ = ["read_h5ad", "read_parquet"]
__dir__ = __all__.copy


def _needs(source: Source, package: str) -> UserError:
    return UserError(f"{source}: reading such files needs {package}; pip install {package}")


# ---- Parquet ----------------------------------------------------------------------------------------


def read_parquet(source: Source) -> Table:
    """Columns of numbers; an index, or else a first column of words, names the rows."""
    try:
        import pyarrow as pa
        import pyarrow.parquet
    except ImportError:
        raise _needs(source, "pyarrow") from None
    with pyarrow.parquet.ParquetFile(source.path) as file:
        table = file.read()
    metadata = (table.schema.pandas_metadata or {}).get("index_columns", [])
    index_names = [name for name in metadata if isinstance(name, str)]  # a range is not
    index: list[list[Any]] = []
    columns: list[tuple[str, Any]] = []
    for field, column in zip(table.schema, table.columns, strict=True):
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        words = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
        if field.name in index_names or (words and not index and not columns and not index_names):
            index.append(column.to_pylist())
            continue
        narrow = pa.types.is_float16(kind) or pa.types.is_float32(kind)
        wide = pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)
        if kind is not field.type or not (narrow or wide or pa.types.is_decimal(kind)):
            what = "words" if words else field.type
            advice = ", or put it first to name the rows" if words and not index else ""
            raise UserError(f"{source}: column {field.name!r} holds {what}, not numbers; drop it{advice}")
        columns.append((field.name, column.cast(pa.float32() if narrow else pa.float64(), safe=False)))
    single = bool(columns) and all(column.type == pa.float32() for _, column in columns)
    matrix = np.empty((table.num_rows, len(columns)), np.float32 if single else np.float64, order="F")
    for j, (_, column) in enumerate(columns):
        matrix[:, j] = column.to_numpy()
    labels = zip(*index, strict=True)
    row_names = tuple(" ".join("" if part is None else str(part) for part in label) for label in labels)
    return Table(matrix, tuple(name for name, _ in columns), row_names if index else None)


# ---- .h5ad ------------------------------------------------------------------------------------------


def read_h5ad(source: Source, wanted: str | None) -> Table:
    """X, a layer, or the raw X of annotated data, with the names of the variables and observations."""
    try:
        import h5py
    except ImportError:
        raise _needs(source, "h5py") from None
    with h5py.File(source.path, "r") as file:
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
    index = node[place]
    if isinstance(index, h5py.Group):
        if "categories" in index:
            words = _dataset_strings(source, f"{axis}/{place}", index["categories"])
            return tuple(words[code] if code >= 0 else "" for code in index["codes"][()])
        index = index["values"]
    return _dataset_strings(source, f"{axis}/{place}", index)


def _dataset_strings(source: Source, place: str, node: Any) -> tuple[str, ...]:
    return _strings(source, place, node[()], node.dtype)


def _strings(source: Source, place: str, values: NDArray[Any], dtype: Any) -> tuple[str, ...]:
    import h5py

    if dtype.kind not in "iuS" and h5py.check_string_dtype(dtype) is None:
        raise UserError(f"{source}: {place} holds dtype {dtype}; names must be words")
    return tuple(v.decode() if isinstance(v, bytes) else str(v) for v in values.tolist())
