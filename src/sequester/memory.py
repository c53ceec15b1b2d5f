"""Whether an error means that there is not enough memory: libraries in C say that in many ways."""

from __future__ import annotations

_WORDS = (
    "out of memory", "failed to allocate", "bad_alloc", "cannot allocate memory", "resource temporarily unavailable",
    "can't start new thread", "malloc of size", "realloc of size", "memory limit reached",
)  # fmt: skip


def is_lack_of_memory(error: BaseException, text: str | None = None) -> bool:
    """Whether there was not enough memory, or not enough for one more thread; `text` is what counts of its words."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryException":
        return True
    said = (str(error) if text is None else text).lower()
    return any(words in said for words in _WORDS)
