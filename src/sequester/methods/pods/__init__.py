"""Pods: people share their values out in smallest groups, mixed anew in every release; decoys fill gaps.

`task` says what is given and made, `types` numbers the labels that pods share out. `make` tells the story:

1. everybody is seated. `pairing.couples` makes pods of two seats by a cheapest matching (`pairing.matching`), in which
   a decoy is one more arc with a price; `pairing.benches` fills larger pods seat by seat. Where more is promised of
   what is inferred than a couple keeps, `pairing.gather` puts newcomers with rare labels into larger pods, and
   `pairing.settled` whole neighborhoods of a table that hardly anybody leaves;
2. `make` looks for the price at which decoys are within their budget; `draws` decides the labels of empty seats;
3. pods become classes. `classes.company` sees to enough rows beside every label; where pods keep what is promised by
   themselves, `classes.grouping` cuts and shares them out; `classes.one_type` keeps types apart (after m-invariance).

Beyond 60,000 people `many` does both in seconds, and loses more. `blind` makes all of it by decisions that no reader
can turn round. `frontier` tries other budgets for the plan. Compiled loops are in `*_kernels`, beside who calls them.
"""
