"""A rehearsal: a whole series of past waves by several ways side by side, and nothing of it is published."""
