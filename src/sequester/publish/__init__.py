"""From a snapshot and a policy to a release: make it, verify it, write it."""
