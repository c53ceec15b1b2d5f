"""What the world already knows: published classes, and the people who share one history."""

from sequester.history.history import History, Publication
from sequester.history.past import Past
from sequester.history.trajectory import Trajectories

__all__ = ["History", "Past", "Publication", "Trajectories"]
