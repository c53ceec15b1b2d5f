"""Every way to use what was published: one module per attack, from a history to findings, and its declaration."""
