"""One file a part of the house: its shapes, and one route a service."""

from __future__ import annotations

from lastcall.api.v1.routes import (
    activity,
    clock,
    clubs,
    events,
    fleet,
    invites,
    join_requests,
    me,
    operations,
    people,
    requests,
    staff,
    visibility,
)

HANDLERS = (
    *me.HANDLERS,
    *clubs.HANDLERS,
    *staff.HANDLERS,
    *invites.HANDLERS,
    *join_requests.HANDLERS,
    *visibility.HANDLERS,
    *activity.HANDLERS,
    *operations.HANDLERS,
    *requests.HANDLERS,
    *clock.HANDLERS,
    *events.HANDLERS,
    *people.HANDLERS,
    *fleet.HANDLERS,
)
