"""Small compiled loops that several methods share."""
