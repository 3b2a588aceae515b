"""One file a part of the house: its shapes, and one route a service."""

from __future__ import annotations

from lastcall.api.v1.routes import clubs, fleet, me, operations

HANDLERS = (
    *me.HANDLERS,
    *clubs.HANDLERS,
    *operations.HANDLERS,
    *fleet.HANDLERS,
)
