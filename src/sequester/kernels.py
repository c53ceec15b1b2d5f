"""How inner loops are compiled; they themselves lie beside the methods and attacks that call them.

Kernels are compiled by Numba on first use and cached on disk, where nobody else can write: what is cached is run when
it is read. The library never prints: whoever wants to tell people about the wait sets `announce`, as the command line
does.

A *kernel* is called from Python, a *helper* only from kernels. Each is compiled with one signature: callers give
C-contiguous arrays of one type, and literals that a helper gets are typed as numbers.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, update_wrapper
from importlib import import_module
from pathlib import Path
from pickle import UnpicklingError
from threading import RLock
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

announce: Callable[[str], None] | None = None
_said: set[str] = set()
_NAMED = "NUMBA_CACHE_DIR"
_COMPILING = "Compiling the inner loops, once on this machine (up to a minute)..."
_FOR_NOW = (
    "Compiling the inner loops (up to a minute) for this run only: there is no folder to keep them in. "
    "Set NUMBA_CACHE_DIR to one that you, and nobody else, can write to."
)
_REFUSED = (
    "The folder that NUMBA_CACHE_DIR names is not used: others can write to it, or to one above it, and what is kept "
    "there is run. Close it to them (chmod go-w), or name another."
)
_OTHERS = stat.S_IWGRP | stat.S_IWOTH
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
            if _is_refused():
                say(_REFUSED)
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
    made: Any = numba.njit(function, **options)
    folder = _folder_for(Path(function.__code__.co_filename).absolute().parent)
    # A folder may be gone or full by now; then every process compiles anew.
    with suppress(RuntimeError):
        if folder is not None:
            made._cache = _cache_in(folder, function)
    made.get_call_template = _without_literals(made.get_call_template)
    name = f"{function.__module__.removeprefix('sequester.')}.{function.__qualname__}"
    _dispatchers[name] = made
    return made


@cache
def _folder_for(source: Path) -> Path | None:
    """Where what is compiled of a folder of sources is kept; None where no folder will do, so every process compiles.

    Of what Numba is told otherwise only the environment counts: it would also listen to a file of the working folder.
    """
    below = _caching().InTreeCacheLocator.get_suitable_cache_subpath(str(source / "any.py"))
    own = Path(_caching().AppDirs("sequester", appauthor=False).user_cache_dir)
    places = [source / "__pycache__", own / below]
    named = os.environ.get(_NAMED)
    if named and _can_keep(Path(named).absolute()):
        places.insert(0, Path(named).absolute() / below)
    return next(filter(_can_keep, places), None)


def _can_keep(folder: Path) -> bool:
    """Whether this user can write to a folder, which is made if need be, and nobody else can."""
    try:
        for missing in reversed([place for place in (folder, *folder.parents) if not place.exists()]):
            # What Python keeps beside a source, other users may read.
            missing.mkdir(mode=0o755 if missing.name == "__pycache__" else 0o700, exist_ok=True)
        if not _is_folder_trusted(folder):
            return False
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def _is_refused() -> bool:
    """Whether the folder that somebody named is open to others."""
    named = os.environ.get(_NAMED)
    return named is not None and Path(named).is_dir() and not _is_folder_trusted(named)


@cache
def _caches_in(folder: Path) -> Any:
    """Numba's own kind of cache, in a folder that was chosen here."""
    ours = {"get_cache_path": lambda _: str(folder)}
    locator = type("Locator", (_caching().InTreeCacheLocator,), ours)
    kept = type("Kept", (_caching().CompileResultCacheImpl,), {"_locator_classes": [locator]})
    return type("Cache", (_caching().FunctionCache,), {"_impl_class": kept})


def _caching() -> Any:
    return import_module("numba.core.caching")


def _cache_in(folder: Path, function: Callable[..., Any]) -> Any:
    """A cache of one function, to which files that others may have written are not there."""
    config: Any = import_module("numba.core.config")
    before, config.CACHE_LOCATOR_CLASSES = getattr(config, "CACHE_LOCATOR_CLASSES", ""), ""
    try:
        kept = _caches_in(folder)(function)
    finally:
        config.CACHE_LOCATOR_CLASSES = before
    files = kept._cache_file
    load_index, load_data, open_for_write = files._load_index, files._load_data, files._open_for_write

    def load_or_begin() -> dict[Any, Any]:
        if not _is_file_trusted(files._index_path):
            return {}
        # An index of an earlier version may name tuples that are gone.
        try:
            overloads: dict[Any, Any] = load_index()
        except (AttributeError, EOFError, ImportError, IndexError, TypeError, ValueError, UnpicklingError):
            return {}
        return overloads

    def load_trusted(name: str) -> Any:
        path = files._data_path(name)
        if not _is_file_trusted(path):
            # As if it were gone: Numba compiles anew.
            raise FileNotFoundError(path)
        return load_data(name)

    @contextmanager
    def open_closed(path: str) -> Iterator[Any]:
        with open_for_write(path) as file:
            # Whatever the umask says: what others can write to is not read again.
            with suppress(AttributeError, OSError):
                os.fchmod(file.fileno(), 0o644)
            yield file

    files._load_index, files._load_data, files._open_for_write = load_or_begin, load_trusted, open_closed
    return kept


def _without_literals(template: Callable[..., Any]) -> Callable[..., Any]:
    """How a call from another kernel is typed: the literal -1 is a number, and no type of its own to compile for."""
    from numba import types

    unliteral: Any = types.unliteral
    return lambda args, kws: template(tuple(map(unliteral, args)), {name: unliteral(kws[name]) for name in kws})


def say(text: str) -> None:
    """Tell people something once, if anybody listens."""
    # Noted first, since several threads may wait for their kernels at once.
    if announce is not None and text not in _said:
        _said.add(text)
        announce(text)


def _announce(*, kept: bool = True) -> None:
    say(_COMPILING if kept else _FOR_NOW)


# Whether nobody else can say what is in a folder or a file. Where files have no owners, nothing can be said.


def _is_folder_trusted(folder: str | os.PathLike[str]) -> bool:
    """Whether only this user and root can write to a folder, to those above it, and to those that links lead through.

    In a folder with the sticky bit, such as /tmp, others cannot touch what is this user's.
    """
    if not hasattr(os, "getuid"):
        return True
    path = Path(folder).absolute()
    here, names = Path(path.anchor), deque(path.parts[1:])
    with suppress(OSError):
        # What cannot be looked at, or leads in circles, ends here.
        path.resolve(strict=True)
        while names:
            about, entry = here.lstat(), here / names.popleft()
            found = entry.lstat()
            can_be_turned = about.st_mode & _OTHERS and not about.st_mode & stat.S_ISVTX
            if can_be_turned or not (_is_ours(about) and _is_ours(found)):
                return False
            if not stat.S_ISLNK(found.st_mode):
                here = here.parent if entry.name == ".." else entry
                continue
            target = entry.readlink()
            if target.is_absolute():
                here = Path(target.anchor)
            names.extendleft(reversed(target.parts[1:] if target.is_absolute() else target.parts))
        about = here.lstat()
        return stat.S_ISDIR(about.st_mode) and _is_ours(about) and not about.st_mode & _OTHERS
    return False


def _is_file_trusted(file: str | os.PathLike[str]) -> bool:
    """Whether only this user and root can have written a file of a trusted folder."""
    if not hasattr(os, "getuid"):
        return True
    with suppress(OSError):
        about = Path(file).lstat()
        return stat.S_ISREG(about.st_mode) and _is_ours(about) and not about.st_mode & _OTHERS
    return False


def _is_ours(about: os.stat_result) -> bool:
    return about.st_uid in (0, os.geteuid())
