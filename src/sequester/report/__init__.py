"""Finished results as pages for people. Knows nothing of how they were made, and holds no cell and no person."""
