"""Files of loadings, as `fit -o` and other programs write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._labels import wrong_labels
from .._messages import counted
from .._records import record
from ..readable import labels
from .reading import refusing
from .source import needed, source_of
from .table import Arguments, UserError, unquoted

__all__ = ["Saved", "adopt", "known_names", "places", "read_saved", "rows_for"]


_COLUMNS = {"center": "mean", "scale": "scale", "kind": "kind"}  # of .csv, and what they are in .npz
_PLAIN = {"mean": 0, "scale": 1}


@record
class Saved:
    """Loadings, a row for each variable, the kind of matrix that was fitted, and the fields of the file."""

    path: str
    kind: str  # nothing where the file does not say
    names: list[str] | None
    loadings: NDArray[Any]
    fields: dict[str, Any]


def read_saved(path: str) -> Saved:
    refused = f"argument --loadings: {path}"
    with refusing(path):
        source = source_of(path)
        if source.kind == ".npz":
            fields = dict(np.load(source.file(), allow_pickle=False))
        elif source.kind == ".csv":
            with source.open_text() as file:
                frame = needed(source, "pandas").read_csv(
                    file, index_col=0, converters={0: str}, float_precision="round_trip"
                )
            fields = {_COLUMNS[one]: frame.pop(one).to_numpy() for one in _COLUMNS if "kind" in frame}
            fields = {name: values for name, values in fields.items() if (values != _PLAIN.get(name)).any()}
            fields |= {"names": frame.index.to_numpy(), "loadings": frame.to_numpy()}
        else:
            raise UserError(f"{refused} is neither .csv nor .npz")
    if "loadings" not in fields:
        raise UserError(f"{refused} has no array 'loadings', but: {', '.join(fields) or 'nothing'}")
    V = fields["loadings"]
    for name in {"loadings", "weights", "mean", "scale"} & fields.keys():
        values = fields[name]
        if (
            values.dtype.kind not in "fiub"
            or values.shape[:1] != V.shape[:1]
            or not np.isfinite(values).all()
        ):
            raise UserError(f"{refused}: {name} must be finite numbers, a row for each variable")
    names = [*map(str, fields["names"])] if "names" in fields else None
    return Saved(path, str(np.ravel(fields.get("kind", ""))[0]), names, V.reshape(len(V), -1), fields)


def adopt(args: Arguments, files: Sequence[Saved]) -> None:
    """Take the matrix as the loadings were fitted; refuse options that contradict that."""
    for name, field in (("center", "mean"), ("scale", "scale")):
        kinds = {"data", "covariance"} if name == "scale" else {"data"}
        known = {field in one.fields: one.path for one in files if one.kind in kinds}
        asked = getattr(args, name)
        if known and (asked not in known if asked is not None else len(known) > 1):
            said = ", ".join(
                f"{path} was fitted with --{'no-' * (not how)}{name}" for how, path in known.items()
            )
            raise UserError(f"argument --{name if asked is None or asked else f'no-{name}'}: {said}")
        if asked is None:
            asked = next(iter(known), name == "center")
            if asked != (name == "center"):
                args.notes.append(f"--{'no-' * (not asked)}{name}, as {known[asked]} says")
        setattr(args, name, asked)
    if not args.covariance and {one.kind for one in files} == {"covariance"}:
        args.covariance = "auto"


def known_names(saved: Saved, names: Sequence[str]) -> list[str]:
    """Those in the file of loadings, without what was put before formulas where these names lack it."""
    known = labels(saved.names, len(saved.loadings))
    return known if set(known) <= set(names) else list(map(unquoted, known))


def places(wanted: Sequence[str], names: Sequence[str], of: object, path: object) -> list[int]:
    """Where the names that `of` has are among those of `path`."""
    if list(wanted) == list(names):  # in their order, though some may be the same
        return [*range(len(names))]
    at = {name: j for j, name in enumerate(names)}
    known = set(wanted)
    wrong = wrong_labels([name for name in names if name in known], wanted)
    if wrong:
        raise UserError(f"{path} does not have the variables of {of}: it is {wrong}")
    return [at[name] for name in wanted]


def rows_for(saved: Saved, names: Sequence[str], source: object) -> NDArray[np.float64]:
    """The loadings with a row for each of these variables, whatever the order of the file."""
    V, path = saved.loadings, saved.path
    if len(V) != len(names):
        raise UserError(
            f"argument --loadings: {path} has {counted(len(V), 'variable')}, {source} has {len(names)}"
        )
    if saved.names is not None:
        V = V[places(names, known_names(saved, names), source, path)]
    empty = np.flatnonzero(~V.any(axis=0))
    if V.shape[1] == 0 or len(empty):
        which = f"component {empty[0] + 1} of {path} has" if len(empty) else f"{path} has"
        raise UserError(f"argument --loadings: {which} no loading that is not zero")
    return V.astype(np.float64)
