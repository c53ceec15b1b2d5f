"""Incremental clustering (Reddy et al.)."""
