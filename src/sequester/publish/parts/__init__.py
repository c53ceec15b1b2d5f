"""Releases of tables too large for one piece of memory: people are divided into parts, each made and judged alone."""
