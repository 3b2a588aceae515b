"""Real things of the world, by the names that the API's addresses have for their ids."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.api.v1_kit import Api
from tests.events.calendars import calendar, vevent
from tests.web.conftest import user

from lastcall.access.acceptance import accept_invite
from lastcall.access.invites import create_invite
from lastcall.db.ids import decode_id, encode_id, new_id
from lastcall.decisions.approvals.asking import Ask, ask_approval
from lastcall.decisions.questions.asking import Option, Question, ask_decision
from lastcall.events.fields import EventFields
from lastcall.events.queries import Publication
from lastcall.events.services.importing import import_file
from lastcall.events.services.write import create_event, link_world
from lastcall.events.times import Timed
from lastcall.operations.schedules import Immediate
from lastcall.operations.services.drafts import save_draft
from lastcall.operations.services.lists import create_list
from lastcall.people.service import add_person
from lastcall.people.sign_in import make_sign_in_link, redeem_sign_in_link
from lastcall.reads.asking import request_read
from lastcall.testing.agents import let_in_agent

WORLD_ID = "wrld_00000000-0000-4000-8000-000000000001"
POST = {"title": "Tonight", "text": "Doors at nine.", "visibility": "group", "sendNotification": False}
START = f":{datetime.now(UTC) + timedelta(days=30):%Y%m%dT%H%M%SZ}"
CALENDAR = calendar(vevent("one@example.org", START, "SUMMARY:Night")).decode()


async def things(api: Api) -> dict[str, str]:
    """One of each, with a guest who asks to be let in."""
    world, owner = api.world, api.world.actors["owner"]
    queued = await world.queue("invite_member", [1, 2])
    role_id = await api.role()
    await api.token("owner")
    token_id = await world.db.pool.fetchval("select id from api_tokens order by id desc limit 1")
    await add_person(world.db, "guest@example.org", "Guest")
    link = await make_sign_in_link(world.db, "guest@example.org")
    _, world.actors["guest"] = await redeem_sign_in_link(world.db, link)
    asked = await create_invite(world.db, owner, world.club_id, [decode_id(role_id)], approves=False)
    made = await accept_invite(world.db, world.actors["guest"], asked.token)
    invite = await create_invite(world.db, owner, world.club_id, [decode_id(role_id)])
    open_invite = await create_invite(world.db, owner, world.club_id, [decode_id(role_id)])
    fields = EventFields("Opening", Timed(datetime.now(UTC) + timedelta(days=3)), "Europe/Berlin")
    event = await create_event(world.db, owner, world.club_id, fields, publication=Publication.PUBLISHED)
    event = await link_world(world.db, owner, world.club_id, event.id, WORLD_ID)
    imported = await import_file(world.db, owner, world.club_id, "calendar.ics", CALENDAR.encode())
    kept = await create_list(world.db, owner, world.club_id, "Regulars", [user(1), user(2)])
    draft_id = new_id()
    await save_draft(world.db, owner, world.club_id, draft_id, POST, Immediate(), seen=0)
    agent, _ = await let_in_agent(world.db, world.club_id, owner.person_id)
    read = await request_read(world.db, owner, world.club_id, "requests", {})
    message_id = new_id()
    await world.db.pool.execute(
        "insert into deliveries (club_id, id, kind, channel, person_id, dedup, data, state, attempts, ended_at)"
        " values ($1, $2, 'retention.digest', 'mail', $3, 'one', '{}', 'dead', 8, lastcall_now())",
        world.club_id,
        message_id,
        owner.person_id,
    )
    agent, _ = await let_in_agent(world.db, world.club_id, owner.person_id)
    ask, question = Ask("hire", "Hire"), Question("Which?", [Option("a", "A"), Option("b", "B")])
    session_id = owner.session_id
    assert session_id is not None
    return {
        "club": api.club,
        "person_id": encode_id(world.actors["staff"].person_id),
        "role_id": role_id,
        "invite_id": encode_id(invite.id),
        "join_request_id": encode_id(made.request_id),
        "budget_id": encode_id(new_id()),
        "incident_id": encode_id(new_id()),
        "agent_id": encode_id(agent.agent_id),
        "item_kind": "join_request",
        "retained_id": encode_id(made.request_id),
        "control": "keep",
        "sight": "dismiss",
        "category": "group_size",
        "operation_id": encode_id(queued.operation_ids[0]),
        "request_id": encode_id(queued.request_id),
        "account_id": encode_id(world.key.account_id),
        "connection_id": encode_id(world.connection_id),
        "feature": "posts",
        "event_id": encode_id(event.id),
        "link_id": encode_id(event.worlds[0].id),
        "import_id": encode_id(imported.id),
        "item_id": encode_id(imported.items[0].id),
        "list_id": encode_id(kept.id),
        "draft_id": encode_id(draft_id),
        "read_id": encode_id(read.id),
        "session_id": encode_id(session_id),
        "message_id": encode_id(message_id),
        "approval_id": encode_id(await ask_approval(world.db, agent, world.club_id, ask)),
        "decision_id": encode_id(await ask_decision(world.db, agent, world.club_id, question)),
        "token_id": encode_id(token_id),
        "invite_token": open_invite.token,
    }
