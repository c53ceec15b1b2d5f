"""For whoever has a release and nothing else: reading it as numbers, and estimates that know what was blurred."""
