"""Forward, cross and backward attacks (Fung et al.): rows of a class that turn out not to be the target's."""
