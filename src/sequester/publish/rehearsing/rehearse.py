"""Try a whole series of past waves, by every method that suits the policy, before it begins."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sequester.policy.model import Policy
from sequester.publish.rehearsing.rehearsal import Rehearsal
from sequester.publish.rehearsing.variants import plan_variants
from sequester.publish.rehearsing.waves import check_waves, read_waves
from sequester.publish.rehearsing.workers import Staging, try_all
from sequester.publish.series import refuse_unsupported

Progress = Callable[[str, int, int], None]


def rehearse(
    waves: Sequence[Any],
    policy: Policy,
    *,
    methods: Sequence[str] | None = None,
    vary: Mapping[str, Sequence[float]] | None = None,
    processes: int | None = None,
    everybody_is_new: bool = False,
    show_values: bool = False,
    progress: Progress | None = None,
) -> Rehearsal:
    """A series of past waves by every method that suits the policy, side by side. No ledger is touched.

    waves             paths, frames or relations, in the order in which they would have been published
    methods           only these; by default all that suit the policy or, with `vary`, the policy's own
    vary              numbers to try, by name: {"k": [3, 5, 10], "confidence": [0.3, 0.5]}; all combinations
    processes         how many variants are tried at a time; by default one per processor
    everybody_is_new  waves may have hardly anybody in common
    show_values       let a DataError carry offending values in `Problem.values`
    progress          called with the variant, how many of its and others' waves are done, and how many there are
    All waves are read and compared before anything is tried: DataError says what is wrong with which. A variant that
    cannot keep the promise is a row of the result that says why.
    """
    began = time.monotonic()
    refuse_unsupported(policy)
    read = read_waves(waves, policy)
    variants = plan_variants(policy, sum(map(len, read)), methods=methods, vary=vary or {})
    total, done = sum(one.policy is not None for one in variants) * len(read), 0

    def told(name: str) -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(name, done, total)

    with tempfile.TemporaryDirectory(prefix="sequester-") as folder:
        if progress is not None:
            progress("reading", 0, total)
        check_waves(read, policy, Path(folder), new=everybody_is_new, show_values=show_values)
        staging = Staging(read, Path(folder), everybody_is_new)
        trials = try_all(staging, variants, processes=processes or os.cpu_count() or 1, told=told)
    return Rehearsal(
        series=policy.series,
        waves=tuple(wave.name for wave in read),
        people=tuple(map(len, read)),
        columns=tuple(policy.quasi_identifiers),
        trials=trials,
        varied=tuple(vary or ()),
        policy=policy,
        seconds=time.monotonic() - began,
    )
