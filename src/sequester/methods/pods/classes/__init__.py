"""Which pods share a class, and who changes places."""
