"""A policy as a file again: the steward's own text with a few keys changed and its comments kept, or written anew."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from sequester.errors import PolicyError
from sequester.policy.document import KeyPath, read_text
from sequester.policy.load import build_policy
from sequester.policy.model import Policy

_PLAIN = re.compile(r'"([A-Za-z][A-Za-z0-9_-]*)"')
# What YAML does not take as it is, or takes for the end of a line.
_ESCAPED = re.compile(r"[^\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_WIDTH = 110


def written(policy: Policy, *, comments: Sequence[str] = (), text: str | None = None) -> str:
    """A policy as YAML that reads back as the same, under comments.

    text  of a policy that differs in a few keys: it is kept, comments included, wherever it can be
    """
    head = "".join(f"{line}\n" for sentence in comments for line in _wrapped(sentence))
    kept = None if text is None else _changed(text, policy)
    return f"{head}{kept or _anew(policy)}"


def _changed(text: str, policy: Policy) -> str | None:
    """The text with the keys in which it differs changed; None where that does not come to the same policy."""
    wanted = _raw(policy)
    try:
        before = _raw(build_policy(read_text(text), base=policy.path(".")))
        for path, value in _differences(before, wanted):
            text = _edit(text, path, value)
        same = build_policy(read_text(text), base=policy.path(".")) == policy
    except (PolicyError, yaml.YAMLError, LookupError):
        return None
    return text if same else None


def _raw(policy: Policy) -> dict[str, Any]:
    raw: dict[str, Any] = policy.model_dump(mode="json", exclude_unset=True)
    return raw


def _differences(before: Any, wanted: Any, path: KeyPath = ()) -> list[tuple[KeyPath, Any]]:
    """Keys, and what should be there; None where nothing should."""
    if not (isinstance(before, Mapping) and isinstance(wanted, Mapping)) or path == ("method",):
        return [] if before == wanted else [(path, wanted)]
    return [
        change
        for key in dict.fromkeys([*before, *wanted])
        for change in _differences(before.get(key), wanted.get(key), (*path, key))
    ]


def _edit(text: str, path: KeyPath, value: Any) -> str:
    """The text with one key set, or taken out where the value is None. LookupError where the group is not there."""
    group = yaml.compose(text, Loader=yaml.SafeLoader)
    for part in path[:-1]:
        group = next(inner for key, inner in _pairs(group) if key.value == part)
    key = str(path[-1])
    place = next((number for number, pair in enumerate(_pairs(group)) if pair[0].value == key), None)
    if place is None:
        return text if value is None else _insert(text, group, f"{key}: {_flow(value)}")
    name, old = _pairs(group)[place]
    if value is not None:
        return f"{text[: name.start_mark.index]}{key}: {_flow(value)}{text[_end(old) :]}"
    if group.flow_style:
        return _without_part(text, group, place)
    start, end = text.rfind("\n", 0, name.start_mark.index) + 1, text.find("\n", _end(old))
    return text[:start] + (text[end + 1 :] if end >= 0 else "")


def _pairs(group: Any) -> list[tuple[Any, Any]]:
    if not isinstance(group, yaml.MappingNode) or not group.value:
        raise LookupError("there is no group of keys here")
    pairs: list[tuple[Any, Any]] = group.value
    return pairs


def _end(node: yaml.Node) -> int:
    """Where a value ends: of a block the last thing in it, since comments may follow."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(node, yaml.MappingNode) else last)
    return int(node.end_mark.index)


def _insert(text: str, group: Any, line: str) -> str:
    first, last = _pairs(group)[0][0], _pairs(group)[-1][1]
    start = first.start_mark.index
    if group.flow_style:
        return f"{text[:start]}{line}, {text[start:]}"
    indent = text[text.rfind("\n", 0, start) + 1 : start]
    if indent.strip():
        raise LookupError("the first key does not begin its line")
    end = text.find("\n", _end(last))
    end = len(text) if end < 0 else end
    return f"{text[:end]}\n{indent}{line}{text[end:]}"


def _without_part(text: str, group: Any, place: int) -> str:
    pairs = _pairs(group)
    if place + 1 < len(pairs):
        return text[: pairs[place][0].start_mark.index] + text[pairs[place + 1][0].start_mark.index :]
    start = _end(pairs[place - 1][1]) if place else pairs[place][0].start_mark.index
    return text[:start] + text[_end(pairs[place][1]) :]


def _anew(policy: Policy) -> str:
    """All keys that were given, one per line, those of columns and promises one per column and promise."""
    lines = []
    for key, value in _raw(policy).items():
        if key in ("attributes", "protect") and value:
            lines += [f"{key}:", *(f"  {_flow(name)}: {_flow(inner)}" for name, inner in value.items())]
        else:
            lines.append(f"{key}: {_flow(value)}")
    plain = "\n".join(lines) + "\n"
    if read_text(plain).data == _raw(policy):
        return plain
    return _json(_raw(policy)) + "\n"


def _flow(value: Any) -> str:
    """A value on one line, words without quotes."""
    return _PLAIN.sub(_unquoted, _json(_whole(value)))


def _json(value: Any) -> str:
    return _ESCAPED.sub(lambda letter: f"\\u{ord(letter[0]):04x}", json.dumps(value, ensure_ascii=False))


def _whole(value: Any) -> Any:
    """The same with 5 in place of 5.0."""
    if isinstance(value, Mapping):
        return {key: _whole(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_whole(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _unquoted(word: re.Match[str]) -> str:
    return word[0] if word[1].lower() in ("true", "false", "null", "yes", "no", "on", "off", "y", "n") else word[1]


def _wrapped(sentence: str) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(sentence, _WIDTH)] or ["#"]
