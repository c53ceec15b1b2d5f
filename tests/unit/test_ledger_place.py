"""The place of a ledger: a file, or an address that shows no password, whatever somebody writes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sequester.errors import LedgerError, MissingLibrary, SequesterError
from sequester.ledger import Ledger, Place
from sequester.ledger.place import without_password
from sequester.ledger.postgres import lock_of, schema_of
from sequester.policy.fingerprint import fingerprint, policy_text
from towns import rules

SECRET = "s3cret"


def test_a_path_is_a_file_with_its_key_and_releases_beside_it() -> None:
    place = Place.of("some/where/x.ledger")
    assert (place.is_file, place.file, place.key) == (
        True,
        Path("some/where/x.ledger"),
        Path("some/where/x.ledger.key"),
    )
    assert (str(place), place.releases, Place.of(place)) == ("some/where/x.ledger", Path("some/where/releases"), place)


def test_an_address_has_its_key_and_releases_in_a_folder_here() -> None:
    place = Place.of("postgresql://ann@db.example/books", home=Path("here"), series="clinic")
    assert (place.is_file, place.key, place.releases) == (False, Path("here/clinic.ledger.key"), Path("here/releases"))
    assert str(place) == "postgresql://ann@db.example/books#clinic"
    assert Place.of(f"{place.url}#clinic", home=Path("here")) == place
    assert Place.named("postgresql://ann@db.example/books", Path("here"), series="clinic") == place
    assert Place.named("x.ledger", Path("here")) == Place.of("here/x.ledger")
    with pytest.raises(ValueError, match="not in a file"):
        place.file.unlink()


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://ann:{SECRET}@db.example:5433/books",
        f"postgres://ann:{SECRET}@one,two:5433/books?target_session_attrs=any",
        f"postgresql://ann@db.example/books?password={SECRET}",
        f"postgresql:///books?host=/run&password={SECRET}",
        f"postgresql://ann:{SECRET}@/books",
    ],
)
def test_a_password_is_shown_nowhere(address: str) -> None:
    place = Place.of(address, series="clinic")
    assert place.url == address
    for text in (str(place), repr(place), without_password(address), without_password(f"{address}#clinic")):
        assert SECRET not in text
        assert text.startswith(("postgresql://", "Place("))


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://ann:{SECRET}#x@db.example/books",
        f"postgresql://ann:{SECRET}/x@db.example/books",
        f"postgresql://ann:{SECRET}?x@db.example/books",
        f"postgresql://ann:x@{SECRET}@db.example/books",
        f"postgresql://ann:{SECRET}]@db.example/books",
        f"postgresql://ann@db.example/books#clinic {SECRET}",
        f"postgresql://ann@db.example/books/{SECRET}",
    ],
)
def test_an_address_with_a_password_in_the_wrong_place_is_refused_and_not_quoted(address: str) -> None:
    for read in (lambda: Place.of(address, series="clinic"), lambda: without_password(address)):
        with pytest.raises(LedgerError, match="is not of the form postgresql://") as error:
            read()
        assert SECRET not in str(error.value)
        assert error.value.__context__ is None


def test_an_address_of_another_series_than_the_policys_is_refused() -> None:
    with pytest.raises(LedgerError, match="names another series than the policy"):
        Place.of("postgresql://ann@db.example/books#other", series="clinic")


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("postgresql://ann:s3cret@127.0.0.1:1/books", "does not answer"),
        ("postgresql://ann:s3cret@/books?host=/nowhere", "does not answer"),
        ("postgresql://ann:s3cret@127.0.0.1:1/books?nonsense=1", "not one that PostgreSQL understands"),
        ("postgresql://ann:s3cret@no-such-host.invalid/books", "not found under this name"),
    ],
)
def test_a_server_that_is_not_there_is_said(address: str, reason: str) -> None:
    pytest.importorskip("psycopg")
    place = Place.of(address, series="clinic")
    for ask in (place.exists, lambda: Ledger.open(place, key=None), lambda: Place.of(address)):
        with pytest.raises(SequesterError, match=reason) as error:
            ask()
        assert SECRET not in str(error.value)
        assert error.value.__context__ is None
        assert error.value.exit_code == 6


def test_without_psycopg_it_is_said_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingLibrary, match=r"pip install 'sequester\[postgres\]'"):
        Place.of("postgresql://ann@db.example/books", series="clinic").exists()


def test_every_series_has_a_schema_and_a_lock_of_its_own() -> None:
    names = ["clinic", "Clinic", "x" * 53, "x" * 54, "x" * 200, "x" * 199 + "y", "ä" * 40]
    schemas = [schema_of(name) for name in names]
    assert schemas[:3] == ["sequester_clinic", "sequester_Clinic", "sequester_" + "x" * 53]
    assert all(len(schema.encode()) <= 63 for schema in schemas)
    assert len(set(schemas)) == len({lock_of(schema) for schema in schemas}) == len(names)


def test_where_the_ledger_is_changes_no_promise_and_is_kept_nowhere() -> None:
    here, there = rules(), rules(ledger=f"postgresql://ann:{SECRET}@db.example/books")
    assert there.ledger is not None
    assert (fingerprint(there), policy_text(there)) == (fingerprint(here), policy_text(here))
    assert SECRET not in policy_text(rules(after=f"postgresql://ann:{SECRET}@db.example/books"))
    assert "old.ledger" in policy_text(rules(after="old.ledger"))
