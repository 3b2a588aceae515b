"""The pages of a club's agents, without scripts."""

from __future__ import annotations

import re
from collections.abc import Callable

from tests.web.conftest import Site, Visitor, World

from lastcall.access.agents.keys import actor_of_key
from lastcall.db.ids import encode_id
from lastcall.people.agent_grants import AgentGrant
from lastcall.testing.agents import let_in_agent

Visit = Callable[..., Visitor]
AGENTS = "/c/night-shift/agents"
SECRET = re.compile(r'id="secret"[^>]*value="(lca_[^"]+)"')
SEEN = re.compile(r'name="seen" value="([^"]+)"')


async def robot(world: World) -> tuple[str, str]:
    """The address of an agent's page, and its key."""
    actor, key = await let_in_agent(
        world.db, world.club_id, world.actors["owner"].person_id, [AgentGrant.ASK], name="Robot"
    )
    return f"{AGENTS}/{encode_id(actor.agent_id)}", key


async def test_the_list_says_how_to_let_one_in_and_then_what_each_may_do(
    world: World, site: Site, visit: Visit
) -> None:
    owner = visit("owner")
    empty = (await owner.get(AGENTS)).text
    assert "No agents" in empty
    assert "/c/night-shift/staff/invites/new" in empty
    path, _ = await robot(world)
    shown = (await owner.get(AGENTS)).text
    assert path in shown
    assert AgentGrant.ASK.label in shown
    assert AgentGrant.READ_INBOX.label not in shown
    assert "Active" in shown


async def test_a_new_key_is_shown_once_and_a_replaced_one_is_refused(
    world: World, site: Site, visit: Visit
) -> None:
    path, key = await robot(world)
    owner = visit("owner")
    made = SECRET.search((await owner.post(f"{path}/rotate")).text)
    assert made is not None
    page = (await owner.get(path)).text
    assert made[1] not in page
    assert "ends" in page
    assert await actor_of_key(world.db, key) is not None
    asked = (await owner.get(f"{path}/replace")).text
    assert "refused from the next call on" in asked
    replaced = SECRET.search((await owner.post(f"{path}/replace")).text)
    assert replaced is not None
    assert [await actor_of_key(world.db, one) is None for one in (key, made[1], replaced[1])] == [
        True,
        True,
        False,
    ]


async def test_pausing_and_blocking_show_and_are_taken_back(world: World, site: Site, visit: Visit) -> None:
    path, key = await robot(world)
    owner = visit("owner")
    for act, word in (("pause", "Paused"), ("resume", "Active"), ("block", "Blocked"), ("unblock", "Active")):
        assert (await owner.post(f"{path}/{act}")).status_code == 303
        assert word in (await owner.get(path)).text
    assert await actor_of_key(world.db, key) is None
    assert "It has no key and is refused everywhere." in (await owner.get(path)).text
    refused = await owner.post(f"{path}/claim")
    assert refused.status_code == 409
    assert "claimed its first key" in refused.text


async def test_an_edit_of_an_older_look_saves_nothing_and_keeps_what_was_ticked(
    world: World, site: Site, visit: Visit
) -> None:
    path, _ = await robot(world)
    owner = visit("owner")
    found = SEEN.search((await owner.get(path)).text)
    assert found is not None
    edit = {"name": "Robot", "description": "Counts.", "grant": ["ask", "report_runs"], "seen": found[1]}
    assert (await owner.post(path, edit)).status_code == 303
    late = await owner.post(path, edit | {"name": "Other", "grant": "report_costs"})
    assert late.status_code == 409
    assert "Somebody changed this agent meanwhile." in late.text
    assert 'value="report_costs" checked' in late.text
    row = await world.db.pool.fetchrow("select name, grants from agents where club_id = $1", world.club_id)
    assert tuple(row) == ("Robot", ["ask", "report_runs"])
    empty = await owner.post(path, edit | {"name": " "})
    assert empty.status_code == 422
    assert "The agent's name is empty." in empty.text.replace("&#39;", "'")
