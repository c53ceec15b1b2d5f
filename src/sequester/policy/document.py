"""YAML as plain data, with the line of every key, and nothing guessed that a steward did not mean.

Scalars follow YAML 1.2: `no`, `on` and `none` are text, and so are `007` and `2020-01-31`. Keys are always text. Where
the policy names values of the data (`hierarchy`, `ordinary`, ...) scalars stay exactly as they are written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from sequester.errors import PolicyError, Problem
from sequester.regular import Unreadable, read_regular

KeyPath = tuple[str | int, ...]

# A policy is written by hand; reading YAML takes seconds for every hundred thousand values.
_MOST_BYTES = 1 << 20
_MOST_NODES = 50_000
_LARGE = f"has more than {_MOST_NODES:,} values, aliases counted each time; put large trees into hierarchy files"
_PLAIN = "plain"
_UNDERSTOOD = {_PLAIN, *(f"tag:yaml.org,2002:{kind}" for kind in ("str", "seq", "map"))}
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_DECIMAL = re.compile(r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
_ENDLESS = re.compile(r"[-+]?\.(inf|Inf|INF)")


class _Loader(yaml.SafeLoader):
    """Marks every plain scalar and resolves none, so that this module decides what each one is."""

    yaml_implicit_resolvers: dict[str | None, Any] = {None: [(_PLAIN, re.compile(""))]}  # noqa: RUF012
    nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self.nodes += 1
        if self.nodes > _MOST_NODES:
            raise _TooLarge
        return super().compose_node(parent, index)


class _TooLarge(Exception):
    """There are more nodes than anybody writes."""


@dataclass
class Document:
    """What a file says, where it says it, and what is wrong with it as YAML."""

    file: str
    data: Any = None
    lines: dict[KeyPath, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def line(self, path: KeyPath) -> int | None:
        """The line of a key, or of the closest key above it when the key itself is missing."""
        while path not in self.lines and path:
            path = path[:-1]
        return self.lines.get(path)


def dotted(path: KeyPath) -> str | None:
    """`attributes.age.range[1]`; names that would be ambiguous are quoted."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += ("." if text else "") + (part if re.fullmatch(r"[\w -]+", part) else f'"{part}"')
    return text or None


def read_document(file: Path) -> Document:
    """Read a file, or raise PolicyError when there is nothing in it that could be checked further."""
    return read_text(_read_text(file), str(file))


def read_text(text: str, name: str = "") -> Document:
    """What a text says; PolicyError when there is nothing in it that could be checked further."""
    root = _compose(text, name)
    document = Document(name)
    if root is None:
        raise PolicyError(Problem("the file is empty; `sequester init data.csv` writes a first policy", name))
    document.data = _Builder(document).build(root, ())
    document.lines[()] = root.start_mark.line + 1
    return document


def _read_text(file: Path) -> str:
    try:
        return read_regular(file, most=_MOST_BYTES).decode("utf-8-sig")
    except Unreadable as error:
        reason = str(error)
    except UnicodeDecodeError:
        reason = "the file is not UTF-8 text; save it as UTF-8"
    raise PolicyError(Problem(reason, str(file)))


def _compose(text: str, name: str) -> yaml.Node | None:
    try:
        root: yaml.Node | None = yaml.compose(text, Loader=_Loader)
        return root
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = Problem(f"not valid YAML: {_syntax(error)}", name, mark.line + 1 if mark else None)
    except yaml.YAMLError:
        problem = Problem("not valid YAML: the file has control characters in it", name)
    except RecursionError:
        problem = Problem("not valid YAML: the file is nested too deeply", name)
    except _TooLarge:
        problem = Problem(_LARGE, name)
    raise PolicyError(problem)


def _syntax(error: yaml.MarkedYAMLError) -> str:
    said = error.problem or "it cannot be understood here"
    if "'\\t'" in said:
        return "a tab is used for indentation; use spaces"
    if "another document" in said:
        return "one document is expected; remove the line `---` that starts another"
    if "unexpected end of stream" in said:
        return "a quote that is opened here is not closed"
    if "could not find expected ':'" in said:
        return "a key has no colon after it, or has more than 1,024 letters"
    if "undefined alias" in said:
        return "an alias (*name) has no anchor (&name) before it"
    if "mapping values are not allowed" in said:
        return "a colon is not expected here; check the indentation, or put the text in quotes"
    return said


class _Builder:
    """Turns nodes into data. Wrong nodes are noted and left out, so that the rest can still be checked."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.seen = 0
        self.above: set[int] = set()

    def build(self, node: yaml.Node, path: KeyPath) -> Any:
        self.seen += 1
        if self.seen > _MOST_NODES:
            raise PolicyError(Problem(_LARGE, self.document.file))
        if id(node) in self.above:
            self._note("an alias may not contain itself", node, path)
            return None
        if node.tag not in _UNDERSTOOD:
            self._note("tags (!name) are not understood; write the plain value", node, path)
            return None
        self.above.add(id(node))
        try:
            if isinstance(node, yaml.MappingNode):
                return self._mapping(node, path)
            if isinstance(node, yaml.SequenceNode):
                return [self._item(item, (*path, index)) for index, item in enumerate(node.value)]
            return self._scalar(node, path)
        except RecursionError:
            raise PolicyError(Problem("the file is nested too deeply", self.document.file)) from None
        finally:
            self.above.discard(id(node))

    def _item(self, node: yaml.Node, path: KeyPath) -> Any:
        self.document.lines.setdefault(path, node.start_mark.line + 1)
        return self.build(node, path)

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Any]:
        built: dict[str, Any] = {}
        for key, value in self._pairs(node, path):
            here = (*path, key.value)
            if key.value in built:
                first = self.document.lines.get(here)
                self._note(f"given twice (first in line {first}); keep one", key, here)
                continue
            self.document.lines.setdefault(here, key.start_mark.line + 1)
            built[key.value] = self.build(value, here)
        return built

    def _pairs(self, node: yaml.MappingNode, path: KeyPath) -> Iterator[tuple[yaml.ScalarNode, yaml.Node]]:
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                yield key, value
            else:
                self._note("a key must be a single word or text", key, path)

    def _scalar(self, node: yaml.Node, path: KeyPath) -> Any:
        text: str = node.value
        if node.tag != _PLAIN:
            return text
        if text in ("", "~", "null", "Null", "NULL"):
            return None
        if _stays_text(path):
            return text
        if text.lower() in ("true", "false") and text in (text.lower(), text.upper(), text.capitalize()):
            return text.lower() == "true"
        # Python refuses to convert integers of thousands of digits.
        if _INTEGER.fullmatch(text) and len(text) < 1000:
            return int(text)
        if _ENDLESS.fullmatch(text):
            return float(text.replace(".", ""))
        return float(text) if _DECIMAL.fullmatch(text) else text

    def _note(self, message: str, node: yaml.Node, path: KeyPath) -> None:
        line = node.start_mark.line + 1
        self.document.problems.append(Problem(message, self.document.file, line, dotted(path)))


def _stays_text(path: KeyPath) -> bool:
    """Places that hold names of columns or values of the data, never settings."""
    if path[:1] == ("attributes",):
        return len(path) > 2 and path[2] in ("hierarchy", "ordinary")
    if path[:1] == ("impossible",):
        return len(path) > 2
    return path in (("person",), ("series",)) or path[:2] == ("input", "missing")
