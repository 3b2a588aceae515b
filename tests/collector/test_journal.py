"""The journal tells three cases apart after any crash: an answer, an intent alone, nothing."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lastcall.collector import journal as journals
from lastcall.collector.journal import KNOWN_FOR, NEWEST_OF_EACH_CONNECTION, Journal
from lastcall.collector.state import StateFolder, fresh_id
from lastcall.errors import Invalid, Unavailable
from lastcall.protocol.messages import ClaimRef
from lastcall.protocol.outcomes import Outcome

ACCOUNT = "0" + "1" * 25
CONNECTION = fresh_id()


class WallClock:
    """A wall clock that a test sets; nothing here waits."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, tzinfo=UTC)

    def boot(self) -> float:
        return self.now.timestamp()

    def wall(self) -> datetime:
        return self.now

    async def sleep(self, delay: timedelta) -> None:
        raise AssertionError("the journal never waits")


def claim(nonce: str, connection: str = CONNECTION) -> ClaimRef:
    return ClaimRef(
        club_id=fresh_id(),
        connection_id=connection,
        epoch=datetime(2026, 1, 1, 0, 0, 0, 1, UTC),
        fencing_token=3,
        operation_id=fresh_id(),
        nonce=nonce.ljust(16, "0"),
    )


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder


async def three_submissions(folder: Path, clock: WallClock) -> tuple[ClaimRef, ClaimRef, ClaimRef]:
    """One reported, one answered, one intent alone, in this order."""
    journal = Journal.open(folder, clock)
    first, second, third = claim("a"), claim("b"), claim("c")
    for each in (first, second):
        await journal.intend(ACCOUNT, each, "assign_role")
        await journal.answered(each.nonce, Outcome.SUCCEEDED, None, {"roleId": "grol_1"})
    await journal.reported(first.nonce)
    await journal.intend(ACCOUNT, third, "ban_member")
    journal.close()
    return first, second, third


async def test_a_restart_finds_answers_intents_and_nothing_else(tmp_path: Path) -> None:
    clock = WallClock()
    first, second, third = await three_submissions(tmp_path, clock)
    journal = Journal.open(tmp_path, clock)
    answered, alone = journal.unreported(ACCOUNT)
    assert answered.intent.claim == second
    assert answered.answer is not None
    assert answered.answer.outcome is Outcome.SUCCEEDED
    assert answered.answer.result == {"roleId": "grol_1"}
    assert alone.intent.claim == third
    assert alone.answer is None
    assert [entry.nonce for entry in journal.known(ACCOUNT)] == [first.nonce, second.nonce, third.nonce]
    assert journal.unreported(fresh_id()) == []
    assert journal.is_intact
    journal.close()


async def test_an_untouched_journal_keeps_its_id(tmp_path: Path) -> None:
    clock = WallClock()
    await three_submissions(tmp_path, clock)
    ids = set()
    for _ in range(3):
        journal = Journal.open(tmp_path, clock)
        ids.add(journal.id)
        journal.close()
    assert len(ids) == 1


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(share=st.floats(0, 1))
def test_cut_at_any_place_it_opens_with_what_was_whole(tmp_path: Path, share: float) -> None:
    clock = WallClock()
    folder = tmp_path / "folder"
    folder.mkdir(exist_ok=True)
    (folder / "journal").unlink(missing_ok=True)
    asyncio.run(three_submissions(folder, clock))
    path = folder / "journal"
    content = path.read_bytes()
    before = Journal.open(folder, clock)
    before.close()
    path.write_bytes(content[: int(share * len(content))])
    whole = content[: int(share * len(content))].count(b"\n")
    is_whole = content[: int(share * len(content))].endswith(b"\n")

    journal = Journal.open(folder, clock)
    journal.close()

    intents = [0, 0, 1, 1, 2, 2, 2, 3][whole]
    answers = [0, 0, 0, 1, 1, 2, 2, 2][whole]
    known = journal.known(ACCOUNT)
    assert len(known) == intents
    assert sum(entry.is_answered for entry in known) == answers
    assert (journal.id == before.id) == is_whole, "a journal that lost its end vouches for nothing before it"
    assert journal.is_intact == (is_whole or not content[: int(share * len(content))])


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(share=st.floats(0, 0.999), bit=st.integers(0, 7))
def test_any_flipped_bit_is_refused_or_costs_the_journal_its_id(
    tmp_path: Path, share: float, bit: int
) -> None:
    clock = WallClock()
    folder = tmp_path / "folder"
    folder.mkdir(exist_ok=True)
    (folder / "journal").unlink(missing_ok=True)
    asyncio.run(three_submissions(folder, clock))
    before = Journal.open(folder, clock)
    before.close()
    path = folder / "journal"
    content = bytearray(path.read_bytes())
    content[int(share * len(content))] ^= 1 << bit
    path.write_bytes(content)
    try:
        journal = Journal.open(folder, clock)
    except Invalid:
        assert path.read_bytes() == content, "a refused journal is left as it was found"
    else:
        journal.close()
        assert journal.id != before.id
        assert not journal.is_intact


async def test_damage_in_the_middle_is_refused_with_the_way_out(tmp_path: Path) -> None:
    clock = WallClock()
    await three_submissions(tmp_path, clock)
    path = tmp_path / "journal"
    lines = path.read_bytes().split(b"\n")
    lines[2] = lines[2][:40] + b"?" + lines[2][41:]
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(Invalid, match="is damaged at byte") as refused:
        Journal.open(tmp_path, clock)
    assert refused.value.code == "journal_damaged"
    assert "Move it away" in refused.value.advice


async def test_a_start_drops_what_was_reported_long_ago_but_the_newest_of_each_connection(
    tmp_path: Path,
) -> None:
    clock = WallClock()
    journal = Journal.open(tmp_path, clock)
    busy, quiet = fresh_id(), fresh_id()
    kept_for_ever = claim("open", busy)
    await journal.intend(ACCOUNT, kept_for_ever, "ban_member")
    for number in range(NEWEST_OF_EACH_CONNECTION + 5):
        each = claim(f"n{number:03}x", busy)
        await journal.intend(ACCOUNT, each, "assign_role")
        await journal.answered(each.nonce, Outcome.SUCCEEDED, None, {})
        await journal.reported(each.nonce)
    only = claim("quiet", quiet)
    await journal.intend(ACCOUNT, only, "assign_role")
    await journal.answered(only.nonce, Outcome.REJECTED, "already_member", {})
    await journal.reported(only.nonce)
    assert len(journal.known(ACCOUNT)) == NEWEST_OF_EACH_CONNECTION + 7, "all of the last minutes"
    journal.close()
    size = (tmp_path / "journal").stat().st_size

    clock.now += KNOWN_FOR + timedelta(seconds=1)
    again = Journal.open(tmp_path, clock)
    again.close()
    nonces = [entry.nonce for entry in again.known(ACCOUNT)]
    assert nonces[0] == kept_for_ever.nonce
    assert nonces[-1] == only.nonce
    assert len(nonces) == NEWEST_OF_EACH_CONNECTION + 2
    assert (tmp_path / "journal").stat().st_size < size


async def test_hello_tells_no_more_than_the_server_takes_and_something_of_every_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An account may have served any number of connections in its life."""
    monkeypatch.setattr(journals, "SUBMISSIONS_MOST", 9)
    clock = WallClock()
    journal = Journal.open(tmp_path, clock)
    connections = [fresh_id() for _ in range(6)]
    made = [claim(f"{place}n{n}", one) for place, one in enumerate(connections) for n in range(3)]
    for each in made:
        await journal.intend(ACCOUNT, each, "assign_role")
        if each is not made[0]:
            await journal.answered(each.nonce, Outcome.SUCCEEDED, None, {})
            await journal.reported(each.nonce)
    clock.now += KNOWN_FOR + timedelta(seconds=1)
    told = journal.known(ACCOUNT)
    journal.close()
    newest = {each.nonce for each in made[2::3]}
    assert len(told) == 9
    assert {made[0].nonce} | newest < {one.nonce for one in told}
    assert [one.nonce for one in told] == [
        each.nonce for each in made if each.nonce in {o.nonce for o in told}
    ]


FULL_DISK = """
import asyncio, resource, signal, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from test_journal import ACCOUNT, WallClock, claim
from lastcall.collector.journal import Journal
from lastcall.errors import Unavailable

async def main():
    folder, clock = Path({folder!r}), WallClock()
    journal = Journal.open(folder, clock)
    size = journal.path.stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 40, resource.RLIM_INFINITY))
    try:
        await journal.intend(ACCOUNT, claim("a"), "ban_member")
    except Unavailable as full:
        print(full.code, full.sentence)
    assert journal.known(ACCOUNT) == ()
    assert journal.path.stat().st_size == size
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    await journal.intend(ACCOUNT, claim("b"), "ban_member")
    assert len(journal.known(ACCOUNT)) == 1
    journal.close()

asyncio.run(main())
"""


def test_a_file_that_may_not_grow_refuses_the_intent_and_leaves_no_half_record(tmp_path: Path) -> None:
    """The kernel refuses the write here by a limit on the file's size, as it does on a full disk."""
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK.format(tests=str(Path(__file__).parent), folder=str(tmp_path))],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("journal_full The disk is full")
    journal = Journal.open(tmp_path, WallClock())
    journal.close()
    assert journal.is_intact
    assert [entry.nonce for entry in journal.known(ACCOUNT)] == [claim("b").nonce]


async def test_a_disk_that_cannot_sync_takes_no_further_intent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal.open(tmp_path, WallClock())

    def broken(_descriptor: int) -> None:
        raise OSError(5, os.strerror(5))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", broken)
        with pytest.raises(Unavailable, match="nothing is sent"):
            await journal.intend(ACCOUNT, claim("a"), "ban_member")
    with pytest.raises(Unavailable, match="Input/output error"):
        await journal.intend(ACCOUNT, claim("b"), "ban_member")
    assert journal.known(ACCOUNT) == ()
    journal.close()


def test_a_second_process_is_told_who_holds_the_folder(tmp_path: Path) -> None:
    held = StateFolder.open(tmp_path / "state")
    with pytest.raises(Unavailable, match=f"in use by the process {os.getpid()}"):
        StateFolder.open(tmp_path / "state")
    held.close()
    again = StateFolder.open(tmp_path / "state")
    assert again.worker_id == held.worker_id
    again.close()
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Unavailable, match="cannot be used") as refused:
        StateFolder.open(tmp_path / "file" / "state")
    assert refused.value.advice


def test_a_damaged_worker_id_is_refused(tmp_path: Path) -> None:
    StateFolder.open(tmp_path).close()
    (tmp_path / "worker-id").write_text("nonsense")
    with pytest.raises(Invalid, match="is damaged"):
        StateFolder.open(tmp_path)
    (tmp_path / "worker-id").unlink()
    StateFolder.open(tmp_path).close()


def test_a_disk_that_takes_nothing_at_the_start_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(Unavailable, match="No space left"):
        StateFolder.open(tmp_path)
    monkeypatch.undo()
    StateFolder.open(tmp_path).close()


def test_a_journal_that_is_no_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    with pytest.raises(Unavailable, match="cannot be used: Is a directory"):
        Journal.open(tmp_path, WallClock())


async def test_a_copied_folder_vouches_for_nothing_and_forgets_nothing(tmp_path: Path) -> None:
    """Twin: under the same id, the copy's silence would settle as *never sent* what the original sends."""
    _, answered, alone = await three_submissions(made(tmp_path / "state"), WallClock())
    original = Journal.open(tmp_path / "state", WallClock())
    shutil.copytree(tmp_path / "state", tmp_path / "copy")
    (tmp_path / "state").rename(tmp_path / "moved")
    copy, moved = Journal.open(tmp_path / "copy", WallClock()), Journal.open(tmp_path / "moved", WallClock())
    assert moved.id == original.id
    assert copy.id != original.id
    assert [entry.intent.claim for entry in copy.unreported(ACCOUNT)] == [answered, alone]
    assert Journal.open(tmp_path / "copy", WallClock()).id == copy.id
