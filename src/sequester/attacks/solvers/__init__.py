"""Flows, programs and components that attacks ask; they know no attack."""
