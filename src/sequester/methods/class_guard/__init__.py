"""What every class must keep, in the form the compiled loops read."""
