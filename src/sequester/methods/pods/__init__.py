"""Pods: people share their values out in smallest groups, mixed anew in every release; decoys fill gaps.

`task` says what is given and made. `make` tells the story:

1. everybody is seated. `pairing.couples` makes pods of two seats by a cheapest matching (`pairing.matching`), in which
   a decoy is one more arc with a price; beyond 60,000 people `pairing.quick` does it in seconds, and loses more.
   `pairing.seats` fills larger pods seat by seat. Where more is promised of what is inferred than a couple keeps,
   `pairing.larger` makes pods that are large enough by themselves;
2. `make` looks for the price at which decoys are within their budget; `draws` decides the labels of empty seats;
3. pods become classes (`seated`). `classes.grouping` cuts and shares them out; where more is promised than pods keep by
   themselves, `classes.company` sees to enough rows beside every label, and `classes.one_type` keeps types apart (after
   m-invariance, and of many people).

`blind` makes all of it by decisions that no reader can turn round. `frontier` tries other budgets for the plan.
Compiled loops are in `*_kernels`, beside who calls them.
"""
