"""Pods and classes of many people, by quick loops that threads share."""
