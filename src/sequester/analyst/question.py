"""Questions to a release: `mean(age) by sex where race = black`, `ols(wage ~ age + grade)`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sequester.errors import DataError, Problem

FORMS = (
    "count(), mean(x), sum(x), quantile(x, 0.5), median(x), share(x = v) or ols(y ~ x + z), then `by a, b` and "
    "`where x > 3`"
)
_TOKEN = re.compile(
    r"\s*(?:(?P<text>\"[^\"]*\"|'[^']*'|`[^`]*`)|(?P<mark><=|>=|!=|<>|==|[()~,+=<>{}])|(?P<word>[^\s()~,+=<>{}!\"'`]+))"
)
_OPERATORS = {"=": "=", "==": "=", "!=": "!=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_WORDS = ("by", "where", "and", "in")


@dataclass(frozen=True)
class Condition:
    """Rows for which a column is, or is not, one of some values, or below or above one."""

    column: str
    operator: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class ParsedQuestion:
    """What is asked.

    what     count, mean, sum, quantile, share or ols
    columns  what it is about: of ols the one that is explained, then those that explain it
    part     of a quantile
    of       of a share: the rows that count
    by       columns, one answer for every combination of their values
    where    which rows, all conditions together
    """

    text: str
    what: str
    columns: tuple[str, ...] = ()
    part: float = 0.5
    of: tuple[Condition, ...] = ()
    by: tuple[str, ...] = ()
    where: tuple[Condition, ...] = ()

    @property
    def named(self) -> tuple[str, ...]:
        """Every column that is named in it."""
        conditions = (condition.column for condition in (*self.of, *self.where))
        return tuple(dict.fromkeys((*self.columns, *conditions, *self.by)))


def parse(text: str) -> ParsedQuestion:
    """A question from its text; DataError where it is none."""
    return _Parser(text).question()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text, self._tokens, at = text, [], 0
        while at < len(text.rstrip()):
            token = _TOKEN.match(text, at)
            if token is None:
                raise _wrong("it has a character that is not understood")
            self._tokens.append((token.lastgroup or "", token[token.lastgroup or 0]))
            at = token.end()
        self._at = 0

    def question(self) -> ParsedQuestion:
        what = self._word().lower()
        self._mark("(")
        columns: tuple[str, ...] = ()
        part = 0.5
        of: tuple[Condition, ...] = ()
        if what == "share":
            of = self._conditions()
        elif what == "ols":
            columns = (self._name(),)
            self._mark("~")
            columns += tuple(self._list("+"))
        elif what == "quantile":
            columns = (self._name(),)
            self._mark(",")
            part = self._part()
        elif what in ("mean", "sum", "median"):
            columns = (self._name(),)
        elif what != "count":
            raise _wrong("it does not begin with one of these")
        self._mark(")")
        by: tuple[str, ...] = ()
        where: tuple[Condition, ...] = ()
        if self._is("by"):
            by = tuple(self._list(","))
        if self._is("where"):
            where = self._conditions()
        if self._at < len(self._tokens):
            raise _wrong("there is more behind it than is understood")
        what = "quantile" if what == "median" else what
        return ParsedQuestion(" ".join(self._text.split()), what, columns, part, of, by, where)

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._at] if self._at < len(self._tokens) else ("", "")

    def _next(self) -> tuple[str, str]:
        token = self._peek()
        self._at += 1
        return token

    def _is(self, word: str) -> bool:
        if self._peek()[0] == "word" and self._peek()[1].lower() == word:
            self._at += 1
            return True
        return False

    def _mark(self, mark: str) -> None:
        if self._next() != ("mark", mark):
            raise _wrong(f"a {mark} is missing")

    def _word(self) -> str:
        kind, text = self._next()
        if kind != "word":
            raise _wrong("a name is missing")
        return text

    def _name(self) -> str:
        """A column; names with blanks stand in quotes."""
        kind, text = self._next()
        if kind == "text":
            return text[1:-1]
        if kind != "word" or text.lower() in _WORDS:
            raise _wrong("the name of a column is missing")
        return text

    def _list(self, mark: str) -> list[str]:
        names = [self._name()]
        while self._peek() == ("mark", mark):
            self._at += 1
            names.append(self._name())
        return names

    def _part(self) -> float:
        try:
            part = float(self._word())
        except ValueError:
            part = -1.0
        if not 0 < part < 1:
            raise _wrong("the part of a quantile is a number between 0 and 1")
        return part

    def _conditions(self) -> tuple[Condition, ...]:
        found = [self._condition()]
        while self._is("and"):
            found.append(self._condition())
        return tuple(found)

    def _condition(self) -> Condition:
        column = self._name()
        if self._is("in"):
            self._mark("{")
            values = [self._value()]
            while self._peek() == ("mark", ","):
                self._at += 1
                values.append(self._value())
            self._mark("}")
            return Condition(column, "=", tuple(values))
        kind, mark = self._next()
        if kind != "mark" or mark not in _OPERATORS:
            raise _wrong("a condition is written like x = v, x >= 3 or x in {a, b}")
        return Condition(column, _OPERATORS[mark], (self._value(),))

    def _value(self) -> str:
        kind, text = self._next()
        if kind not in ("word", "text"):
            raise _wrong("the value of a condition is missing")
        return text[1:-1] if kind == "text" else text


def _wrong(why: str) -> DataError:
    return DataError(Problem(f"this question is not understood: {why}. Ask for {FORMS}"))
