"""How inner loops are compiled; they themselves lie beside the methods and attacks that call them.

Kernels are compiled by Numba on first use and cached on disk. The library never prints: whoever wants to tell
people about the wait sets `announce`, as the command line does.

A *kernel* is called from Python, a *helper* only from kernels. Each is compiled with one signature: callers give
C-contiguous arrays of one type, and literals that a helper gets are typed as numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from pathlib import Path
from pickle import UnpicklingError
from threading import RLock
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

announce: Callable[[str], None] | None = None
_announced = False
_dispatchers: dict[str, Any] = {}
_making = RLock()


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
            # Threads that share out the first work must not have a dispatcher each, or each compiles.
            with _making:
                if self._compiled is None:
                    self._compiled = _dispatcher(self._function)
        return self._compiled

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        dispatcher = self.compiled
        # Asking the dispatcher for its signatures takes longer than many a kernel.
        if not self._is_known:
            self._is_known = True
            if not dispatcher.signatures and not self._is_cached():
                _announce(kept=dispatcher.stats.cache_path is not None)
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


def helper(function: Any = None, **options: Any) -> Any:
    """Mark a loop that only kernels call: it is compiled into them, and Python cannot call it.

    `inline="always"` spares a short one that is called in one place a compilation of its own; of long ones it makes
    functions so large that they take longer.
    """
    if function is None:
        return lambda decorated: helper(decorated, **options)
    return _dispatcher(function, no_cpython_wrapper=True, **options)


def compiled() -> dict[str, tuple[str, ...]]:
    """Per kernel and helper the signatures that this process compiled itself, and did not find on disk."""
    by_name = {}
    for name, dispatcher in _dispatchers.items():
        stats = dispatcher.stats
        signatures = dispatcher.signatures if stats.cache_path is None else stats.cache_misses
        if signatures:
            by_name[name] = tuple(map(str, signatures))
    return by_name


def is_kept() -> bool:
    """Whether what is compiled is kept on disk for the next process."""
    return all(dispatcher.stats.cache_path is not None for dispatcher in _dispatchers.values())


def _dispatcher(function: Callable[..., Any], **options: Any) -> Any:
    import numba

    # Nobody calls these functions from C.
    options |= {"nogil": True, "no_cfunc_wrapper": True}
    try:
        made = numba.njit(function, cache=True, **options)
        _forgive(made)
    except RuntimeError:  # no folder can be written, so every process compiles anew
        made = numba.njit(function, **options)
    made.get_call_template = _without_literals(made.get_call_template)  # type: ignore[method-assign]
    name = f"{function.__module__.removeprefix('sequester.')}.{function.__qualname__}"
    _dispatchers[name] = made
    return made


def _forgive(dispatcher: Any) -> None:
    """Take an index that cannot be read for none: one of an earlier version may name tuples that are gone."""
    index = dispatcher._cache._cache_file
    load = index._load_index

    def load_or_begin() -> dict[Any, Any]:
        try:
            overloads: dict[Any, Any] = load()
        except (AttributeError, EOFError, ImportError, IndexError, TypeError, ValueError, UnpicklingError):
            return {}
        return overloads

    index._load_index = load_or_begin


def _without_literals(template: Callable[..., Any]) -> Callable[..., Any]:
    """How a call from another kernel is typed: the literal -1 is a number, and no type of its own to compile for."""
    from numba import types

    unliteral: Any = types.unliteral
    return lambda args, kws: template(tuple(map(unliteral, args)), {name: unliteral(kws[name]) for name in kws})


def _announce(*, kept: bool = True) -> None:
    global _announced
    if announce is not None and not _announced:
        # First, since several threads may wait for their kernels at once.
        _announced = True
        announce(
            "Compiling the inner loops, once on this machine (up to a minute)..."
            if kept
            else "Compiling the inner loops (up to a minute) for this run only: there is no folder to keep them in. "
            "Set NUMBA_CACHE_DIR to one that can be written."
        )
