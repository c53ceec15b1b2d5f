"""With the certificate on, not even all releases read together leave fewer than k rows: every world is tried."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hypothesis import event, given, settings

from chains import Chain, chains, random_chain
from sequester.attacks.audit import audit_histories
from sequester.errors import GuaranteeError
from sequester.history import History
from sequester.methods.classes import Classes
from sequester.methods.specialize.respecialize import respecialize

Path = tuple[int, ...]


def meets(history: History, path: Path) -> bool:
    """Whether one raw record can be in all classes of a path; -1 is absence."""
    for low_high in range(len(history.domains)):
        sides = [
            (int(one.lo[low_high, place]), int(one.hi[low_high, place]))
            for one, place in zip(history.releases, path, strict=False)
            if place >= 0
        ]
        if sides and max(lo for lo, _ in sides) > min(hi for _, hi in sides):
            return False
    return True


def worlds(history: History, value: int) -> set[tuple[Path, ...]]:
    """Every way to tell which rows with a value are of one person, as the sorted paths of these people.

    Nobody leaves: every row of a release has its like in the next.
    """
    rows = [[c for c, n in enumerate(one.counts[:, value].tolist()) for _ in range(n)] for one in history.releases]
    found: set[tuple[Path, ...]] = set()

    def go(release: int, done: list[Path], left: list[Path], free: list[int]) -> None:
        if left:
            for place in set(free):
                if meets(history, (*left[0], place)):
                    rest = free.copy()
                    rest.remove(place)
                    go(release, [*done, (*left[0], place)], left[1:], rest)
            return
        paths = sorted([*done, *((-1,) * release + (place,) for place in free)])
        if release + 1 == len(rows):
            found.add(tuple(paths))
        else:
            go(release + 1, [], paths, rows[release + 1])

    go(0, [], [], rows[0])
    return found


def fewest(history: History) -> int:
    """Over all people, the rows of hers that can have her path in one world: what the joint attack leaves."""
    assert history.trajectories is not None
    all_worlds = [worlds(history, value) for value in range(len(history.values))]
    return min(
        sum(max((world.count(tuple(path)) for world in found), default=0) for found in all_worlds)
        for path in history.trajectories.path.tolist()
    )


def certified(chain: Chain, against: list[str]) -> Iterator[Classes]:
    """Publish table after table with the certificate, until one cannot be."""
    while len(chain.history) < len(chain.present):
        past, codes, guard = chain.past()
        try:
            classes = respecialize(past, codes, chain.domains, guard, against=against, certificate=True)
        except GuaranteeError:
            return
        if not chain.promises(past, classes):
            return
        chain.publish(past, classes)
        yield classes


@settings(max_examples=60, deadline=None)
@given(chain=chains(releases=(2, 3), people=(4, 8), ks=(2, 3), criteria=False))
def test_the_joint_attack_leaves_k_rows_for_everybody(chain: Chain) -> None:
    for _ in certified(chain, ["neighbor"]):
        assert chain.history.trajectories is not None
        assert chain.history.trajectories.size.min() >= chain.history.k
        assert fewest(chain.history) >= chain.history.k
    event(f"{len(chain.history)} releases, {len(chain.history.releases[-1]) if len(chain.history) else 0} classes")


@settings(max_examples=60, deadline=None)
@given(chain=chains(releases=(2, 4), people=(6, 20), ks=(2, 3), leaving=True))
def test_certified_series_pass_the_audit_for_insiders_too(chain: Chain) -> None:
    for _ in certified(chain, ["insider", "neighbor"]):
        found = audit_histories([chain.history], chain.policy, against=["insider", "neighbor"]).findings
        assert [finding for finding in found if finding.attack != "row-order"] == []
    event(f"{len(chain.history)} releases")


def test_companions_are_demanded_even_where_values_may_change() -> None:
    """Values that differ in every release tell no rows apart; who is with whom does not depend on them."""
    split = 0
    for seed in range(30):
        chain = random_chain(300 + seed, people=(15, 50), releases=(2, 3), criteria=False)
        chain.history = replace(chain.history, permanent=False)
        for classes in certified(chain, ["neighbor"]):
            assert chain.history.trajectories is not None
            assert chain.history.trajectories.size.min() >= chain.history.k
            split += len(chain.history) > 1 and len(classes) > 1
    assert split > 3
