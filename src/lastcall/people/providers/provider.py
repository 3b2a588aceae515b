"""A provider as this server knows it, and what each kind of provider has to do."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, TypeGuard

from authlib.oauth2.rfc6749.parameters import prepare_grant_uri

LABEL_LENGTH = 80
SUBJECT_LENGTH = 255
"""OpenID Connect Core 2: a subject has at most 255 ASCII characters."""


@dataclass(frozen=True)
class Provider:
    """One entry of the settings. ``name`` is its part of our addresses, ``label`` what its button says."""

    name: str
    label: str
    client_id: str
    client_secret: str = field(repr=False)


@dataclass(frozen=True)
class Profile:
    """Who signed in there. ``issuer`` and ``subject`` identify them for ever; ``label`` is for people."""

    issuer: str
    subject: str
    label: str


@dataclass(frozen=True)
class Begin:
    """What goes to the provider with the browser. ``verifier`` stays here; only its hash is sent (PKCE)."""

    redirect_uri: str
    state: str
    nonce: str
    verifier: str
    asks_again: bool = False
    """Somebody who is signed in there already shall show again that it is them."""


@dataclass(frozen=True)
class Answer:
    """What the browser brought back. ``issuer`` is RFC 9207's ``iss``, where the provider sends it."""

    code: str
    issuer: str | None


class ProviderWay(Protocol):
    """A provider with what its kind does. Each method raises ``ProviderFault`` for what cannot be used."""

    provider: Provider

    async def begin(self, begin: Begin) -> str:
        """The address to send the browser to."""
        ...

    async def finish(self, begin: Begin, answer: Answer, now: datetime) -> Profile:
        """Exchange the code. ``now`` is the database's."""
        ...


def grant_address(endpoint: str, provider: Provider, scope: str, begin: Begin, **more: str) -> str:
    """The authorization request of RFC 6749, 4.1.1, on any endpoint."""
    address: str = prepare_grant_uri(
        endpoint,
        client_id=provider.client_id,
        response_type="code",
        redirect_uri=begin.redirect_uri,
        scope=scope,
        state=begin.state,
        **more,
    )
    return address


def clean_label(*names: Any) -> str:
    """The first of the names that says anything, on one line and without characters that turn text around."""
    for name in names:
        if isinstance(name, str):
            kept = "".join(c for c in name if unicodedata.category(c)[0] != "C")
            text = " ".join(kept.split())[:LABEL_LENGTH].strip()
            if text:
                return text
    return "an account"


def is_subject(value: Any) -> TypeGuard[str]:
    """Whether this can identify an account for ever."""
    return (
        isinstance(value, str)
        and 1 <= len(value) <= SUBJECT_LENGTH
        and value.isascii()
        and value.isprintable()
    )
