"""Pods for readers who know the method."""
