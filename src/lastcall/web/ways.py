"""What the account's page and the confirm page show of a person's passkeys and linked accounts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lastcall.db.transaction import Reader
from lastcall.people.actor import Actor
from lastcall.people.identities import IdentityView, identities_of
from lastcall.people.offer import Offer
from lastcall.people.passkeys import PasskeyView, passkeys_of
from lastcall.people.providers.provider import Provider


@dataclass(frozen=True)
class Ways:
    """A person's own ways to sign in beside links, for ``own_ways.html``."""

    passkeys: Sequence[PasskeyView]
    identities: Sequence[IdentityView]
    offer: Offer

    def label(self, provider: str) -> str:
        """What the settings call the provider; its bare name when they no longer have it."""
        return next((one.label for one in self.offer.providers.all if one.name == provider), provider)


@dataclass(frozen=True)
class Confirming:
    """What a person can confirm with beside a code, for ``confirm_ways.html``."""

    has_passkey: bool
    providers: Sequence[Provider]


async def own_ways(tx: Reader, actor: Actor, offer: Offer) -> Ways:
    return Ways(await passkeys_of(tx, actor), await identities_of(tx, actor), offer)


async def confirming(tx: Reader, actor: Actor, offer: Offer) -> Confirming:
    ways = await own_ways(tx, actor, offer)
    linked = {identity.provider for identity in ways.identities}
    return Confirming(
        has_passkey=offer.relying_party is not None and bool(ways.passkeys),
        providers=[provider for provider in offer.providers.all if provider.name in linked],
    )
