"""The three attacks of Fung et al., each by itself."""

from functools import partial
from types import SimpleNamespace

from sequester.attacks.cracks import find

forward, cross, backward = (SimpleNamespace(find=partial(find, attack=way)) for way in ("forward", "cross", "backward"))
