"""Multidimensional cuts (LeFevre et al.; in a series Byun et al.)."""
