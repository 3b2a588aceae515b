"""What every write is checked for once more, against the group as it was just read."""

from __future__ import annotations

from lastcall.vrchat.errors import ProtectedTarget, ProviderPermissions, RoleScope
from lastcall.vrchat.evidence import OwnMember, Role


def need_grants(evidence: OwnMember, grants: tuple[str, ...]) -> None:
    """Raise ``ProviderPermissions`` unless the group grants the account all of them."""
    if not evidence.has_grants(grants):
        raise ProviderPermissions("The VRChat group does not let the account do this.")


def need_unprotected(evidence: OwnMember, user_id: str) -> None:
    """Raise ``ProtectedTarget`` for the account itself and for the group's owner."""
    if evidence.protects(user_id):
        raise ProtectedTarget("The group's owner and the account itself are out of reach.")


def need_role(evidence: OwnMember, role_id: str) -> Role:
    """The group's role, with its id as VRChat writes it. Raise ``RoleScope`` when the group has none such."""
    role = evidence.role(role_id)
    if role is None:
        raise RoleScope("The VRChat group has no such role.")
    return role
