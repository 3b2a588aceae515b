"""The pages of approvals, decisions and runs, as somebody with a browser uses them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from tests.web.conftest import Site, Visitor, World, user

from lastcall.access.agents.policy import AS_READER
from lastcall.db.ids import encode_id
from lastcall.decisions.approvals.asking import Ask, Carried, ask_approval
from lastcall.decisions.inbox.proposed import proposed_items
from lastcall.decisions.questions.asking import Option, Question, ask_decision
from lastcall.decisions.retention.kinds.approval import APPROVAL
from lastcall.decisions.retention.proposals import Proposed, propose_archive
from lastcall.decisions.runs.service import Report, RunStatus, report_run
from lastcall.events.fields import EventFields
from lastcall.events.queries import Publication
from lastcall.events.services.write import create_event
from lastcall.events.times import Timed
from lastcall.people.actor import AgentActor
from lastcall.testing.agents import let_in_agent
from lastcall.web.fields import known_id

Visit = Callable[..., Visitor]
CLUB = "/c/night-shift"


@pytest.fixture
async def porter(world: World, site: Site) -> AgentActor:
    agent, _ = await let_in_agent(world.db, world.club_id, world.actors["staff"].person_id, name="Porter")
    return agent


async def asked(world: World, porter: AgentActor, effect: Carried | None = None) -> str:
    ask = Ask("hire", "Hire a <host>", "For the weekend.", effect=effect)
    return encode_id(await ask_approval(world.db, porter, world.club_id, ask))


async def status(world: World, approval_id: str) -> str:
    return str(await world.db.pool.fetchval("select status from approvals order by id desc limit 1"))


async def press(visitor: Visitor, place: str, **fields: str) -> tuple[int, str]:
    answer = await visitor.post(f"{CLUB}/{place}", fields, token=await visitor.token(f"{CLUB}/{place}"))
    return answer.status_code, answer.text


async def test_an_approval_is_read_sent_back_changed_and_granted(
    world: World, porter: AgentActor, visit: Visit
) -> None:
    approval_id = await asked(world, porter)
    owner, staff = visit("owner"), visit("staff")
    page = (await owner.client.get(f"{CLUB}/approvals")).text
    assert "Hire a &lt;host&gt;" in page
    assert "Porter" in page
    assert "Nothing was asked." in (await staff.client.get(f"{CLUB}/approvals")).text
    place = f"approvals/{approval_id}"
    assert (await staff.client.get(f"{CLUB}/{place}")).status_code == 404
    assert (await press(owner, place, act="revise", seen="1"))[0] == 422
    assert (await press(owner, place, act="revise", seen="1", note="Say when."))[0] == 303
    shown = (await owner.client.get(f"{CLUB}/{place}")).text
    assert "Waiting for a change" in shown
    assert "Say when." in shown
    code, text = await press(owner, place, act="approve", seen="2")
    assert code == 409
    assert "changed after you looked at it" in text
    assert (await press(owner, place, act="approve", seen="1", note="Fine."))[0] == 303
    assert await status(world, approval_id) == "approved"


async def test_ones_own_is_changed_commented_and_withdrawn_on_its_page(
    world: World, porter: AgentActor, visit: Visit
) -> None:
    ask = Ask("hire", "Hire", "For the weekend.")
    made = encode_id(await ask_approval(world.db, world.actors["staff"], world.club_id, ask))
    staff, place = visit("staff"), f"approvals/{made}"
    shown = (await staff.client.get(f"{CLUB}/{place}")).text
    assert "Your decision" not in shown
    assert "Change what you asked" in shown
    fields = {"act": "resubmit", "seen": "1", "title": "Hire two", "body": "For Friday."}
    assert (await press(staff, place, **fields))[0] == 303
    assert (await press(staff, place, act="comment", comment="Please."))[0] == 303
    shown = (await staff.client.get(f"{CLUB}/{place}")).text
    for words in ("Hire two", "Revision 1: Hire", "Please."):
        assert words in shown
    assert (await press(staff, place, act="withdraw"))[0] == 303
    assert await status(world, made) == "withdrawn"


@pytest.mark.parametrize("who", ["owner", "staff"])
async def test_a_comment_that_is_refused_comes_again_where_it_was_typed(
    world: World, site: Site, visit: Visit, who: str
) -> None:
    made = encode_id(await ask_approval(world.db, world.actors["staff"], world.club_id, Ask("hire", "Hire")))
    place = f"approvals/{made}"
    code, text = await press(visit(who), place, act="comment", comment=" ")
    assert code == 422
    assert text.count("The comment is empty.") == 1
    assert 'id="comment-wrong"' in text
    code, text = await press(visit(who), place, act="comment", comment="Why\x07?")
    assert code == 422
    assert ">Why\x07?</textarea>" in text


async def test_what_is_carried_is_shown_as_a_review_and_the_time_that_is_seen_is_confirmed(
    world: World, porter: AgentActor, visit: Visit
) -> None:
    starts = (datetime.now(UTC) + timedelta(days=3)).replace(microsecond=0)
    event = await create_event(
        world.db,
        world.actors["owner"],
        world.club_id,
        EventFields("Opening night", Timed(starts), "UTC"),
        publication=Publication.PUBLISHED,
    )
    schedule = {"kind": "event_relative", "event_id": encode_id(event.id), "offset_ms": -1_800_000}
    asked_for = starts - timedelta(hours=2)
    carried = {
        "payloads": [{"kind": "invite_member", "targetUserId": user(3)}],
        "schedule": schedule,
        "reviewedDueAt": asked_for.isoformat(),
    }
    approval_id = await asked(world, porter, Carried("operations", carried))
    owner, place = visit("owner"), f"approvals/{approval_id}"
    shown = (await owner.client.get(f"{CLUB}/{place}")).text
    for words in ("Opening night", user(3), "under the permission of whoever approves"):
        assert words in shown
    # Without the time that the page shows, the one that was asked for counts, and that is not true any more.
    code, text = await press(owner, place, act="approve", seen="1")
    assert code == 409
    assert "It waits as before" in text
    due_at = starts - timedelta(minutes=30)
    assert f'name="reviewed_due_at" value="{due_at:%Y-%m-%dT%H:%M:%S}' in text
    fields = {"act": "approve", "seen": "1", "reviewed_due_at": due_at.isoformat()}
    assert (await press(owner, place, **fields))[0] == 303
    shown = (await owner.client.get(f"{CLUB}/{place}")).text
    assert f"{CLUB}/requests/" in shown
    assert await world.db.pool.fetchval("select due_at from operations") == due_at


async def test_a_decision_is_made_by_one_of_its_options(
    world: World, porter: AgentActor, visit: Visit
) -> None:
    question = Question("Which night?", [Option("a", "Friday"), Option("b", "Saturday", "Later.")])
    made = encode_id(await ask_decision(world.db, porter, world.club_id, question))
    owner, place = visit("owner"), f"decisions/{made}"
    assert "Which night?" in (await owner.client.get(f"{CLUB}/decisions")).text
    code, text = await press(owner, place, act="decide", option="c")
    assert code == 422
    assert "It is open as before" in text
    assert (await press(owner, place, act="decide", option="b", note="Later it is."))[0] == 303
    shown = (await owner.client.get(f"{CLUB}/{place}")).text
    assert "Later it is." in shown
    assert "Your choice" not in shown
    assert (await visit("staff").client.get(f"{CLUB}/{place}")).status_code == 404


async def test_an_archive_proposal_names_what_it_is_about(
    world: World, porter: AgentActor, visit: Visit
) -> None:
    approval_id = known_id(await asked(world, porter))
    await world.db.pool.execute("update approvals set activity_at = activity_at - interval '60 days'")
    item = Proposed(APPROVAL, approval_id, 0, "Nobody <cares>.")
    made = encode_id(await propose_archive(world.db, porter, world.club_id, [item]))
    shown = (await visit("owner").client.get(f"{CLUB}/decisions/{made}")).text
    for words in ("What would be archived", "Hire a &lt;host&gt;", "Nobody &lt;cares&gt;."):
        assert words in shown
    async with world.db.read() as tx:
        body = {"items": [{"kind": "approval", "id": encode_id(approval_id), "reason": ""}]}
        (hidden,) = await proposed_items(tx, AS_READER, world.club_id, body)
    assert (hidden.title, hidden.page) == (None, None)


async def test_a_failed_run_has_a_page_with_what_went_wrong(
    world: World, porter: AgentActor, visit: Visit
) -> None:
    report = Report("run-1", "door", "Look at the door", RunStatus.FAILED, error="It was <closed>.")
    run_id: UUID = await report_run(world.db, porter, report)
    place = f"{CLUB}/runs/{encode_id(run_id)}"
    shown = (await visit("owner").client.get(place)).text
    assert "It was &lt;closed&gt;." in shown
    await report_run(world.db, porter, Report("run-2", "door", "Look again", RunStatus.RUNNING))
    assert "a newer run on the same thing" in (await visit("owner").client.get(place)).text
    assert (await visit("staff").client.get(place)).status_code == 403
