"""Groups for values that change (Wong et al.)."""
