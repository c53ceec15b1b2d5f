"""Plans and what they are made of as plain values, and back, every value of the type that Sequester writes.

A plan lies around until it is published, and anybody may have edited it. What it says is compared with the plan that is
made anew; here only its shape is judged, so that whatever is in the file ends in the same words.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from sequester.errors import DataError, Problem
from sequester.regular import Unreadable, read_regular

FORMAT = 6
Seed = Annotated[int, "of any size"]
"""Any other whole number counts something."""

_MARK = "sequester-plan"
_MOST_BYTES = 4 << 20
_LARGEST = 1 << 62
_SEED_BITS = 4096

Made = TypeVar("Made")


def plain(value: Any) -> Any:
    """A dataclass as plain values: its fields that are compared, and those of its properties that it names (`TOLD`)."""
    if is_dataclass(value):
        names = (*(field.name for field in fields(value) if field.compare), *getattr(value, "TOLD", ()))
        return {name: _plain(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    return list(map(_plain, value)) if isinstance(value, list | tuple) else value


def _plain(value: Any) -> Any:
    return value.to_dict() if hasattr(value, "to_dict") else plain(value)


def restored(kind: type[Made], raw: Any) -> Made:
    """The reverse of `plain`, without what is computed; ValueError where anything is not of its type."""
    made: Made = _made(kind, raw)
    return made


def to_text(value: Any) -> str:
    """A plan as it is in its file."""
    return json.dumps({_MARK: FORMAT, **plain(value)}, indent=2) + "\n"


def read_saved(path: Path, kind: type[Made]) -> Made:
    """A saved plan; DataError for anything else."""
    problem = "is not a plan that this version of Sequester saved; plan again"
    try:
        raw = json.loads(read_regular(path, most=_MOST_BYTES), parse_constant=_refuse)
        _hold(isinstance(raw, dict) and raw.pop(_MARK, None) == FORMAT and raw.get("source") is not None)
        made = restored(kind, raw)
        _hold(isinstance(raw["method"].get("name"), str))
        _hold(all(figures.keys() == {"most", "beyond"} for figures in raw["belief"].values()))
        return made
    except Unreadable as error:
        problem = str(error)
    except (ValueError, RecursionError):
        pass
    raise DataError(Problem(problem, file=str(path)))


def _refuse(constant: str) -> float:
    raise ValueError(constant)


def _hold(fits: bool) -> None:
    if not fits:
        raise ValueError("another shape")


def _made(kind: Any, raw: Any) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if is_dataclass(kind):
        return _group(kind, raw)
    if type(None) in inner:
        return None if raw is None else _made(inner[0], raw)
    if origin is Mapping:
        _hold(isinstance(raw, dict))
        return {name: _made(inner[1], one) for name, one in raw.items()}
    if origin is tuple:
        _hold(isinstance(raw, list))
        kinds = [inner[0]] * len(raw) if inner[1:] == (...,) else inner
        return tuple(_made(one, item) for one, item in zip(kinds, raw, strict=True))
    _hold(raw in inner if origin is Literal else _is_of(kind, raw))
    return raw


def _group(kind: Any, raw: Any) -> Any:
    # What is not compared is never saved, and of a type that need not be known here.
    known = {"Candidate": object, "InParts": object}
    kinds = get_type_hints(kind, localns=known, include_extras=True)
    kinds = {field.name: kinds[field.name] for field in fields(kind) if field.compare}
    _hold(isinstance(raw, dict) and raw.keys() == {*kinds, *getattr(kind, "TOLD", ())})
    return kind(**{name: _made(one, raw[name]) for name, one in kinds.items()})


def _is_of(kind: Any, raw: Any) -> bool:
    if kind == Seed:
        return type(raw) is int and raw >= 0 and raw.bit_length() <= _SEED_BITS
    if kind is int:
        return type(raw) is int and 0 <= raw < _LARGEST
    if kind is float:
        return abs(raw) < _LARGEST if type(raw) is int else type(raw) is float and math.isfinite(raw)
    if kind is Any:
        return raw is None or any(_is_of(one, raw) for one in (str, bool, float))
    return type(raw) is kind
