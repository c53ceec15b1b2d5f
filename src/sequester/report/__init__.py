"""Finished results for people: pages and lists. Knows nothing of how they were made, and holds no cell, no person."""
