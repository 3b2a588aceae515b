"""Functions on what is queued already."""

from __future__ import annotations

from tests.matrix.cases import Who, row
from tests.matrix.rows_clubs import listed
from tests.matrix.world import TARGET

from lastcall.clubs.permissions import Permission
from lastcall.operations import revisions
from lastcall.operations.schedules import Immediate
from lastcall.operations.server_clock import server_clock
from lastcall.operations.services import cancel, edit
from lastcall.people.scopes import Scope

_PAYLOAD = {"kind": "invite_member", "targetUserId": TARGET}

CHANGES = [
    row(
        function,
        Who.STAFF,
        Scope.OPERATIONS,
        call,
        Permission.MANAGE_SCHEDULED_ACTIONS,
        hides=(Permission.INVITE_GROUP_MEMBERS,),
        hidden=hidden,
    )
    for function, call, hidden in (
        (
            edit.edit,
            lambda w, _, a: edit.edit(
                w.db, a, w.club_id, w.queued.operation_ids[0], 1, _PAYLOAD, Immediate()
            ),
            "operation_unknown",
        ),
        (
            cancel.cancel_request,
            lambda w, _, a: cancel.cancel_request(w.db, a, w.club_id, w.queued.request_id),
            "request_unknown",
        ),
    )
]

READS = [
    row(server_clock, Who.SELF, Scope.READ, lambda _, tx, a: server_clock(tx, a, "n" * 16)),
    *(
        row(
            function,
            Who.STAFF,
            Scope.READ,
            listed(function, "operation"),
            hides=(Permission.INVITE_GROUP_MEMBERS,),
            hidden="operation_unknown",
        )
        for function in (revisions.history_of, revisions.timeline)
    ),
]
