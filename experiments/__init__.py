"""The papers' own experiments, run anew: `python -m experiments.fung`."""
