"""What to do about attacks that work: which promises are broken, and what would keep them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sequester.attacks.exposed import Exposed
from sequester.attacks.finding import Finding
from sequester.policy.describe import promises
from sequester.policy.model import Policy
from sequester.policy.words import amount, listed

_AGAIN = "Make the release again before anybody else gets it"
_SERIES = "Publish as a series"

_CRACKS = f"{_SERIES}, with `against: [neighbor]`; `method: specialize` refines only while k rows are left."

HELPS: Mapping[str, str] = {
    "k": (
        f"{_AGAIN}, with `protect: {{k: ...}}` and coarser levels; where a few odd rows are the reason, leave them "
        "out (`method: {name: full-domain, suppression: 0.01}`)."
    ),
    "confidence": (
        f"{_AGAIN}, with `protect: {{confidence: ...}}`; a value that is no secret is named under `ordinary`, and "
        "needs no bound."
    ),
    "diversity": f"{_AGAIN}, with the `diversity` of the policy: classes grow until each has enough values.",
    "closeness": f"{_AGAIN}, with the `closeness` of the policy: classes grow until each looks like the table.",
    "forward": _CRACKS,
    "cross": _CRACKS,
    "backward": _CRACKS,
    "intersection": (
        f"{_SERIES}, with `against: [neighbor, insider]`: classes of one person then share more than one value. "
        "`method: pods` keeps the same values together in every release."
    ),
    "difference": (
        f"{_SERIES}, with `against: [insider]`: newcomers and leavers wait until enough of them move together. With "
        "`method: pods` nobody waits: decoys stand in."
    ),
    "tracing": (
        f"{_SERIES}, with `against: [insider]`; a column that stays with a person and singles rows out is better a "
        "quasi-identifier, or left out."
    ),
    "deniability": (
        f"{_SERIES}, with `against: [insider]`; `method: pods` keeps the bound by proof, `mondrian` and `cluster` by "
        "checking every release with all before."
    ),
    "belief": f"{_SERIES}, with `protect: {{belief: ...}}`, or a lower `confidence`.",
    "breach": (
        f"{_SERIES}, with `method: group`, `against: [lifetime]` and `protect: {{lifetime: {{l: ..., releases: "
        "...}}`; `sequester plan --ahead 10` says how many releases the budget bears."
    ),
    "row-order": "Shuffle the rows of every release anew before it leaves the house; `anonymize` and `publish` do.",
    "complementary": (
        "Publish one table with all columns instead of several with some each, or give the later ones the boxes of "
        "the first (`method: grow`)."
    ),
}
"""What would help against each attack, by its name."""


@dataclass(frozen=True)
class Advice:
    """An attack that works, the promises that it breaks, in words, and what would help."""

    attack: str
    broken: tuple[str, ...]
    helps: str


def advice(findings: Sequence[Finding], policy: Policy) -> tuple[Advice, ...]:
    """Of every attack that works, in the order of the findings; without cells."""
    said = promises(policy)
    return tuple(
        Advice(name, tuple(promise.words for promise in said if name in promise.attacks), HELPS[name])
        for name in dict.fromkeys(finding.attack for finding in findings)
    )


def first_steps(findings: Sequence[Finding], releases: int) -> Iterator[str]:
    """What to do at once, whatever the attack; without cells."""
    if not findings:
        return
    alone = sorted({number for one in findings if len(one.releases) == 1 for number in one.releases})
    yield "Keep this page and the findings private: they say how to repeat what they warn of."
    if alone:
        yield (
            f"{_named(alone)} {'breaks' if len(alone) == 1 else 'break'} the promises without the others: "
            "stop handing it out, and ask those who have it to delete it."
        )
    if releases > 1 and any(len(one.releases) > 1 for one in findings):
        left = {number: Exposed.of(without(findings, number)).total for number in range(1, releases + 1)}
        best = min(left, key=lambda number: (left[number].people, left[number].classes, -number))
        yield (
            "Releases cannot be taken back from whoever has them. If one of them can still be withdrawn, release "
            f"{best} matters most: by the findings that do without it, {left[best]}."
        )
        yield (
            "Do not publish the next table in the same way. A series (`sequester publish`) looks at all releases "
            "before; what others made is audited together with what is out, before anybody gets it (`sequester audit`)."
        )


def without(findings: Sequence[Finding], release: int) -> list[Finding]:
    """The findings that do not need a release."""
    return [finding for finding in findings if release not in finding.releases]


def _named(numbers: Sequence[int]) -> str:
    if len(numbers) > 8:
        return amount(len(numbers), "release").capitalize()
    return f"{'Release' if len(numbers) == 1 else 'Releases'} {listed(numbers)}"
