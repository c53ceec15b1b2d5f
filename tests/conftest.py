"""Examples are the same in every run; HYPOTHESIS_PROFILE=explore looks for new ones (see explore.py)."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("steady", derandomize=True, print_blob=True)
# Of what is found by chance a saved case or a blob must be left: the database is of one machine.
settings.register_profile("explore", derandomize=False, print_blob=True, database=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))
