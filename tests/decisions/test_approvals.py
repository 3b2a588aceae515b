"""What becomes of an approval, and who hears of it."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from tests.decisions.asks_kit import ANY, Desk, carrying, make_desk, only_one

from lastcall.clubs.life import archive_club
from lastcall.db.database import Database
from lastcall.decisions.approvals import asking, deciding, diagram
from lastcall.decisions.approvals.machine import Event, Status, transition
from lastcall.decisions.approvals.queries import approval_story, approvals_of_agent, approvals_page
from lastcall.decisions.listing import Which
from lastcall.decisions.registration import register
from lastcall.errors import Conflict, Invalid, LastcallError, NotAllowed, NotFound
from lastcall.people.actor import Actor


@pytest.fixture
async def desk(database: Database) -> Desk:
    register()
    return await make_desk(database)


async def approve(
    desk: Desk, approval_id: Any, actor: Actor | None = None, seen: int = 1, **more: Any
) -> Any:
    return await deciding.approve(
        desk.db, actor or desk.decider, desk.club_id, approval_id, seen_revision=seen, **more
    )


async def reject(desk: Desk, approval_id: Any, actor: Actor | None = None, seen: int = 1) -> None:
    await deciding.reject(
        desk.db, actor or desk.decider, desk.club_id, approval_id, seen_revision=seen, note="Not now."
    )


async def send_back(desk: Desk, approval_id: Any, actor: Actor | None = None, seen: int = 1) -> None:
    await deciding.request_revision(
        desk.db, actor or desk.decider, desk.club_id, approval_id, seen_revision=seen, note="Say when."
    )


async def change(desk: Desk, approval_id: Any, seen: int = 1, **more: Any) -> int:
    return await asking.resubmit(
        desk.db, desk.agent, desk.club_id, approval_id, seen_revision=seen, title="Hire two", body="", **more
    )


async def withdraw(desk: Desk, approval_id: Any) -> None:
    await asking.withdraw(desk.db, desk.agent, desk.club_id, approval_id)


async def test_the_asker_hears_of_every_outcome_and_of_what_is_said(desk: Desk) -> None:
    approved, rejected = await desk.ask(), await desk.ask()
    await asking.comment(desk.db, desk.second, desk.club_id, approved, "Who pays?")
    await asking.comment(desk.db, desk.agent, desk.club_id, approved, "The club.")
    await send_back(desk, approved)
    assert await change(desk, approved) == 2
    await approve(desk, approved, seen=2)
    await reject(desk, rejected)
    assert await desk.told() == [
        "approval.commented",
        "approval.revision_requested",
        "approval.approved",
        "approval.rejected",
    ]
    kinds = await desk.db.pool.fetch("select kind, data::text, approval_id from deliveries")
    assert not [row for row in kinds if "Hire" in row["data"]], "nothing of what it says"


async def test_what_was_said_and_what_it_said_before_stay_with_it(desk: Desk) -> None:
    approval_id = await desk.ask(ask=carrying("a"))
    await send_back(desk, approval_id)
    await change(desk, approval_id, effect_body={"line": "b"})
    async with desk.db.read() as tx:
        story = await approval_story(tx, desk.decider, desk.club_id, approval_id)
    assert [(one.body, one.is_revision_request) for one in story.comments] == [("Say when.", True)]
    assert [(one.revision, one.title, one.effect_body) for one in story.revisions] == [
        (1, "Write a line", {"line": "a"})
    ]
    assert (story.approval.title, story.approval.effect_body, story.approval.revision) == (
        "Hire two",
        {"line": "b"},
        2,
    )


def test_the_page_of_the_states_is_what_the_table_makes() -> None:
    root = Path(__file__).parents[2]
    assert (root / "docs/explanation/approval-states.md").read_text(encoding="utf-8") == diagram.page()


DO = {
    Event.APPROVE: approve,
    Event.REJECT: reject,
    Event.REQUEST_REVISION: send_back,
    Event.RESUBMIT: change,
    Event.WITHDRAW: withdraw,
}
"""How each event is brought about, by somebody who may."""
REACHED_BY = {
    Status.PENDING: None,
    Status.REVISION_REQUESTED: send_back,
    Status.APPROVED: approve,
    Status.REJECTED: reject,
    Status.WITHDRAWN: withdraw,
}
REPEATED = {
    (Status.APPROVED, Event.APPROVE),
    (Status.REJECTED, Event.REJECT),
    (Status.WITHDRAWN, Event.WITHDRAW),
}
"""The same person says the same again, and is answered the same."""


def expected(status: Status, event: Event) -> str:
    """What the table says of ``event`` in ``status``, in the words of ``outcome``."""
    if (move := transition(status, event)) is not None:
        return move.target
    return "the same" if (status, event) in REPEATED else "refused"


async def outcome(desk: Desk, status: Status, event: Event) -> str:
    """Where ``event`` led from ``status``: a status, ``the same`` for a row that nothing changed, or ``refused``."""
    approval_id = await desk.ask()
    if (reach := REACHED_BY[status]) is not None:
        await reach(desk, approval_id)
    before = await desk.row(approval_id)
    assert before["status"] == status
    try:
        await DO[event](desk, approval_id)
    except Conflict as refusal:
        is_kept = refusal.fresh.status is status and await desk.row(approval_id) == before
        return "refused" if is_kept else "refused, and changed"
    after = await desk.row(approval_id)
    return "the same" if after == before else str(after["status"])


async def test_the_services_do_what_the_table_says_and_nothing_else(desk: Desk) -> None:
    found = {(status, event): await outcome(desk, status, event) for status, event in product(Status, DO)}
    assert found == {(status, event): expected(status, event) for status, event in product(Status, DO)}


async def test_nobody_decides_their_own(desk: Desk) -> None:
    approval_id = await desk.ask(desk.decider)
    for attempt in (approve, reject, send_back):
        with pytest.raises(NotAllowed) as refusal:
            await attempt(desk, approval_id, desk.decider)
        assert refusal.value.code == "own_approval"
    await approve(desk, approval_id, desk.second)
    assert (await desk.row(approval_id))["decided_by"] == desk.second.person_id


async def test_who_may_not_decide_finds_nothing_but_their_own(desk: Desk) -> None:
    theirs, mine = await desk.ask(), await desk.ask(desk.host)
    for attempt in (approve, reject, send_back):
        with pytest.raises(NotFound):
            await attempt(desk, theirs, desk.host)
    with pytest.raises(NotFound):
        await asking.comment(desk.db, desk.host, desk.club_id, theirs, "Hello?")
    async with desk.db.read() as tx:
        with pytest.raises(NotFound):
            await approval_story(tx, desk.host, desk.club_id, theirs)
        with pytest.raises(NotFound):
            await approvals_page(tx, desk.host, desk.club_id, Which.WAITING)
        own = await approvals_page(tx, desk.host, desk.club_id, Which.MINE)
        of_agent = await approvals_of_agent(tx, desk.agent)
        waiting = await approvals_page(tx, desk.decider, desk.club_id, Which.WAITING)
    assert [one.id for one in own] == [mine]
    assert [one.id for one in of_agent] == [theirs]
    assert {one.id for one in waiting} == {mine, theirs}
    assert own[0].may == {Event.RESUBMIT, Event.WITHDRAW}
    assert waiting[0].may == {Event.APPROVE, Event.REJECT, Event.REQUEST_REVISION}


async def test_a_decision_is_about_the_revision_that_was_seen(desk: Desk) -> None:
    approval_id = await desk.ask()
    await change(desk, approval_id)
    for attempt in (approve, reject, send_back):
        with pytest.raises(Conflict) as refusal:
            await attempt(desk, approval_id, seen=1)
        assert (refusal.value.code, refusal.value.fresh.revision) == ("approval_moved", 2)
    assert await desk.status(approval_id) == "pending"


async def test_the_effect_is_done_with_the_approval_and_once(desk: Desk) -> None:
    approval_id = await desk.ask(ask=carrying("a"))
    assert await approve(desk, approval_id, note="Fine.") == {"line": "a"}
    assert await approve(desk, approval_id) == {"line": "a"}
    with pytest.raises(Conflict):
        await approve(desk, approval_id, desk.second)
    assert await desk.db.pool.fetchval("select count(*) from directory where kind = 'ledger'") == 1
    row = await desk.row(approval_id)
    assert (row["decision_note"], row["effect_result"]) == ("Fine.", '{"line": "a"}')


async def test_a_refused_effect_leaves_the_approval_waiting_and_nothing_done(desk: Desk) -> None:
    approval_id = await desk.ask(ask=carrying("a", refuse=True))
    with pytest.raises(Conflict) as refusal:
        await approve(desk, approval_id)
    assert refusal.value.code == "ledger_closed"
    assert await desk.status(approval_id) == "pending"
    assert await desk.db.pool.fetchval("select count(*) from directory where kind = 'ledger'") == 0
    assert await desk.told() == []


@pytest.mark.parametrize("effect", [asking.Carried("ledger", {}), asking.Carried("unheard_of", {})])
async def test_an_effect_is_judged_when_it_is_asked(desk: Desk, effect: asking.Carried) -> None:
    with pytest.raises(Invalid):
        await desk.ask(ask=asking.Ask("entry", "Write", effect=effect))


async def test_a_change_keeps_what_it_carries_and_adds_nothing(desk: Desk) -> None:
    plain, carried = await desk.ask(), await desk.ask(ask=carrying("a"))
    with pytest.raises(Invalid) as refusal:
        await change(desk, plain, effect_body={"line": "a"})
    assert refusal.value.code == "effect_fixed"
    with pytest.raises(Invalid):
        await change(desk, carried, effect_body={})
    await change(desk, carried)
    assert (await desk.row(carried))["effect_body"] == '{"line": "a"}'


async def test_an_archived_club_approves_nothing_but_lets_go(desk: Desk) -> None:
    approval_id, other = await desk.ask(desk.host), await desk.ask(desk.host)
    await archive_club(desk.db, None, desk.club_id)
    with pytest.raises(Conflict) as refusal:
        await approve(desk, approval_id)
    assert refusal.value.code == "club_inactive"
    await reject(desk, approval_id)
    await asking.withdraw(desk.db, desk.host, desk.club_id, other)
    assert [await desk.status(one) for one in (approval_id, other)] == ["rejected", "withdrawn"]
    with pytest.raises(Conflict):
        await desk.ask(desk.host)


async def test_the_same_key_and_ask_are_one_approval_and_another_ask_is_refused(desk: Desk) -> None:
    first = await desk.ask(key="weekend")
    assert await desk.ask(key="weekend") == first
    await reject(desk, first)
    assert await desk.ask(key="weekend") == first, "whatever became of it"
    with pytest.raises(Conflict) as refusal:
        await desk.ask(ask=carrying("a"), key="weekend")
    assert refusal.value.code == "idempotency_key_used"
    assert await desk.ask(desk.host, key="weekend") != first, "a key is its asker's own"
    assert await desk.db.pool.fetchval("select count(*) from approvals") == 2


async def test_where_it_is_asked_for_one_of_a_type_waits_about_a_subject(desk: Desk) -> None:
    first = await desk.ask(ask=only_one("door"))
    with pytest.raises(Conflict) as refusal:
        await desk.ask(desk.host, only_one("door"))
    assert (refusal.value.code, refusal.value.fresh.id) == ("approval_waiting", first)
    await desk.ask(ask=only_one("bar"))
    await send_back(desk, first)
    with pytest.raises(Conflict):
        await desk.ask(ask=only_one("door"))
    await reject(desk, first)
    assert await desk.ask(ask=only_one("door")) != first


async def test_the_askers_comment_is_activity_and_anothers_is_not(desk: Desk) -> None:
    approval_id = await desk.ask()
    asked_at = (await desk.row(approval_id))["activity_at"]
    await asking.comment(desk.db, desk.decider, desk.club_id, approval_id, "Why?")
    assert (await desk.row(approval_id))["activity_at"] == asked_at
    await asking.comment(desk.db, desk.agent, desk.club_id, approval_id, "Because.")
    assert (await desk.row(approval_id))["activity_at"] > asked_at


@pytest.mark.parametrize(
    ("ask", "field"),
    [
        (asking.Ask("Not a word", "x"), "type"),
        (asking.Ask("x", ""), "title"),
        (asking.Ask("x", "x" * 201), "title"),
        (asking.Ask("x", "x", "y" * 4001), "body"),
        (asking.Ask("x", "x", subject=asking.Subject("a b", "c")), "about.kind"),
    ],
)
async def test_what_breaks_a_rule_is_refused_by_its_field(desk: Desk, ask: asking.Ask, field: str) -> None:
    with pytest.raises(LastcallError) as refusal:
        await desk.ask(ask=ask)
    assert refusal.value.field == field
    assert await desk.db.pool.fetchval("select count(*) from approvals") == 0


async def test_everything_is_in_the_clubs_log(desk: Desk) -> None:
    approval_id = await desk.ask(ask=ANY)
    await asking.comment(desk.db, desk.decider, desk.club_id, approval_id, "Why?")
    await send_back(desk, approval_id)
    await change(desk, approval_id)
    await withdraw(desk, approval_id)
    assert await desk.logged() == [
        "approval.asked",
        "approval.commented",
        "approval.revision_requested",
        "approval.resubmitted",
        "approval.withdrawn",
    ]
