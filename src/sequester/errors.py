"""Every error Sequester raises on purpose.

    SequesterError            anything below; the command line turns each into its exit code
    ├── PolicyError           the policy, or a file it names, is wrong             exit 6
    ├── DataError             the table does not fit the policy                    exit 6
    ├── GuaranteeError        a promise cannot be kept; nothing was written        exit 4
    ├── MissingLibrary        an optional library is needed for this input         exit 6
    ├── LedgerError           the ledger is damaged, or of another key or series   exit 6
    │   └── Unsettled         writing failed when the ledger may have it already   exit 6
    ├── OutOfMemory           there is not enough memory                           exit 6
    ├── Busy                  another command has the ledger                       exit 5
    └── StalePlan             the ledger has moved on since the plan was made      exit 5

No message, argument or `repr` of these holds a cell value or a person id: problems name columns, counts and
row numbers. `Problem.values` is filled only on explicit request and is left out of every text form.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sequester.causes import Cause, Relaxation, because


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong, where, and the smallest fix."""

    message: str
    file: str | None = None
    line: int | None = None
    key: str | None = None
    column: str | None = None
    rows: int | None = None
    values: tuple[str, ...] = field(default=(), repr=False, compare=False)

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line) if part is not None)
        subject = self.key or (f"column '{self.column}'" if self.column else "")
        return ": ".join(part for part in (place, subject, self.message) if part)


class SequesterError(Exception):
    """Base of all errors raised on purpose."""

    exit_code = 1


class _Problems(SequesterError, ValueError):
    """An error that lists every problem found, not only the first."""

    exit_code = 6

    def __init__(self, problems: str | Problem | Iterable[Problem]) -> None:
        if isinstance(problems, str):
            problems = Problem(problems)
        if isinstance(problems, Problem):
            problems = (problems,)
        self.problems: tuple[Problem, ...] = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class PolicyError(_Problems):
    """The policy, or a file it names, is wrong."""


class DataError(_Problems):
    """The table does not fit the policy."""


class MissingLibrary(DataError):
    """An optional library is needed for this input."""


class GuaranteeError(SequesterError):
    """A promise cannot be kept. Nothing weaker is returned or written.

    causes       what is in the way, where that is known
    relaxations  what would be if a key of the policy asked for less, where that was asked for
    """

    exit_code = 4

    def __init__(self, message: str, *, guarantee: str, required: object = None, observed: object = None) -> None:
        self.guarantee, self.required, self.observed = guarantee, required, observed
        self.causes: tuple[Cause, ...] = ()
        self.relaxations: tuple[Relaxation, ...] = ()
        super().__init__(message)

    def __reduce__(self) -> tuple[Any, ...]:
        """So that it reaches whoever has the work done in another process."""
        return _guarantee_error, (str(self), self.guarantee, self.required, self.observed, self.causes)

    def explained(self, causes: Iterable[Cause]) -> GuaranteeError:
        """The same, with what is in the way, and the keys of the policy that would relax it."""
        causes = tuple(causes)
        said = " ".join(part for part in (str(self), because(causes)) if part)
        error = GuaranteeError(said, guarantee=self.guarantee, required=self.required, observed=self.observed)
        error.causes = causes
        return error


def _guarantee_error(
    message: str, guarantee: str, required: object, observed: object, causes: tuple[Cause, ...]
) -> GuaranteeError:
    error = GuaranteeError(message, guarantee=guarantee, required=required, observed=observed)
    error.causes = causes
    return error


class LedgerError(_Problems):
    """The ledger cannot be used: damaged, not there, or of another key or series."""


class Unsettled(LedgerError):
    """Writing failed so late that what was being recorded may be in the ledger; the next command puts it in order.

    why  what failed, without what follows from it
    """

    def __init__(self, why: str, *, file: str | None = None) -> None:
        self.why = why
        message = f"{why}. What was being recorded may be in the ledger already; the next command puts it in order"
        super().__init__(Problem(message, file=file))


class OutOfMemory(_Problems):
    """There is not enough memory for what was asked."""


class Busy(SequesterError):
    """Another command has the ledger. Nothing was changed."""

    exit_code = 5


class StalePlan(SequesterError):
    """The ledger has moved on since the plan was made. Nothing was changed."""

    exit_code = 5
