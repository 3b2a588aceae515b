"""Discord: OAuth 2 without ID tokens. Who signed in is asked with the access token, which is then forgotten."""

from __future__ import annotations

from datetime import datetime
from typing import Any, TypeGuard

from lastcall.people.providers.openid import basic, check_sender, code_fields, pkce
from lastcall.people.providers.provider import (
    Answer,
    Begin,
    Profile,
    Provider,
    clean_label,
    grant_address,
    is_subject,
)
from lastcall.people.providers.transport import ProviderClient, ProviderFault

ISSUER = "https://discord.com"
AUTHORIZATION = "https://discord.com/oauth2/authorize"
TOKEN = "https://discord.com/api/oauth2/token"  # noqa: S105 - an address
USER = "https://discord.com/api/v10/users/@me"
SCOPE = "identify"
"""The id and the names; no mail address, no servers."""
TOKEN_LENGTH = 4096


def is_token(value: Any) -> TypeGuard[str]:
    """Whether this fits into a header."""
    return (
        isinstance(value, str) and 1 <= len(value) <= TOKEN_LENGTH and value.isascii() and value.isprintable()
    )


class Discord:
    """The code is bound to the browser by the state and by PKCE, as there is no nonce to do it."""

    def __init__(self, provider: Provider, client: ProviderClient) -> None:
        self.provider = provider
        self._client = client

    async def begin(self, begin: Begin) -> str:
        prompt = {"prompt": "consent"} if begin.asks_again else {}
        return grant_address(AUTHORIZATION, self.provider, SCOPE, begin, **pkce(begin), **prompt)

    async def finish(self, begin: Begin, answer: Answer, _now: datetime) -> Profile:
        check_sender(answer, ISSUER, must_name_itself=False)
        tokens = await self._client.post(TOKEN, code_fields(answer.code, begin), basic(self.provider))
        token, kind = tokens.get("access_token"), tokens.get("token_type")
        if not is_token(token) or str(kind).lower() != "bearer":
            raise ProviderFault("there is no access token")
        user = await self._client.get(USER, f"Bearer {token}")
        subject = user.get("id")
        if not is_subject(subject):
            raise ProviderFault("the answer names nobody")
        return Profile(ISSUER, subject, clean_label(user.get("username"), user.get("global_name")))
