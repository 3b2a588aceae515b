"""One file a part of the house: its shapes, and one route a service."""

from __future__ import annotations

from lastcall.api.v1.routes import (
    activity,
    clock,
    clubs,
    connections,
    events,
    fleet,
    imports,
    invites,
    join_requests,
    me,
    operation_story,
    operations,
    outcomes,
    papers,
    people,
    reads,
    requests,
    retention,
    staff,
    visibility,
)

HANDLERS = (
    *me.HANDLERS,
    *clubs.HANDLERS,
    *staff.HANDLERS,
    *invites.HANDLERS,
    *join_requests.HANDLERS,
    *retention.HANDLERS,
    *visibility.HANDLERS,
    *activity.HANDLERS,
    *operations.HANDLERS,
    *operation_story.HANDLERS,
    *requests.HANDLERS,
    *clock.HANDLERS,
    *events.HANDLERS,
    *imports.HANDLERS,
    *outcomes.HANDLERS,
    *papers.HANDLERS,
    *people.HANDLERS,
    *reads.HANDLERS,
    *connections.HANDLERS,
    *fleet.HANDLERS,
)
