"""One level per attribute, the best of the whole lattice."""
