"""The few compiled inner loops, and nothing else.

Kernels are compiled by Numba on first use and cached on disk. The library never prints: whoever wants to tell
people about the wait sets `announce`, as the command line does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

announce: Callable[[str], None] | None = None
_announced = False


class Kernel(Generic[P, R]):
    """A function compiled on its first call, which is announced when nothing is cached yet."""

    def __init__(self, function: Callable[P, R]) -> None:
        self._function = function
        self._compiled: Any = None
        self._is_known = False
        update_wrapper(self, function)

    @property
    def compiled(self) -> Any:
        """The Numba dispatcher, for use inside another kernel."""
        if self._compiled is None:
            import numba

            try:
                self._compiled = numba.njit(self._function, cache=True, nogil=True)
            except RuntimeError:  # no folder can be written, so every process compiles anew
                self._compiled = numba.njit(self._function, nogil=True)
        return self._compiled

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        dispatcher = self.compiled
        # Asking the dispatcher for its signatures takes longer than many a kernel.
        if not self._is_known:
            self._is_known = True
            if not dispatcher.signatures and not self._is_cached():
                _announce()
        result: R = dispatcher(*args, **kwargs)
        return result

    def _is_cached(self) -> bool:
        """Whether an index of compiled code is there that is no older than the source."""
        folder, source = self.compiled.stats.cache_path, Path(self._function.__code__.co_filename)
        if folder is None:
            return False
        indexes = Path(folder).glob(f"{source.stem}.{self._function.__qualname__}-*.nbi")
        return any(index.stat().st_mtime >= source.stat().st_mtime for index in indexes)


def kernel(function: Callable[P, R]) -> Kernel[P, R]:
    """Mark an inner loop for compilation."""
    return Kernel(function)


def _announce() -> None:
    global _announced
    if announce is not None and not _announced:
        # First, since several threads may wait for their kernels at once.
        _announced = True
        announce("Compiling the inner loops, once on this machine (a minute or two)...")
