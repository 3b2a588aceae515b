"""Functions on events."""

from __future__ import annotations

from typing import Any

from tests.matrix.cases import Who, row
from tests.matrix.world import AN_EVENT, World

from lastcall.clubs.permissions import Permission
from lastcall.events.imports.entries import DOCUMENT_CAP
from lastcall.events.services import importing, write
from lastcall.people.scopes import Scope

WORLD = "wrld_00000000-0000-4000-8000-000000000001"


def on_event(function: Any, *values: Any) -> Any:
    return lambda w, _, a: function(w.db, a, w.club_id, w.event.id, *values)


def with_link(function: Any) -> Any:
    async def call(w: World, _: Any, actor: Any) -> object:
        linked = await write.link_world(w.db, w.owner, w.club_id, w.event.id, WORLD)
        return await function(w.db, actor, w.club_id, w.event.id, linked.worlds[0].id)

    return call


TOO_LARGE = bytes(DOCUMENT_CAP + 1)
"""Refused before a process is started to read it."""


def on_import(function: Any) -> Any:
    return lambda w, _, a: function(w.db, a, w.club_id, w.document.id, [], 1)


EVENTS = [
    *(
        row(one, Who.STAFF, Scope.EVENTS, call, Permission.MANAGE_EVENTS)
        for one, call in (
            (write.create_event, lambda w, _, a: write.create_event(w.db, a, w.club_id, AN_EVENT)),
            (write.edit_event, on_event(write.edit_event, AN_EVENT, 1)),
            (write.cancel_event, on_event(write.cancel_event)),
            (write.reinstate_event, on_event(write.reinstate_event)),
            (write.publish_event, on_event(write.publish_event)),
            (write.unpublish_event, on_event(write.unpublish_event)),
            (write.remove_event, on_event(write.remove_event)),
            (write.link_world, on_event(write.link_world, WORLD)),
            (write.confirm_world, with_link(write.confirm_world)),
            (write.unlink_world, with_link(write.unlink_world)),
            (importing.apply_items, on_import(importing.apply_items)),
            (importing.skip_items, on_import(importing.skip_items)),
        )
    ),
    row(
        importing.import_file,
        Who.STAFF,
        Scope.EVENTS,
        lambda w, _, a: importing.import_file(w.db, a, w.club_id, "evenings.ics", TOO_LARGE),
        Permission.MANAGE_EVENTS,
        answer="calendar_unreadable",
    ),
    row(
        importing.import_feed,
        Who.STAFF,
        Scope.EVENTS,
        lambda w, _, a: importing.import_feed(w.db, a, w.club_id, "https://127.0.0.1:9/"),
        Permission.MANAGE_EVENTS,
        answer="calendar_not_fetched",
    ),
]
