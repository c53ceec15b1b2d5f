"""`python -m sequester`."""

from sequester.cli import main

main()
