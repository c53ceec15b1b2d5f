"""Every way to use what was published: one module per attack, each from a history to findings with witnesses."""
