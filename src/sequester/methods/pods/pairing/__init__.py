"""Who shares a pod with whom."""
