"""What an OpenID provider says about itself: its endpoints and its keys, fetched when they are first needed and
kept in memory for a while.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from joserfc.jwk import KeySet

from lastcall.clock import Clock
from lastcall.people.providers.id_tokens import public_keys
from lastcall.people.providers.transport import ProviderClient, ProviderFault

KEPT = timedelta(hours=1)
"""How long a document is used before it is asked for again."""
KEYS_AGAIN = timedelta(minutes=1)
"""How often keys are fetched at most because a token names one we lack: anybody can send such a token."""
WELL_KNOWN = "/.well-known/openid-configuration"


@dataclass(frozen=True)
class Endpoints:
    """Where to send a browser and what to ask. ``names_itself`` is RFC 9207: its answers carry its issuer."""

    authorization: str
    token: str
    keys: str
    names_itself: bool = False
    secret_in_form: bool = False
    """The client secret goes into the form, for a provider that does not take it in the header."""


def endpoints_of(document: Mapping[str, Any], issuer: str, client: ProviderClient) -> Endpoints:
    """A discovery document, if it is this issuer's own and its addresses may be asked."""
    if document.get("issuer") != issuer:
        raise ProviderFault("its discovery document is of another issuer")
    methods = document.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
    if not isinstance(methods, list) or not {"client_secret_basic", "client_secret_post"} & set(
        map(str, methods)
    ):
        raise ProviderFault("it takes no client secret")
    return Endpoints(
        authorization=client.checked(document.get("authorization_endpoint")),
        token=client.checked(document.get("token_endpoint")),
        keys=client.checked(document.get("jwks_uri")),
        names_itself=document.get("authorization_response_iss_parameter_supported") is True,
        secret_in_form="client_secret_basic" not in methods,
    )


class Discovery:
    """One issuer's documents. ``known`` are endpoints that need no discovery (Slack)."""

    def __init__(
        self, issuer: str, client: ProviderClient, clock: Clock, known: Endpoints | None = None
    ) -> None:
        self.issuer = issuer
        self._client = client
        self._clock = clock
        self._known = known
        self._endpoints: tuple[float, Endpoints] | None = None
        self._keys: tuple[float, KeySet] | None = None

    async def endpoints(self) -> Endpoints:
        """Raises ``ProviderFault`` when the document cannot be had or used."""
        if self._known is not None:
            return self._known
        if self._endpoints is None or self._age(self._endpoints[0]) > KEPT:
            document = await self._client.get(self.issuer.rstrip("/") + WELL_KNOWN)
            found = endpoints_of(document, self.issuer, self._client)
            self._endpoints = (self._clock.boot(), found)
        return self._endpoints[1]

    async def keys(self, *, again: bool = False) -> KeySet:
        """The signing keys; ``again`` asks anew, unless that was done within ``KEYS_AGAIN``."""
        kept = KEYS_AGAIN if again else KEPT
        if self._keys is None or self._age(self._keys[0]) > kept:
            address = (await self.endpoints()).keys
            self._keys = (self._clock.boot(), public_keys(await self._client.get(address)))
        return self._keys[1]

    def _age(self, since: float) -> timedelta:
        return timedelta(seconds=self._clock.boot() - since)
