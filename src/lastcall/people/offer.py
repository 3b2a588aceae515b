"""What this installation offers to sign in with, beside links."""

from __future__ import annotations

from dataclasses import dataclass

from lastcall.errors import NotFound
from lastcall.people.passkey_answers import RelyingParty
from lastcall.people.providers.providers import Providers


@dataclass(frozen=True)
class Offer:
    """Without ``relying_party`` the address of this server is one at which browsers have no passkeys."""

    relying_party: RelyingParty | None
    providers: Providers

    @property
    def party(self) -> RelyingParty:
        """Raises ``NotFound`` where there are no passkeys."""
        if self.relying_party is None:
            raise NotFound("not_found", "There is no such page.")
        return self.relying_party
