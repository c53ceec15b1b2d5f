"""The declarative policy: one file that says what a table is, what is promised about it, and how."""

from sequester.policy.model import Policy

__all__ = ["Policy"]
