"""Verification notices every change of what was recorded, and says where without saying what."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from books import Books, tamper
from ledgers import KEY, draft, new, publish, three_releases
from sequester.errors import LedgerError
from sequester.ledger import Key, Ledger, Place, Verification

CHANGES = {
    "UPDATE classes SET lo = [lo[1] + 1, lo[2]] WHERE release = 2": "release 2: what is recorded was changed",
    "UPDATE counts SET n = n + 1 WHERE release = 1 AND class = 0": "release 1: the published values are not those",
    "UPDATE counts SET codes = [3, 2] WHERE release = 3 AND class = 1": "release 3: the published values are not those",
    "UPDATE people SET codes = [3, 0] WHERE person = 1": "release 1: the published values are not those",
    "UPDATE people SET high = high + 1 WHERE person = 6": "release 2: what is recorded was changed",
    "UPDATE people SET digests = [7] WHERE person = 0": "release 1: what is recorded was changed",
    "UPDATE state SET trajectory = 0 WHERE release = 2 AND person = 2": "release 2: 1 people have another past",
    "UPDATE trajectories SET class = 1 - class WHERE release = 3 AND class >= 0": "release 3: the published values",
    "UPDATE trajectories SET parent = 0 WHERE release = 2 AND parent = 1": "people have another past",
    "UPDATE classes SET hi = [9, hi[2]] WHERE release = 2": "release 2: 2 boxes are outside the domain of 'age'",
    "UPDATE queue SET since = 1": "release 2: what is recorded was changed",
    "UPDATE queue SET since = 3": "release 2: people wait who have not begun to",
    "DELETE FROM retained": "release 2: what is recorded was changed",
    "UPDATE retained SET person = 6": "release 2: people are retained who were not published before",
    "UPDATE domains SET json = replace(json, '\"0\"', '\"zero\"') WHERE attribute = 'zip'": "release 1: what is",
    "DELETE FROM state WHERE release = 3 AND person = 8": "release 3: not everybody has one trajectory",
    "DELETE FROM state WHERE release = 1": "release 1: not everybody has one trajectory",
    "UPDATE state SET trajectory = 1 - trajectory WHERE release = 1 AND person < 2": "release 1: ",
    "INSERT INTO state VALUES (4, 0, 0)": "1 rows of state belong to no release",
    "INSERT INTO domains VALUES (4, 'age', '{}')": "1 rows of domains belong to no release",
    "DELETE FROM people WHERE person = 8": "release 3: the people who are new are not numbered",
    "INSERT INTO retained VALUES (4, 1), (NULL, 1)": "2 rows of retained belong to no release",
    "UPDATE releases SET purpose = 'another' WHERE number = 3": "release 3: the entry was changed",
    "UPDATE releases SET purpose = '' WHERE number = 1": "release 1: the entry was changed",
    "UPDATE releases SET output_digest = 'x' WHERE number = 1": "release 1: the entry was changed",
    "UPDATE releases SET previous = '' WHERE number = 2": "release 2 is not chained to the one before it",
    "UPDATE releases SET hash = 'x' WHERE number = 3": "release 3: the entry was not made with this key",
    "UPDATE releases SET status = 'begun' WHERE number = 1": "release 1: the status is not one",
    "UPDATE releases SET status = 'begun' WHERE number = 3": "release 3: the log does not know it as begun",
    "UPDATE log SET \"at\" = '2020-01-01' WHERE number = 2": "row 2 of the log was changed",
    "DELETE FROM log WHERE number = 3": "row 3 of the log was changed",
    "DELETE FROM releases WHERE number = 3": "rows of state belong to no release",
    "UPDATE meta SET value = 'k: 1' WHERE fact = 'policy_text'": "release 1 is not chained to the one before it",
}


def tampered(path: Place, *statements: str) -> Verification:
    three_releases(path).close()
    tamper(path, *statements)
    with Ledger.open(path, key=KEY) as ledger:
        return ledger.verify()


def said_by_verification(path: Place) -> str:
    """Its problems, or the damage that keeps it from looking for any."""
    with Ledger.open(path, key=KEY) as ledger:
        try:
            return "\n".join(ledger.verify().problems)
        except LedgerError as error:
            return str(error)


def test_what_was_not_touched_holds(books: Books) -> None:
    found = tampered(books / "x.ledger")
    assert (found.holds, found.releases, found.people, found.problems) == (True, 3, 9, ())
    assert found.to_dict()["holds"] is True
    with new(books / "empty.ledger") as ledger:
        assert ledger.verify().holds


@pytest.mark.parametrize("statement", CHANGES)
def test_every_change_is_noticed(books: Books, statement: str) -> None:
    """By verification, which says what it is, and by whatever is built upon the ledger."""
    found = tampered(books / "x.ledger", statement)
    assert not found.holds
    assert CHANGES[statement] in "\n".join(found.problems)
    with Ledger.open(books / "x.ledger", key=KEY) as ledger, pytest.raises(LedgerError, match="damaged"):
        ledger.load()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE classes SET lo = [1] WHERE release = 2",
        "UPDATE people SET codes = NULL WHERE person = 3",
        "UPDATE trajectories SET parent = 77 WHERE release = 3",
        "UPDATE state SET person = 3 WHERE release = 3",
        "UPDATE domains SET json = '{}' WHERE attribute = 'ward'",
        "UPDATE domains SET json = 'nonsense' WHERE attribute = 'age'",
        "UPDATE releases SET summary = 'nonsense' WHERE number = 2",
        "DELETE FROM people WHERE release = 1",
        "UPDATE people SET release = 9 WHERE person = 0",
    ],
)
def test_rows_that_make_no_sense_are_damage_and_no_traceback(books: Books, statement: str) -> None:
    path = books / "x.ledger"
    three_releases(path).close()
    tamper(path, statement)
    with Ledger.open(path, key=KEY) as ledger, pytest.raises(LedgerError, match=r"damaged.*; restore it from a backup"):
        ledger.load()
    assert said_by_verification(path)


def test_a_table_that_is_gone_is_damage(books: Books) -> None:
    path = books / "x.ledger"
    three_releases(path).close()
    tamper(path, "DROP TABLE counts")
    with Ledger.open(path, key=KEY) as ledger, pytest.raises(LedgerError, match="damaged") as error:
        ledger.load()
    assert "counts" not in str(error.value)
    assert error.value.__cause__ is None
    assert error.value.__context__ is None


def test_a_chain_that_was_made_again_needs_the_key(books: Books) -> None:
    """Who can write the file can make all hashes fit again, but not sign them."""
    other = Key.of_text("somebody else's secret key")
    with new(books / "forged.ledger", key=other) as ledger:
        publish(ledger, [0, 0, 1, 1])
    tamper(books / "forged.ledger", f"UPDATE meta SET value = '{KEY.check}' WHERE fact = 'key_check'")
    with Ledger.open(books / "forged.ledger", key=KEY) as ledger:
        assert ledger.verify().problems == (
            "what the ledger says about itself was changed",
            "release 1: the entry was not made with this key",
            *(f"row {row} of the log was not made with this key" for row in (1, 2, 3)),
        )
        with pytest.raises(LedgerError, match=r"damaged: what the ledger says about itself was changed; release 1: "):
            ledger.load()
    with Ledger.open(books / "forged.ledger", key=None) as ledger:
        assert ledger.verify().holds


def test_the_folders_of_the_releases_are_compared(books: Books, tmp_path: Path) -> None:
    folder = tmp_path / "releases"
    data = b"age,illness\n*,flu\n*,flu\n"
    digest = hashlib.sha256(data).hexdigest()
    with new(books / "x.ledger") as ledger:
        publish(ledger, [0, 0], name="spring", output_digest=digest, files={"data.csv": digest})
        publish(ledger, [0, 0], name="summer", output_digest=digest, files={"data.csv": digest})
        ledger.begin(draft(ledger, [0, 0], name="autumn"))
        assert marks(ledger, folder) == ["missing 0001-spring", "missing 0002-summer"]
        for name in ("0001-spring", "0002-summer"):
            (folder / "s" / name).mkdir(parents=True)
            (folder / "s" / name / "data.csv").write_bytes(data)
        (folder / "notes-2026").mkdir()
        (folder / "0003-of-another-series").mkdir()
        (folder / "s" / "notes").mkdir()
        assert ledger.verify(folder).holds
        (folder / "s" / "0002-summer" / "data.csv").write_bytes(data + b"*,none\n")
        (folder / "s" / "0009-unknown").mkdir()
        assert [mark.rsplit(" ", 1)[0] for mark in marks(ledger, folder)] == [
            "changed 0002-summer",
            "unknown 0009-unknown",
        ]
        said = ledger.verify(folder).problems
        assert "release 2 is not what was recorded (data.csv); put the folder back as it was published" in said[0]
        assert "0009-unknown: is a release that the ledger does not know: the ledger is older than" in said[1]
        assert said[2] == "release 2: the data have 3 rows, and 2 were recorded"


def test_trouble_that_is_accepted_is_no_trouble_until_it_is_another(books: Books, tmp_path: Path) -> None:
    folder = tmp_path / "releases"
    with new(books / "x.ledger") as ledger:
        publish(ledger, [0, 0], name="spring")
        (folder / "s" / "0002-lost").mkdir(parents=True)
        ledger.accept(ledger.troubles(folder))
        assert marks(ledger, folder) == []
        assert ledger.log()[-1].action == "loss accepted"
        (folder / "s" / "0002-lost" / "data.csv").write_text("x")
        assert [mark.split()[0] for mark in marks(ledger, folder)] == ["unknown"]
        assert ledger.verify().holds


def marks(ledger: Ledger, folder: Path) -> list[str]:
    return [trouble.mark for trouble in ledger.troubles(folder)]
