"""Functions that have VRChat read for somebody at a screen."""

from __future__ import annotations

from tests.matrix.cases import Who, row

from lastcall.clubs.permissions import Permission
from lastcall.people.scopes import Scope
from lastcall.reads import asking, queries

PROVIDER_READS = [
    row(
        asking.request_read,
        Who.STAFF,
        Scope.OPERATIONS,
        lambda w, _, a: asking.request_read(w.db, a, w.club_id, "bans", {}),
        Permission.MANAGE_BANS,
    ),
    row(
        queries.read_of,
        Who.STAFF,
        Scope.READ,
        lambda w, tx, a: queries.read_of(tx, a, w.club_id, w.read_id),
        hides=(Permission.MANAGE_BANS,),
        hidden="read_unknown",
    ),
]
