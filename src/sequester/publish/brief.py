"""What a release is made by: one value that everything on the way to a plan is given."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sequester.attacks.attack import Audited
from sequester.guarantees.requirement import Requirement
from sequester.ingest.snapshot import Snapshot
from sequester.log import Progress
from sequester.methods.class_guard.guard import ClassGuard
from sequester.methods.classes import Classes
from sequester.methods.method import Method, Task
from sequester.methods.registry import method_of
from sequester.policy.model import Policy
from sequester.publish.emit import as_printed


@dataclass(frozen=True, eq=False, repr=False)
class Brief:
    """What is promised, how classes are made, and what is drawn.

    requirement  what the policy promises of the values there are
    draws        seed of everything that is drawn, and the number of the release
    name         of the release
    registered   (quasi-identifiers, people) codes of everybody who may be in a release, where that is all that is known
    audited      what was found of the releases before, under the same policy
    progress     told while classes are made, and `judging` while they are audited
    """

    policy: Policy
    requirement: Requirement
    method: Method
    draws: list[int]
    name: str = ""
    registered: NDArray[np.int32] | None = None
    audited: Audited | None = None
    progress: Progress | None = None
    judging: Progress | None = None

    @classmethod
    def of(cls, policy: Policy, snapshot: Snapshot, draws: list[int]) -> Brief:
        """The brief for a table on its own."""
        requirement = Requirement.from_policy(policy, snapshot.sensitive_domains)
        return cls(policy, requirement, method_of(policy.method), draws)

    def task(self, records: Snapshot, *, population: NDArray[np.int32] | None = None) -> Task:
        """The task of making classes of these records, on their own."""
        return Task(
            codes=records.quasi,
            domains=records.quasi_domains,
            guard=ClassGuard.of(self.requirement, records.sensitive, population=population),
            options=self.policy.method,
            against=self.policy.protect.against,
            lifetime=self.policy.protect.lifetime,
            registered=self.registered,
            records=records,
            progress=self.progress,
        )

    def printed(self, classes: Classes, records: Snapshot) -> Classes:
        """The classes that can be told apart once they are written."""
        return as_printed(classes, records.quasi_domains, numbers=self.policy.output.numbers)
