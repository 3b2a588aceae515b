"""The tools by which an agent asks its club's staff."""

from __future__ import annotations

from typing import Any

import msgspec
from tests.decisions.asks_kit import Desk, make_desk

from lastcall.api.mcp.asking_tools import TOOLS
from lastcall.db.database import Database

BY_NAME = {tool.name: tool for tool in TOOLS}


async def call(desk: Desk, name: str, **arguments: Any) -> Any:
    return msgspec.to_builtins(await BY_NAME[name].call(desk.db, desk.agent, arguments))


async def test_an_approval_is_asked_changed_commented_and_taken_back(database: Database) -> None:
    desk = await make_desk(database)
    one = (await call(desk, "ask_approval", type="hire", title="Hire"))["id"]
    change = {"seenRevision": 1, "title": "Hire two"}
    assert await call(desk, "resubmit", id=one, change=change) == {"revision": 2}
    await call(desk, "comment", id=one, comment={"body": "Please."})
    story = await call(desk, "withdraw", id=one)
    assert (story["approval"]["title"], story["approval"]["status"]) == ("Hire two", "withdrawn")
    assert [said["body"] for said in story["comments"]] == ["Please."]
    assert await call(desk, "my_approval", id=one) == story
    assert await call(desk, "my_approvals") == {"items": [story["approval"]], "next": None}


async def test_a_decision_is_asked_and_called_off(database: Database) -> None:
    desk = await make_desk(database)
    options = [{"key": "a", "label": "A"}, {"key": "b", "label": "B"}]
    one = (await call(desk, "ask_decision", title="Which?", options=options))["id"]
    ended = await call(desk, "cancel_decision", id=one)
    assert (ended["id"], ended["status"]) == (one, "cancelled")
    assert await call(desk, "cancel_decision", id=one) == ended
    assert await call(desk, "my_decisions") == {"items": [ended], "next": None}
