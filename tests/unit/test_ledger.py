"""A ledger gives back what was recorded, refuses what does not fit, and keeps no secret it should not."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import ledgers
from books import Books, tamper
from ledgers import DOMAINS, KEY, NOBODY, SECRET, draft, new, publish, three_releases
from sequester.domain.kinds.code import from_codes
from sequester.domain.tree import from_values
from sequester.errors import Busy, LedgerError, StalePlan
from sequester.ledger import Key, Ledger, WaitingList, duck
from sequester.ledger.chain import facts_to_seal
from series import axis


def test_a_new_ledger_knows_its_series_and_nobody(books: Books) -> None:
    with new(books / "x.ledger", series="hospital") as ledger:
        state = ledger.load()
        assert (ledger.series, ledger.fingerprint, ledger.policy_text) == ("hospital", "f", "k: 2")
        assert ledger.place == books / "x.ledger"
        assert (ledger.releases(), ledger.pending, state.people, state.releases) == ([], None, 0, ())
        assert (state.head, state.member.tolist()) == (ledger.head, [])
        assert [event.action for event in ledger.log()] == ["created"]


def test_what_is_recorded_comes_back(books: Books) -> None:
    three_releases(books / "x.ledger").close()
    with Ledger.open(books / "x.ledger", key=KEY, read_only=True) as ledger:
        state = ledger.load()
        assert state.people == 9
        members = [state.path[state.trajectory, number].tolist() for number in range(3)]
        assert members == [
            [0, 0, 1, 1, 0, -1, -1, -1, -1],
            [0, 0, 0, -1, 1, 1, 1, -1, -1],
            [1, 1, 0, 0, -1, 1, 0, 0, 1],
        ]
        assert state.member.tolist() == members[2]
        assert state.values.tolist() == [[0, 1, 2, 3, 0, 1, 2, 3, 0], [0, 1, 2, 0, 1, 2, 0, 1, 2]]
        assert state.joined.tolist() == [1] * 5 + [2] * 2 + [3] * 2
        assert (state.quasi, state.sensitive) == (ledgers.QUASI, ledgers.SENSITIVE)
        first = state.releases[0]
        assert first.lo.tolist() == [[0, 1], [0, 1]]
        assert first.hi.tolist() == [[2, 3], [2, 3]]
        assert first.size.tolist() == [3, 2]
        assert [counts.tolist() for counts in first.counts] == [[[2, 1, 0, 0], [0, 0, 1, 1]], [[1, 2, 0], [1, 0, 1]]]
        assert first.cell_codes.T.tolist() == [[0, 0], [0, 1], [1, 1], [2, 2], [3, 0]]


def test_insensitive_cells_come_back_as_they_were_last_published(books: Books, tmp_path: Path) -> None:
    small, large = from_values(["x", "y"], missing=True), from_values(["w", "x", "y"], missing=True)
    with new(books / "x.ledger") as ledger:
        columns = {"insensitive": ("bed",), "domains": {**DOMAINS, "bed": small}}
        publish(ledger, [0, 0, 1, 1], **columns, plain=np.array([[0, 1, 2, 1]], np.int32))
        columns["domains"] = {**DOMAINS, "bed": large}
        publish(ledger, [0, 0, -1, 0, 0], **columns, plain=np.array([[1, 3, 0, 0, 2]], np.int32))
        state = ledger.load()
        assert state.insensitive == ledger.releases()[0].insensitive == ("bed",)
        # Who is absent keeps what she had, in the domain of now.
        assert [large.names[0][code] for code in state.plain[0]] == ["x", "missing", "missing", "w", "y"]
        assert state.values.shape == (2, 5)
        assert ledger.verify().holds
        ledger.export(tmp_path / "export")
    with Ledger.import_(tmp_path / "export", books / "y.ledger", KEY, accept_loss=True) as again:
        assert again.load().plain.tolist() == state.plain.tolist()


def test_the_chain_covers_insensitive_cells(books: Books) -> None:
    path = books / "x.ledger"
    domains = {**DOMAINS, "bed": from_values(["x", "y"])}
    with new(path) as ledger:
        publish(ledger, [0, 0], insensitive=("bed",), domains=domains, plain=np.array([[0, 1]], np.int32))
    tamper(path, "UPDATE people SET codes = [codes[1], codes[2], 0]")
    with Ledger.open(path, key=KEY) as ledger:
        assert ledger.verify().problems == ("release 1: what is recorded was changed",)


def test_insensitive_columns_of_a_series_stay_the_same(books: Books) -> None:
    domains = {**DOMAINS, "bed": from_values(["x", "y"])}
    with new(books / "x.ledger") as ledger:
        publish(ledger, [0, 0])
        with pytest.raises(ValueError, match="attributes are not those of the releases before"):
            publish(ledger, [0, 0], insensitive=("bed",), domains=domains, plain=np.array([[0, 1]], np.int32))
        with pytest.raises(ValueError, match="plain has shape"):
            publish(ledger, [0, 0], insensitive=("bed",), domains=domains)
        with pytest.raises(ValueError, match="a value is not in its domain"):
            publish(ledger, [0, 0], insensitive=("bed",), domains=domains, plain=np.array([[0, 2]], np.int32))


def test_entries_say_everything_about_a_release(books: Books) -> None:
    with three_releases(books / "x.ledger") as ledger:
        one, _, three = ledger.releases()
        assert (one.number, one.name, one.status, one.people, one.records, one.classes) == (
            1,
            "release 1",
            "published",
            5,
            5,
            2,
        )
        assert (one.seed, one.summary, one.fingerprint, one.policy_text) == (2**70, {"k": 2}, "f", "k: 2")
        assert (three.recipient, three.purpose, one.recipient) == ("university", "study", None)
        assert (three.people, three.records, ledger.head) == (9, 8, three.hash)


def test_the_queue_and_the_retained_are_those_of_the_last_release(books: Books) -> None:
    with new(books / "x.ledger") as ledger:
        publish(ledger, [0, 0, 0])
        waiting = ledger.identify(pa.array(["w2", "w1"]))
        publish(ledger, [0, 0, 0], retained=np.array([2, 0]), queue=WaitingList(waiting, np.array([2, 1], np.int32)))
        state = ledger.load()
        assert dict(zip(state.queue.hashes.to_pylist(), state.queue.since.tolist(), strict=True)) == {
            waiting[0].as_py(): 2,
            waiting[1].as_py(): 1,
        }
        assert state.retained.tolist() == [0, 2]
        publish(ledger, [0, 0, 0])
        assert (len(ledger.load().queue), len(ledger.load().retained)) == (0, 0)


def test_values_that_change_are_those_of_the_last_release(books: Books) -> None:
    with new(books / "x.ledger") as ledger:
        publish(ledger, [0, 0, 0], values=np.array([[0, 1, 2], [0, 0, 0]], np.int32))
        publish(ledger, [0, 0, -1], values=np.array([[3, 1, 0], [0, 2, 0]], np.int32))
        assert ledger.load().values.tolist() == [[3, 1, 2], [0, 2, 0]]
        publish(ledger, [0, -1, 0], values=np.array([[0, 0, 1], [0, 0, 0]], np.int32))
        state = ledger.load()
        assert state.values.tolist() == [[0, 1, 1], [0, 0, 0]]
        assert state.releases[1].cell_codes.T.tolist() == [[1, 2], [3, 0]]
        assert ledger.verify().holds


def test_a_series_may_have_no_sensitive_attribute(books: Books) -> None:
    with new(books / "x.ledger") as ledger:
        for member in ([0, 0, 1], [1, 0, 0, 1]):
            publish(ledger, member, sensitive=(), values=np.zeros((0, len(member)), np.int32))
        state = ledger.load()
        assert (state.values.shape, state.releases[1].counts, state.releases[1].size.tolist()) == ((0, 4), (), [2, 2])
        assert ledger.verify().holds


def test_domains_may_gain_leaves_and_codes_follow(books: Books) -> None:
    before = {**DOMAINS, "illness": from_values(["flu", "none"]), "zip": from_codes(["02138"], length=5)}
    after = {
        **before,
        "illness": from_values(["asthma", "flu", "none"]),
        "zip": from_codes(["02137", "02138"], length=5),
    }
    box = {"lo": np.zeros((2, 1), np.int32), "hi": np.zeros((2, 1), np.int32)}
    with new(books / "x.ledger") as ledger:
        publish(ledger, [0, 0], domains=before, values=np.array([[0, 1], [0, 0]], np.int32), **box)
        publish(ledger, [0, 0, 0], domains=after, values=np.array([[1, 2, 0], [0, 0, 0]], np.int32), **box)
        state = ledger.load()
        assert state.values[0].tolist() == [1, 2, 0]
        assert state.releases[0].domains["illness"].leaves.tolist() == ["flu", "none"]
        assert state.releases[1].domains["illness"].leaves.tolist() == ["asthma", "flu", "none"]
        assert state.releases[0].domains["age"] is state.domains["age"]
        assert ledger.verify().holds
        rows = ledger._store.connection.execute("SELECT release, attribute FROM domains ORDER BY release, attribute")
        assert rows == [(1, "age"), (1, "illness"), (1, "ward"), (1, "zip"), (2, "illness"), (2, "zip")]


def test_a_domain_may_not_lose_leaves(books: Books) -> None:
    with new(books / "x.ledger") as ledger:
        publish(ledger, [0, 0])
        smaller = {**DOMAINS, "age": axis(8), "zip": axis(4)}
        with pytest.raises(LedgerError, match=r"column 'age': the domain lost values.*\n.*column 'zip'"):
            ledger.begin(draft(ledger, [0, 0], domains=smaller))


def test_people_are_recognised_by_their_ids_however_they_are_written(books: Books) -> None:
    with new(books / "x.ledger") as ledger:
        texts = ledger.identify(pa.array(["11", " 7 ", "x"]))
        assert ledger.identify(pa.array([11, 7])).equals(texts[:2])
        assert ledger.identify(pa.array([11.0, 7.0])).equals(texts[:2])
        assert ledger.identify(pa.chunked_array([["11"], ["7", "x"]])).equals(texts)
        assert ledger.identify(pa.array(["7", "x"]).dictionary_encode()).equals(texts[1:])


def test_match_finds_those_published_before(books: Books) -> None:
    with three_releases(books / "x.ledger") as ledger:
        found = ledger.match(ledger.identify(pa.array(["p8", "somebody", "p0", "w1"])))
        assert found.tolist() == [8, -1, 0, -1]
        assert ledger.match(NOBODY).tolist() == []


def test_a_digest_changes_with_every_cell_and_person(books: Books) -> None:
    with new(books / "x.ledger") as ledger:
        one, two = ledger.identify(pa.array(["a", "a"])), ledger.identify(pa.array(["a", "b"]))
        same = ledger.digest(one, [pa.array(["x", "x"]), pa.array([1, 1])])
        assert same[0] == same[1]
        cells: list[list[list[str | None]]] = [
            [["1", "12"], ["23", "3"]],
            [["", None]],
            [["x", "x "]],
            [["a", "b"], ["b", "a"]],
        ]
        for columns in cells:
            found = ledger.digest(one, [pa.array(column) for column in columns])
            assert found[0] != found[1]
        assert len(set(ledger.digest(two, [pa.array(["x", "x"])]).tolist())) == 2


def test_without_the_key_nobody_is_recognised_and_nothing_recorded(books: Books) -> None:
    three_releases(books / "x.ledger").close()
    with Ledger.open(books / "x.ledger", key=None) as ledger:
        assert len(ledger.releases()) == 3
        assert ledger.verify().holds
        with pytest.raises(LedgerError, match="needs the key"):
            ledger.identify(pa.array(["a"]))
    with new(books / "y.ledger") as other:
        made = draft(other, [0, 0])
    with Ledger.open(books / "y.ledger", key=None) as ledger, pytest.raises(LedgerError, match="needs the key"):
        ledger.begin(made)


def test_a_wrong_key_and_a_wrong_series_are_refused(books: Books) -> None:
    new(books / "x.ledger", series="mine").close()
    with pytest.raises(LedgerError, match="the key is not the one of this ledger") as error:
        Ledger.open(books / "x.ledger", key=Key.of_text("another secret altogether"))
    assert "another secret" not in str(error.value)
    with pytest.raises(LedgerError, match="ledger of another series"):
        Ledger.open(books / "x.ledger", key=KEY, series="yours")
    Ledger.open(books / "x.ledger", key=KEY, series="mine").close()


def test_the_key_is_nowhere_in_the_files(tmp_path: Path) -> None:
    with three_releases(tmp_path / "x.ledger") as ledger:
        ledger.export(tmp_path / "export")
    inner, outer = KEY.pads
    for file in tmp_path.rglob("*"):
        if file.is_file():
            stored = file.read_bytes()
            for secret in (
                SECRET.encode(),
                SECRET.encode().hex().encode(),
                inner[:26],
                outer[:26],
                KEY.cipher.encode(),
            ):
                assert secret not in stored


def test_no_person_id_is_in_the_ledger(tmp_path: Path) -> None:
    with new(tmp_path / "x.ledger") as ledger:
        ids = pa.array(["CANARY-ONE", "CANARY-TWO"])
        hashes = ledger.identify(ids)
        publish(ledger, [0, 0], newcomers=hashes, digests=ledger.digest(hashes, [ids])[None])
    assert b"CANARY" not in (tmp_path / "x.ledger").read_bytes()


@pytest.mark.skipif(os.name != "posix", reason="needs the rights of Unix files")
def test_only_the_owner_may_read_it(tmp_path: Path) -> None:
    with three_releases(tmp_path / "x.ledger") as ledger:
        ledger.export(tmp_path / "export")
    files = [tmp_path / "x.ledger", *(tmp_path / "export").iterdir()]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_a_begun_release_is_pending_until_it_is_finished(books: Books) -> None:
    with new(books / "x.ledger") as ledger:
        entry = ledger.begin(draft(ledger, [0, 0]))
        assert (entry.status, ledger.pending, ledger.head) == ("begun", entry, entry.hash)
        with pytest.raises(LedgerError, match="release 1 was begun and not finished"):
            ledger.begin(draft(ledger, [0, 0]))
        ledger.finish(1)
        ledger.finish(1)
        assert ledger.pending is None
        assert ledger.releases()[0] == replace(entry, status="published")
        assert [event.action for event in ledger.log()] == ["created", "begun", "published"]
        with pytest.raises(LedgerError, match="no release 2"):
            ledger.finish(2)


def test_a_withdrawn_release_leaves_only_a_trace_in_the_log(books: Books) -> None:
    with three_releases(books / "x.ledger") as ledger:
        before, head = ledger.load(), ledger.head
        entry = ledger.begin(draft(ledger, [0] * 12, domains={**DOMAINS, "age": axis(11)}))
        ledger.withdraw(4)
        after = ledger.load()
        assert (ledger.head, after.people, len(after.domains["age"].leaves)) == (head, 9, 9)
        assert np.array_equal(before.path, after.path)
        assert (ledger.log()[-1].action, ledger.log()[-1].detail) == ("withdrawn", entry.hash)
        assert ledger.verify().holds
        publish(ledger, [0] * 10)
        assert ledger.load().people == 10
        assert ledger.verify().holds


def test_only_what_is_not_visible_is_withdrawn(books: Books) -> None:
    with three_releases(books / "x.ledger") as ledger:
        for number in (1, 3, 4):
            with pytest.raises(LedgerError, match=f"release {number} is not one that was begun last"):
                ledger.withdraw(number)


def test_a_stale_draft_is_refused(books: Books) -> None:
    with new(books / "x.ledger") as ledger:
        stale = draft(ledger, [0, 0])
        publish(ledger, [0, 0])
        with pytest.raises(StalePlan, match="moved on") as error:
            ledger.begin(replace(stale, name="another"))
        assert error.value.exit_code == 5
        assert len(ledger.releases()) == 1


def test_two_releases_do_not_have_one_name(books: Books) -> None:
    with new(books / "x.ledger") as ledger:
        publish(ledger, [0, 0], name="spring")
        with pytest.raises(LedgerError, match="of this name"):
            ledger.begin(draft(ledger, [0, 0], name="spring"))


def test_a_draft_that_does_not_fit_together_is_refused_with_all_reasons(books: Books) -> None:
    with three_releases(books / "x.ledger") as ledger:
        good = draft(ledger, [0] * 10)
        values, lo = good.values.copy(), good.lo.copy()
        values[0, 2], lo[1, 0] = 9, 4
        twice = ledger.identify(pa.array(["n", "n"]))
        known = ledger.identify(pa.array(["p1"]))
        wrong = [
            ({"values": good.values[:1]}, "values has shape"),
            ({"member": good.member[:3]}, "newcomers has shape.*digests has shape"),
            ({"domains": {}}, "an attribute has no domain"),
            ({"newcomers": pa.array([b"short"])}, "identify"),
            ({"member": good.member + 1}, "in a class that is not there"),
            ({"member": good.member - 1}, "a class is empty; nobody is in the release; a newcomer is in no class"),
            ({"values": values, "lo": lo}, "a box is not in its domain; a value is not in its domain"),
            ({"retained": np.array([9])}, "retained was not published before"),
            ({"queue": WaitingList(twice, np.array([4, 4], np.int32))}, "somebody is twice among the queue"),
            ({"quasi": ("zip", "age")}, "the attributes are not those"),
            ({"digests": np.zeros((2, 1), np.int64)}, "not as many digests"),
            ({"newcomers": known}, "a newcomer was published before"),
        ]
        for changes, reason in wrong:
            with pytest.raises(ValueError, match=reason):
                ledger.begin(replace(good, **changes))  # type: ignore[arg-type]
        assert len(ledger.releases()) == 3
        ledger.begin(good)


def test_an_existing_file_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "x.ledger").write_text("mine")
    with pytest.raises(LedgerError, match="exists already"):
        new(tmp_path / "x.ledger")
    assert (tmp_path / "x.ledger").read_text() == "mine"


def test_creating_leaves_nothing_else_behind(tmp_path: Path) -> None:
    new(tmp_path / "deep" / "x.ledger").close()
    assert [file.name for file in tmp_path.rglob("*") if file.is_file()] == ["x.ledger"]


def test_a_ledger_that_is_not_there_is_an_error(books: Books) -> None:
    with pytest.raises(LedgerError, match=r"x(\.ledger)?: there is no ledger here"):
        Ledger.open(books / "x.ledger", key=KEY)


def test_a_closed_ledger_says_so(books: Books) -> None:
    ledger = new(books / "x.ledger")
    ledger.close()
    ledger.close()
    with pytest.raises(LedgerError, match="the ledger is closed"):
        ledger.load()


def test_a_file_of_something_else_is_no_ledger(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no ledger" * 1000)
    duckdb.connect(tmp_path / "other.db").close()
    for name, reason in (("text", "this is no ledger"), ("other.db", "a DuckDB file, but no ledger")):
        with pytest.raises(LedgerError, match=reason):
            Ledger.open(tmp_path / name, key=KEY)


def test_a_ledger_reached_by_a_link_is_the_same(tmp_path: Path) -> None:
    new(tmp_path / "x.ledger").close()
    (tmp_path / "link").symlink_to(tmp_path / "x.ledger")
    with Ledger.open(tmp_path / "link", key=KEY) as ledger:
        publish(ledger, [0, 0])
        with pytest.raises(Busy, match="another command has the ledger"):
            Ledger.open(tmp_path / "x.ledger", key=KEY, timeout=0)
    with Ledger.open(tmp_path / "x.ledger", key=KEY) as ledger:
        assert len(ledger.releases()) == 1


def test_names_with_quotes_are_only_names(books: Books) -> None:
    with new(books / 'it\'s "mine".ledger', series="o'hara") as ledger:
        publish(ledger, [0, 0], name="x'; DROP TABLE releases; --")
        assert ledger.releases()[0].name == "x'; DROP TABLE releases; --"
        assert ledger.verify().holds


@pytest.mark.parametrize(
    ("version", "reason"),
    [("99", "a newer Sequester; upgrade the package"), ("4", "an older Sequester; open it with that version")],
)
@pytest.mark.parametrize("read_only", [True, False])
def test_a_ledger_of_another_version_is_refused(books: Books, version: str, reason: str, read_only: bool) -> None:
    with new(books / "x.ledger") as ledger:
        facts = {**ledger._store.facts(), "schema": version}
    seal = KEY.sign("meta", facts_to_seal(facts)).hex()
    for fact, value in (("schema", version), ("seal", seal)):
        tamper(books / "x.ledger", f"UPDATE meta SET value = '{value}' WHERE fact = '{fact}'")
    with pytest.raises(LedgerError, match=reason):
        Ledger.open(books / "x.ledger", key=KEY, read_only=read_only)


def test_an_encrypted_ledger_cannot_be_read_without_its_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The cipher that DuckDB brings along is good enough for a test; for real ledgers it is OpenSSL or nothing.
    weak = "SET force_mbedtls_unsafe = 'true'"
    monkeypatch.setattr(duck, "load_cipher", lambda database: database.execute(weak).fetchall())
    path = tmp_path / "x.ledger"
    with new(path, encrypted=True, policy_text="CANARY " * 50) as ledger:
        publish(ledger, [0, 0, 1, 1])
        assert ledger.encrypted
    assert b"CANARY" not in path.read_bytes()
    with pytest.raises(LedgerError, match="the ledger is encrypted; its key is needed"):
        Ledger.open(path, key=None)
    with pytest.raises(LedgerError, match="the key is not the one of this ledger"):
        Ledger.open(path, key=Key.of_text("another secret altogether"))
    with Ledger.open(path, key=KEY) as ledger:
        publish(ledger, [0, 0, 1, 1])
        assert ledger.verify().holds
    monkeypatch.undo()
    with Ledger.open(path, key=KEY, read_only=True) as ledger:
        assert len(ledger.releases()) == 2
        assert ledger.encrypted


def test_encryption_that_is_not_there_is_said_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = f"SET extension_directory = '{tmp_path / 'none'}'"

    def load(database: duckdb.DuckDBPyConnection) -> None:
        database.execute(nowhere).fetchall()
        database.execute("LOAD httpfs").fetchall()

    monkeypatch.setattr(duck, "load_cipher", load)
    with pytest.raises(LedgerError, match="INSTALL httpfs"):
        new(tmp_path / "x.ledger", encrypted=True)
    assert list(tmp_path.iterdir()) == []


def test_reprs_tell_nothing_private(books: Books) -> None:
    with three_releases(books / "x.ledger") as ledger:
        state = ledger.load()
        assert repr(ledger) == "<Ledger of s>"
        assert repr(state) == "<State: 9 people, 8 trajectories over 3 releases>"
        assert repr(state.releases[0]) == "<Memory of release 1: 5 rows in 2 classes>"
        assert repr(draft(ledger, [0] * 9)) == "<Draft: 9 people, 1 classes>"
        assert str(2**70) not in repr(ledger.releases()[0])
