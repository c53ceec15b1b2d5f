"""A saved plan as it is in its file: JSON whose every field has the type that Sequester writes.

A plan lies around until it is published, and anybody may have edited it. What it says is compared with the plan that is
made anew; here only its shape is judged, so that whatever is in the file ends in the same words.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sequester.causes import KINDS
from sequester.errors import DataError, Problem
from sequester.regular import Unreadable, read_regular

FORMAT = 6
_MARK = "sequester-plan"
_MOST_BYTES = 4 << 20
_LARGEST = 1 << 62
_SEED_BITS = 4096

Test = Callable[[Any], bool]


def read_saved(path: Path) -> dict[str, Any]:
    """The fields of a saved plan, each of its type; DataError for anything else."""
    problem = "is not a plan that this version of Sequester saved; plan again"
    try:
        raw = json.loads(read_regular(path, most=_MOST_BYTES), parse_constant=_refuse)
    except Unreadable as error:
        problem = str(error)
    except (ValueError, RecursionError):
        pass
    else:
        if _is_group(raw, _FIELDS) and raw.pop(_MARK) == FORMAT:
            return dict(raw)
    raise DataError(Problem(problem, file=str(path)))


def _refuse(constant: str) -> float:
    raise ValueError(constant)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_kind(value: Any) -> bool:
    return _is_text(value) and value in KINDS


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < _LARGEST


def _is_seed(value: Any) -> bool:
    return type(value) is int and value >= 0 and value.bit_length() <= _SEED_BITS


def _is_figure(value: Any) -> bool:
    return (type(value) is int and abs(value) < _LARGEST) or (type(value) is float and math.isfinite(value))


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _maybe(test: Test) -> Test:
    return lambda value: value is None or test(value)


def _many(test: Test) -> Test:
    return lambda value: isinstance(value, list) and all(map(test, value))


def _named(test: Test) -> Test:
    return lambda value: isinstance(value, dict) and all(map(test, value.values()))


def _pair(test: Test) -> Test:
    return lambda value: isinstance(value, list) and len(value) == 2 and all(map(test, value))


def _group(**fields: Test) -> Test:
    return lambda value: _is_group(value, fields)


def _is_group(value: Any, fields: dict[str, Test]) -> bool:
    return isinstance(value, dict) and value.keys() == fields.keys() and all(fields[k](v) for k, v in value.items())


def _is_method(value: Any) -> bool:
    plain = _maybe(lambda one: _is_text(one) or _is_flag(one) or _is_figure(one))
    return _named(plain)(value) and _is_text(value.get("name"))


_FIELDS: dict[str, Test] = {
    _MARK: _is_count,
    "series": _is_text,
    "number": _is_count,
    "name": _is_text,
    "head": _is_text,
    "fingerprint": _is_text,
    "source": _is_text,
    "input_digest": _is_text,
    "content": _is_text,
    "method": _is_method,
    "seed": _is_seed,
    "recipient": _maybe(_is_text),
    "purpose": _maybe(_is_text),
    "change": _group(**dict.fromkeys(("newcomers", "returned", "stayers", "changed", "leavers"), _is_count)),
    "waiting": _group(**dict.fromkeys(("held", "retained", "left_out", "oldest", "corrected"), _is_count)),
    "records": _is_count,
    "classes": _is_count,
    "checks": _many(
        _group(
            attack=_is_text,
            adversary=_is_text,
            required=_maybe(_is_figure),
            reached=_maybe(_is_figure),
            holds=_is_flag,
            margin=_maybe(_is_figure),
            about=_is_text,
        )
    ),
    "findings": _is_count,
    "loss": _named(_named(_is_figure)),
    "levers": _named(_is_figure),
    "personal": _group(**dict.fromkeys(("withheld", "withdrawn", "waiting", "graded", "raised", "late"), _is_count)),
    "gain": _named(_is_figure),
    "listed": _maybe(_is_text),
    "notes": _many(_is_text),
    "belief": _named(_group(most=_is_figure, beyond=_is_count)),
    "untried": _many(_group(attacks=_many(_is_text), why=_is_text, on=_many(_is_text), give=_is_text)),
    "everybody_is_new": _is_flag,
    "repeats": _maybe(_is_count),
    "people": _is_count,
    "pods": _maybe(
        _group(
            **dict.fromkeys(("decoys", "needed", "ever", "pods", "fewest", "lineages", "largest"), _is_count),
            mean=_is_figure,
            returners=_is_count,
            promised=_is_count,
            facts=_named(_is_figure),
            shares=_named(_group(values=_is_count, most=_is_figure, beyond=_is_count)),
        )
    ),
    "seal": _is_text,
    "why": _many(
        _group(
            what=_is_kind,
            **dict.fromkeys(("attack", "attribute", "who", "text"), _is_text),
            **dict.fromkeys(("people", "classes"), _is_count),
            **dict.fromkeys(("required", "observed", "lost"), _maybe(_is_figure)),
            keys=_many(_is_text),
        )
    ),
    "relaxations": _many(
        _group(
            **dict.fromkeys(("key", "now", "then"), _is_text),
            **dict.fromkeys(("running", "tried", "made"), _is_flag),
            loss=_named(_is_figure),
            **dict.fromkeys(("classes", "decoys", "waiting"), _is_count),
        )
    ),
    "since_last": _maybe(
        _group(
            **dict.fromkeys(("number", "came", "returned", "stayed", "kept", "left", "coarser", "finer"), _is_count),
            classes=_group(
                **dict.fromkeys(
                    ("before", "now", "as_they_were", "kept", "merged", "split", "mixed", "gone", "new"), _is_count
                )
            ),
            columns=_many(_group(name=_is_text, before=_is_figure, now=_is_figure, became=_is_text)),
            decoys=_pair(_is_count),
            ail=_pair(_is_figure),
            ncp=_pair(_is_figure),
        )
    ),
    "estimated": _many(_is_text),
    "holds": _is_flag,
}
