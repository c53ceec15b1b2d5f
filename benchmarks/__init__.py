"""How fast Sequester is, as ratios measured in one run on one machine: `python -m benchmarks [names...]`."""
