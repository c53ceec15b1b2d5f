"""Try fresh random examples for some time: `make explore MINUTES=20`.

CI tries the same examples every time. This runs the tests that compare with enumerated worlds over and over, each round
with a seed of its own, which is printed: `python tests/explore.py --seed ...` does that round again. What fails is
shrunk and saved in `tests/property/cases`, where `test_saved_cases.py` finds it: keep the file with the correction.

With --faults (`make explore FAULTS=1`) each round kills publishers at fresh moments and flips fresh bits instead.
"""

from __future__ import annotations

import argparse
import os
import secrets
import subprocess
import sys
import time
from pathlib import Path

TESTS = Path(__file__).parent
DEFAULT = ("property/test_worlds_audit.py", "property/test_worlds_published.py", "property/test_worlds_enumerated.py")

FAULTS = ("faults/test_moments.py", "faults/test_flipped_bits.py")


def main() -> int:
    """Rounds until the time is over; whether all went well."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--seed", type=int, help="one round with this seed, instead of fresh ones")
    parser.add_argument("--faults", action="store_true", help="kills and flipped bits at fresh places")
    parser.add_argument("tests", nargs="*")
    asked = parser.parse_args()
    tests = asked.tests or [str(TESTS / name) for name in (FAULTS if asked.faults else DEFAULT)]
    options = ["-m", "faults"] if asked.faults else []
    end = time.monotonic() + 60 * asked.minutes
    rounds, failed = 0, []
    while not rounds or (asked.seed is None and time.monotonic() < end):
        rounds += 1
        seed = secrets.randbits(64) if asked.seed is None else asked.seed
        sys.stdout.write(f"round {rounds}, seed {seed}\n")
        sys.stdout.flush()
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "--tb=short", f"--hypothesis-seed={seed}", *options, *tests],
            cwd=TESTS.parent,
            env=os.environ
            | {"HYPOTHESIS_PROFILE": "explore", "SEQUESTER_SAVE": f"{seed:x}", "SEQUESTER_FAULTS": str(seed)},
            check=False,
        )
        if done.returncode:
            failed.append(seed)
    sys.stdout.write(f"{rounds} rounds, {len(failed)} failed\n")
    sys.stdout.writelines(f"seed {seed} failed\n" for seed in failed)
    saved = sorted((TESTS / "property" / "cases").glob("*.json"))
    new = [path for path in saved if any(path.stem.endswith(f"{seed:x}") for seed in failed)]
    sys.stdout.writelines(f"saved {path.relative_to(TESTS.parent)}\n" for path in new)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
