"""Files and frames in, one encoded snapshot out."""
