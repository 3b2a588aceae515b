"""Ask a friend of the account into an instance that another action creates.

What was reviewed is that action in that revision. Its place is filled in when the invitation is claimed; the
collector sees an ``invite_to_instance``.
"""

from __future__ import annotations

from lastcall.clubs.permissions import Permission
from lastcall.connections.states import Feature
from lastcall.operations.kinds.fields import OperationId, Revision
from lastcall.operations.kinds.kind import Kind, PersonPayload, Words


class InviteToCreatedInstance(PersonPayload, frozen=True):
    """Without a ``creation_revision``, as rows of older releases are, it is never sent (DEP-04)."""

    creation_operation_id: OperationId
    creation_revision: Revision | None = None


KIND = Kind(
    name="invite_to_created_instance",
    payload=InviteToCreatedInstance,
    sent_as="invite_to_instance",
    permission=Permission.MANAGE_INSTANCES,
    feature=Feature.INSTANCES,
    grants=(),
    cost=4,
    is_bulk=True,
    needs_friend=True,
    words=Words(
        label="Invite to new instance",
        verb="Invite to a new instance",
        plural="Invitations to new instances",
    ),
)
