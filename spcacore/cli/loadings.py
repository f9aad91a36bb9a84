"""Files of loadings, as `fit -o` and other programs write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas

from .._labels import wrong_labels
from .._messages import counted
from .._records import record
from .._types import AnyArray, Array
from ..readable import labels
from .source import Arguments, Table, UserError, refusing, source_of, unquoted

_BESIDE = {"center": "mean", "scale": "scale", "kind": "kind"}  # columns of .csv: what the fit did


@record
class Saved:
    """Loadings, a row for each variable, the kind of matrix that was fitted, and the fields of the file."""

    path: str
    kind: str  # nothing where the file does not say
    names: list[str] | None
    loadings: AnyArray
    fields: dict[str, Any]


def read_saved(path: str) -> Saved:
    refused = f"argument --loadings: {path}"
    with refusing(path):
        source = source_of(path)
        if source.kind == ".npz":
            fields = dict(np.load(source.file(), allow_pickle=False))
        elif source.kind == ".csv":
            frame = pandas.read_csv(
                source.lines(), index_col=0, converters={0: str}, float_precision="round_trip"
            )
            fields = {"names": frame.index.to_numpy()}
            beside = frame.columns.intersection(list(_BESIDE) if "kind" in frame else [])
            fields |= {_BESIDE[name]: frame.pop(name).to_numpy() for name in beside}
            fields["loadings"] = frame.to_numpy()
        else:
            raise UserError(f"{refused} is neither .csv nor .npz")
    if "loadings" not in fields:
        raise UserError(f"{refused} has no array 'loadings', but: {', '.join(fields) or 'nothing'}")
    V = fields["loadings"]
    for name in {"loadings", "weights", "mean", "scale"} & fields.keys():
        values = fields[name]
        numbers = values.dtype.kind in "fiub" and values.shape[:1] == V.shape[:1]
        if not numbers or not np.isfinite(values).all():
            raise UserError(f"{refused}: {name} must be finite numbers, a row for each variable")
    names = [*map(str, fields["names"])] if "names" in fields else None
    return Saved(path, str(np.ravel(fields.get("kind", ""))[0]), names, V.reshape(len(V), -1), fields)


def adopt(args: Arguments, files: Sequence[Saved]) -> None:
    """Take the matrix as the loadings were fitted; refuse options that contradict that."""
    for name, field, kinds in (("center", "mean", ["data"]), ("scale", "scale", ["data", "covariance"])):
        known = {field in one.fields: one.path for one in files if one.kind in kinds}
        asked = getattr(args, name)
        if known and (len(known) > 1 if asked is None else asked not in known):
            flag = {how: f"--{'no-' * (not how)}{name}" for how in (False, True)}
            said = ", ".join(f"{path} was fitted with {flag[how]}" for how, path in known.items())
            raise UserError(f"argument {flag[asked is not False]}: {said}")
        if asked is None:
            setattr(args, name, next(iter(known), name == "center"))
    if not args.covariance and {one.kind for one in files} == {"covariance"}:
        args.covariance = "auto"


def places(saved: Saved, table: Table, source: object) -> list[int]:
    """Where the variables of the loadings are in the table: by name or, where one has no names, in order."""
    names, wanted = table.variables(), labels(saved.names, len(saved.loadings))
    if not set(wanted) <= set(names):
        wanted = list(map(unquoted, wanted))
    nameless = not set(wanted) <= set(names) and (table.names is None or saved.names is None)
    if nameless and len(wanted) != len(names):
        here, there = (counted(len(one), "variable") for one in (names, wanted))
        raise UserError(
            f"{source} has {here}, {saved.path} has {there}, and they cannot be matched without names"
        )
    if nameless or wanted == names:  # though some may be the same
        return [*range(len(names))]
    wrong = wrong_labels([name for name in names if name in set(wanted)], wanted)
    if wrong:
        raise UserError(f"{source} does not have the variables of {saved.path}: it is {wrong}")
    return [names.index(name) for name in wanted]


def rows_for(saved: Saved, table: Table, source: object) -> Array:
    """The loadings with a row for each variable of the table, whatever the order of the file."""
    V, path, p = saved.loadings, saved.path, table.matrix.shape[1]
    if len(V) != p:
        raise UserError(f"argument --loadings: {path} has {counted(len(V), 'variable')}, {source} has {p}")
    empty = np.flatnonzero(~V.any(axis=0))
    if len(empty):
        raise UserError(
            f"argument --loadings: component {empty[0] + 1} of {path} has no loading that is not zero"
        )
    return V.astype(np.float64)[np.argsort(places(saved, table, source))]
