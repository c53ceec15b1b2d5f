"""`--verbose` and `--log FILE`: who listens to what the library tells of its work, and where it is written down."""

from __future__ import annotations

import logging
import os
import re
import stat
import sys
import time
from pathlib import Path

import typer

from sequester.log import ROOT
from sequester.visible import visible

_LINE = "%(asctime)s %(levelname)-5s %(name)s: %(message)s"
_SHORT = "%(asctime)s %(name)s: %(message)s"
# How a line of ours begins.
_OURS = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z [A-Z]+ +sequester")


class _Line(logging.Formatter):
    """One line in UTC, whatever is told."""

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802 - of logging
        """When it was told, with milliseconds."""
        return f"{time.strftime(datefmt or '', time.gmtime(record.created))}.{int(record.msecs):03d}Z"

    def format(self, record: logging.LogRecord) -> str:
        """Without anything that a terminal acts on."""
        return visible(super().format(record))


class _StderrListener(logging.Handler):
    """Writes to what stderr is at the moment: a progress bar puts itself below."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        try:
            sys.stderr.write(f"{self.format(record)}\n")
        except (OSError, ValueError):
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - of logging
        """A log that cannot be written is no reason to stop."""


class _FileListener(_StderrListener):
    """Appends to a file that its owner alone may read."""

    def __init__(self, handle: int, name: Path) -> None:
        super().__init__()
        self._handle: int | None = handle
        self._name = name

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line, at once: whoever is killed has told all until then."""
        try:
            if self._handle is not None:
                os.write(self._handle, f"{self.format(record)}\n".encode("utf-8", "backslashreplace"))
        except OSError as error:
            self.close()
            sys.stderr.write(f"{visible(str(self._name))}: the log ends here: {(error.strerror or 'error').lower()}\n")

    def close(self) -> None:
        """Write nothing more."""
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)
        super().close()


def listen_on_stderr(ctx: typer.Context) -> None:
    """Tell the work of this command on stderr."""
    if _is_new(ctx, "stderr"):
        _listen(ctx, _StderrListener(), logging.INFO, _Line(_SHORT, "%H:%M:%S"))


def listen_in_file(ctx: typer.Context, path: Path) -> None:
    """Append the work of this command to a log, which is made if it is not there."""
    if _is_new(ctx, path.resolve()):
        _listen(ctx, _FileListener(_open(path), path), logging.DEBUG, _Line(_LINE, "%Y-%m-%dT%H:%M:%S"))


def _is_new(ctx: typer.Context, where: object) -> bool:
    """Whether this was asked for only now: both the application and its commands take the options."""
    known = ctx.find_root().meta.setdefault(__name__, set())
    new = where not in known
    known.add(where)
    return new


def _listen(ctx: typer.Context, handler: logging.Handler, level: int, form: logging.Formatter) -> None:
    logger = logging.getLogger(ROOT)
    before = logger.level
    handler.setLevel(level)
    handler.setFormatter(form)
    logger.setLevel(logging.DEBUG)
    logger.addHandler(handler)

    def forget() -> None:
        logger.removeHandler(handler)
        logger.setLevel(before)
        handler.close()

    ctx.find_root().call_on_close(forget)
    _tell_start(handler, ctx)


def _tell_start(handler: logging.Handler, ctx: typer.Context) -> None:
    """The first line of a run: what runs on what; and after which command this was asked for."""
    import platform

    from sequester import __version__

    versions = f"sequester {__version__} python={platform.python_version()} system={platform.system()}"
    if ctx.parent is not None:
        versions += f" command={ctx.info_name}"
    handler.handle(logging.LogRecord(ROOT, logging.INFO, "", 0, versions, None, None))


def _open(path: Path) -> int:
    """The end of a log, or a new one. Whatever else has this name is left as it is."""
    if not path.name:
        raise typer.BadParameter("name a file", param_hint="--log")
    try:
        # Not through a link, and without waiting for who reads a pipe.
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        handle = os.open(path, flags, 0o600)
    except OSError as error:
        reason = (error.strerror or "error").lower()
        raise typer.BadParameter(f"{path} cannot be written: {reason}", param_hint="--log") from None
    if wrong := _wrong_with(handle):
        os.close(handle)
        raise typer.BadParameter(f"{path} {wrong}; name another file", param_hint="--log")
    return handle


def _wrong_with(handle: int) -> str | None:
    """Why an open file is not appended to, in words that go after its name."""
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        return "is no regular file"
    if hasattr(os, "geteuid") and status.st_uid != os.geteuid():
        # Whoever made it beforehand could read it.
        return "is somebody else's"
    start = os.read(handle, 64)
    return "exists and is no log" if start and not _OURS.match(start) else None
