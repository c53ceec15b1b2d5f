"""What values are: ordered leaves, nested levels, boxes of codes, and how published values are written."""
