"""What a tool is. Nothing here needs the SDK."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

import msgspec
from msgspec import Meta

from lastcall.api.v1.paging import PAGE_MOST
from lastcall.api.v1.requests import read_body
from lastcall.api.v1.shapes import Id, Input, Shape
from lastcall.db.cursor import CURSOR_LENGTH
from lastcall.db.database import Database
from lastcall.people.actor import Actor, AgentActor
from lastcall.people.agent_grants import AgentGrant

Asked = TypeVar("Asked", bound=Input)
Caller = TypeVar("Caller", Actor, AgentActor)

Club = Annotated[Id, Meta(description="The club's id, as list_clubs tells it.")]
PageSize = Annotated[int, Meta(ge=1, le=PAGE_MOST)]
PageCursor = Annotated[str, Meta(max_length=CURSOR_LENGTH, description="`next` of the page before.")]


@dataclass(frozen=True, kw_only=True)
class _Tool(Generic[Caller, Asked]):
    """One tool: a name, words for the agent that chooses it, the form of its arguments, and what it does.

    ``reads``: it changes nothing. ``destroys``: what it does cannot be taken back. ``repeats``: done twice is done
    once. ``more_schema`` says more of single arguments than their types do.
    """

    name: str
    words: str
    asked: type[Asked]
    run: Callable[[Database, Caller, Asked], Awaitable[Shape]]
    reads: bool = False
    destroys: bool = False
    repeats: bool = False
    more_schema: Mapping[str, Any] | None = None

    def schema(self) -> dict[str, Any]:
        """The arguments as JSON Schema, an object at its root."""
        (root,), parts = msgspec.json.schema_components([self.asked], ref_template="#/$defs/{name}")
        name = root["$ref"].rpartition("/")[2]
        schema: dict[str, Any] = parts.pop(name)
        schema.pop("title", None)
        schema.pop("description", None)
        schema["properties"] |= self.more_schema or {}
        return {**schema, "$defs": parts} if parts else schema

    async def call(self, db: Database, actor: Caller, arguments: Mapping[str, Any]) -> Shape:
        """Read the arguments strictly and do it. Raises ``Invalid`` with the argument, and what the service raises."""
        asked = read_body(json.dumps(arguments).encode(), self.asked, "The arguments are")
        return await self.run(db, actor, asked)


@dataclass(frozen=True, kw_only=True)
class Tool(_Tool[Actor, Asked]):
    """A tool of whoever holds a person's API token."""


@dataclass(frozen=True, kw_only=True)
class AgentTool(_Tool[AgentActor, Asked]):
    """A tool of an agent with its own key. One without its ``grant`` is not told of it; None is for every agent.
    The service asks for the grant again: this is only what the list shows.
    """

    grant: AgentGrant | None
