"""The key of a ledger: who is who is kept only as keyed hashes, so without it nobody can be recognised.

It comes from the environment (SEQUESTER_KEY) or from a file beside the ledger, which only its owner may read. It is
never written to the ledger, to an export or to an error.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import re
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from sequester.drafts import draft_beside, write_whole
from sequester.errors import LedgerError, Problem
from sequester.ledger.place import Place
from sequester.regular import bytes_of

VARIABLE = "SEQUESTER_KEY"
SHORTEST = 16
_HEX = re.compile(r"(?:[0-9a-fA-F]{2}){16,}")
_BLOCK = 64


class Key:
    """A secret that signs and recognises, and shows itself nowhere."""

    __slots__ = ("_secret",)

    def __init__(self, secret: bytes) -> None:
        if len(secret) < SHORTEST:
            raise LedgerError(f"the key is too short: it needs {SHORTEST} characters or more")
        self._secret = secret

    def __repr__(self) -> str:
        return "<Key>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key is not pickled")

    def lend(self) -> bytes:
        """The secret itself, for a process that works for this one and is given it by a pipe; never for a file."""
        return self._secret

    @classmethod
    def of_text(cls, text: str) -> Key:
        """From 32 or more hexadecimal digits, or from any other text of 16 characters or more."""
        text = text.strip()
        return cls(bytes.fromhex(text) if _HEX.fullmatch(text) else text.encode())

    @classmethod
    def find(
        cls, ledger: str | Path | Place, *, file: str | Path | None = None, environment: Mapping[str, str] | None = None
    ) -> Key | None:
        """The key of a ledger: of the environment, else of the key file; None when there is neither."""
        given = (os.environ if environment is None else environment).get(VARIABLE)
        if given is not None:
            return cls.of_text(given)
        path = Place.of(ledger).key if file is None else Path(file)
        return cls.read(path) if path.exists() else None

    @classmethod
    def need(
        cls, ledger: str | Path | Place, *, file: str | Path | None = None, environment: Mapping[str, str] | None = None
    ) -> Key:
        """The key of a ledger that exists; an error when it is nowhere."""
        key = cls.find(ledger, file=file, environment=environment)
        if key is None:
            path = Place.of(ledger).key if file is None else Path(file)
            raise LedgerError(
                Problem(f"the key is not there; put the file back, or set {VARIABLE} to the key", file=str(path))
            )
        return key

    @classmethod
    def find_or_make(
        cls, ledger: str | Path | Place, *, file: str | Path | None = None, environment: Mapping[str, str] | None = None
    ) -> Key:
        """The key for a new ledger: one that is there, else a new one in the key file."""
        key = cls.find(ledger, file=file, environment=environment)
        if key is not None:
            return key
        path = Place.of(ledger).key if file is None else Path(file)
        try:
            return cls.make(path)
        except LedgerError:
            # Another command may have made it since: a key file is there whole or not at all.
            if not path.exists():
                raise
        return cls.read(path)

    @classmethod
    def share(cls, ledger: str | Path | Place, new: str | Path | Place) -> Key:
        """The key of a ledger, for a new one that knows the same people; its file is copied, where it has one."""
        key, there = cls.need(ledger), cls.find(new)
        if there is None:
            try:
                _write(Place.of(new).key, bytes_of(Place.of(ledger).key).decode())
            except LedgerError:
                there = cls.find(new)
                if there is None:
                    raise
        if there is not None and there.check != key.check:
            message = "is not the key of the series before, by which its people are known; move it away"
            raise LedgerError(Problem(message, file=str(Place.of(new).key)))
        return key

    @classmethod
    def read(cls, path: Path) -> Key:
        """From a key file, which nobody but its owner may read."""
        reason = text = None
        try:
            mode = path.stat().st_mode
            text = bytes_of(path).decode()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not text"
        if text is None:
            raise LedgerError(Problem(f"the key cannot be read: {reason}", file=str(path)))
        if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
            raise LedgerError(
                Problem(
                    "others can read the key; make it yours alone with `chmod 600`, or make a new key and ledger "
                    "if somebody may have read it",
                    file=str(path),
                )
            )
        if len(text.strip()) < SHORTEST:
            raise LedgerError(Problem("holds no key; put the right file back", file=str(path)))
        return cls.of_text(text)

    @classmethod
    def make(cls, path: Path, text: str | None = None) -> Key:
        """A new key in a new file that only its owner may read, whole or not at all; random unless a text is given."""
        text = text or secrets.token_hex(32)
        _write(path, f"{text}\n")
        return cls.of_text(text)

    def sign(self, purpose: str, data: bytes) -> bytes:
        """HMAC-SHA256 of some data; signatures for one purpose say nothing about those for another."""
        return hmac.digest(self._secret, purpose.encode() + b"\0" + data, "sha256")

    @property
    def check(self) -> str:
        """Kept in the ledger to notice a wrong key; tells nothing about the key."""
        return self.sign("sequester key check", b"").hex()

    @property
    def cipher(self) -> str:
        """What the file is encrypted with."""
        return self.sign("sequester encryption", b"").hex()

    @property
    def pads(self) -> tuple[bytes, bytes]:
        """The first blocks of the inner and of the outer hash of HMAC-SHA256 (RFC 2104)."""
        secret = self._secret if len(self._secret) <= _BLOCK else hashlib.sha256(self._secret).digest()
        block = secret.ljust(_BLOCK, b"\0")
        return bytes(byte ^ 0x36 for byte in block), bytes(byte ^ 0x5C for byte in block)


def flush_names(folder: Path) -> None:
    """Make new names in a folder durable, where the system lets us."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _write(path: Path, text: str) -> None:
    """A new file that only its owner may read; it is there whole or not at all."""
    reason = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft_beside(path) as folder:
            write_whole(folder / path.name, text.encode())
            os.link(folder / path.name, path)
    except FileExistsError:
        reason = "exists already; it is not replaced"
    except OSError as error:
        reason = f"the key cannot be written: {error.strerror}"
    if reason is not None:
        raise LedgerError(Problem(reason, file=str(path)))
    flush_names(path.parent)
