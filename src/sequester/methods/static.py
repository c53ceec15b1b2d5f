"""Every release on its own, as tools without a memory make it; for comparison, since such a series leaks."""

from __future__ import annotations

from sequester.methods.method import Method, never
from sequester.methods.mondrian.method import cut_once

METHOD = Method("static", cut_once, cut_once, looks_back=False, merges=never)
