"""How much a release lost, and what any table, ours or another tool's, keeps."""
