"""How a release is made: codes and limits in, classes out."""
