"""Files and frames in, one encoded snapshot out."""

from sequester.ingest.encode import encode, encode_with_population
from sequester.ingest.read import read
from sequester.ingest.snapshot import Snapshot

__all__ = ["Snapshot", "encode", "encode_with_population", "read"]
