"""Taxonomy cuts from the top down; in a series BCF-anonymity (Fung et al.)."""
