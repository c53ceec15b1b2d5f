"""The key of a ledger is found, made and guarded."""

from __future__ import annotations

import copy
import hashlib
import hmac
import os
import pickle
import stat
from pathlib import Path

import pytest

from sequester.errors import LedgerError
from sequester.ledger import Key, Place
from sequester.ledger.key import VARIABLE

NOTHING: dict[str, str] = {}


def test_hexadecimal_digits_are_bytes_and_other_text_is_text() -> None:
    digits = "00ff" * 16
    assert Key.of_text(digits).check == Key(bytes.fromhex(digits)).check
    assert Key.of_text(f" {digits}\n").check == Key.of_text(digits.upper()).check
    assert Key.of_text("correct horse battery").check == Key(b"correct horse battery").check
    # Too short to be a key as bytes, long enough as text.
    assert Key.of_text("00ff" * 4).check == Key(b"00ff" * 4).check


@pytest.mark.parametrize("text", ["", "fifteen letters", "     tiny      "])
def test_a_short_key_is_refused(text: str) -> None:
    with pytest.raises(LedgerError, match="too short: it needs 16") as error:
        Key.of_text(text)
    assert not text.strip() or text.strip() not in str(error.value)


@pytest.mark.parametrize("length", [16, 63, 64, 65, 200])
def test_the_pads_are_those_of_hmac(length: int) -> None:
    secret = bytes(range(length % 256)) if length < 256 else b"x" * length
    inner, outer = Key(secret).pads
    found = hashlib.sha256(outer + hashlib.sha256(inner + b"message").digest()).digest()
    assert found == hmac.digest(secret, b"message", "sha256")


def test_purposes_do_not_mix() -> None:
    key = Key.of_text("correct horse battery")
    assert len({key.check, key.cipher, key.sign("entry", b"").hex(), key.sign("other", b"").hex()}) == 4


def test_a_key_shows_itself_nowhere() -> None:
    key = Key.of_text("correct horse battery")
    assert "horse" not in repr(key) + str(key)
    for copied in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match="not pickled"):
            copied(key)


def test_the_environment_comes_before_the_file(tmp_path: Path) -> None:
    made = Key.make(Place.of(tmp_path / "x.ledger").key)
    other = Key.of_text("correct horse battery")
    assert Key.need(tmp_path / "x.ledger", environment=NOTHING).check == made.check
    given = {VARIABLE: "correct horse battery"}
    assert Key.need(tmp_path / "x.ledger", environment=given).check == other.check


def test_the_environment_is_that_of_the_process_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "correct horse battery")
    found = Key.find(tmp_path / "x.ledger")
    assert found is not None
    assert found.check == Key.of_text("correct horse battery").check


def test_a_key_that_is_nowhere_is_an_error_when_it_is_needed(tmp_path: Path) -> None:
    assert Key.find(tmp_path / "x.ledger", environment=NOTHING) is None
    with pytest.raises(LedgerError, match=r"x\.ledger\.key: the key is not there; .* or set SEQUESTER_KEY"):
        Key.need(tmp_path / "x.ledger", environment=NOTHING)


def test_a_new_key_is_random_and_for_its_owner_alone(tmp_path: Path) -> None:
    one = Key.find_or_make(tmp_path / "x.ledger", environment=NOTHING)
    two = Key.find_or_make(tmp_path / "y.ledger", environment=NOTHING)
    assert one.check != two.check
    assert Key.find_or_make(tmp_path / "x.ledger", environment=NOTHING).check == one.check
    assert sorted(file.name for file in tmp_path.iterdir()) == ["x.ledger.key", "y.ledger.key"]
    text = (tmp_path / "x.ledger.key").read_text()
    assert len(bytes.fromhex(text.strip())) == 32
    if os.name == "posix":
        assert stat.S_IMODE((tmp_path / "x.ledger.key").stat().st_mode) == 0o600


def test_an_existing_key_is_not_replaced(tmp_path: Path) -> None:
    Key.make(tmp_path / "key")
    text = (tmp_path / "key").read_text()
    with pytest.raises(LedgerError, match="exists already; it is not replaced"):
        Key.make(tmp_path / "key")
    assert (tmp_path / "key").read_text() == text
    assert len(list(tmp_path.iterdir())) == 1


def test_a_key_may_be_kept_elsewhere(tmp_path: Path) -> None:
    made = Key.find_or_make(tmp_path / "x.ledger", file=tmp_path / "safe" / "key", environment=NOTHING)
    assert Key.need(tmp_path / "x.ledger", file=tmp_path / "safe" / "key", environment=NOTHING).check == made.check
    assert not Place.of(tmp_path / "x.ledger").key.exists()


@pytest.mark.skipif(os.name != "posix", reason="needs the rights of Unix files")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644, 0o610])
def test_a_key_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    Key.make(tmp_path / "key")
    (tmp_path / "key").chmod(mode)
    with pytest.raises(LedgerError, match="chmod 600"):
        Key.read(tmp_path / "key")


@pytest.mark.parametrize("stored", [b"", b"short", b"\xff\xfe\xfa" * 20])
def test_a_file_without_a_key_is_refused_without_showing_it(tmp_path: Path, stored: bytes) -> None:
    (tmp_path / "key").write_bytes(stored)
    (tmp_path / "key").chmod(0o600)
    with pytest.raises(LedgerError, match=r"holds no key|cannot be read: it is not text") as error:
        Key.read(tmp_path / "key")
    assert "short" not in str(error.value)


def test_a_folder_in_place_of_a_key_is_refused(tmp_path: Path) -> None:
    (tmp_path / "key").mkdir()
    with pytest.raises(LedgerError, match="the key cannot be read: this is a folder"):
        Key.read(tmp_path / "key")
