"""Clusters that generalize only some attributes (Reddy et al.): `method: cluster` with `gain` or `weight`."""
