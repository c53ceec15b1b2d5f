"""Methods for a series: the next release, cut so that it is safe together with everything published before."""
