"""Ways to store characters. Python also calls things encodings that turn text into text, or bytes into bytes."""

from __future__ import annotations

import codecs

UNKNOWN = "is no encoding of text that is known here; usual ones are utf-8, latin-1, cp1252 and utf-16"
# Names of hosts, notations of programs, and one that always fails: no file is stored in them.
_OTHER = frozenset({"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape"})


def known_encoding(name: str) -> str | None:
    """The usual name of an encoding, None for what is none; a leading byte order mark is skipped in any case."""
    try:
        codec = codecs.lookup(name)
    except (LookupError, ValueError):
        return None
    # The only place where Python tells text encodings from its other codecs.
    if not codec._is_text_encoding or codec.name.replace("_", "-") in _OTHER:
        return None
    return "utf-8" if codec.name == "utf-8-sig" else codec.name
