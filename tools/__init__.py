"""What builds and tries the package and its documentation."""
