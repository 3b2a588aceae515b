"""Any OpenID provider: authorization code with PKCE and nonce, and an ID token that is checked before it counts."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote_plus

from authlib.oauth2.rfc7636 import create_s256_code_challenge

from lastcall.people.providers.discovery import Discovery, Endpoints
from lastcall.people.providers.id_tokens import Expected, UnknownKey, claims_of
from lastcall.people.providers.provider import Answer, Begin, Profile, Provider, clean_label, grant_address
from lastcall.people.providers.transport import ProviderClient, ProviderFault

ASKED_WITHIN = timedelta(minutes=10)
"""How long ago somebody may have signed in at the provider when that stands for a confirmation here."""


class OpenId:
    """A provider with ID tokens."""

    scope = "openid profile"
    has_pkce = True

    def __init__(self, provider: Provider, client: ProviderClient, discovery: Discovery) -> None:
        self.provider = provider
        self._client = client
        self._discovery = discovery

    async def begin(self, begin: Begin) -> str:
        endpoints = await self._discovery.endpoints()
        more = pkce(begin) if self.has_pkce else {}
        if begin.asks_again:
            more |= {"prompt": "login", "max_age": "0"}
        return grant_address(
            endpoints.authorization, self.provider, self.scope, begin, nonce=begin.nonce, **more
        )

    async def finish(self, begin: Begin, answer: Answer, now: datetime) -> Profile:
        endpoints = await self._discovery.endpoints()
        check_sender(answer, self._discovery.issuer, must_name_itself=endpoints.names_itself)
        tokens = await self._exchange(endpoints, begin, answer.code)
        expected = Expected(self._discovery.issuer, self.provider.client_id, begin.nonce)
        token = tokens.get("id_token")
        try:
            claims = claims_of(token, await self._discovery.keys(), expected, now)
        except UnknownKey:
            claims = claims_of(token, await self._discovery.keys(again=True), expected, now)
        if begin.asks_again:
            check_asked_again(claims, now)
        return self.profile(claims)

    def profile(self, claims: dict[str, Any]) -> Profile:
        """The subject alone identifies: a mail address or a name there can pass to somebody else."""
        label = clean_label(claims.get("preferred_username"), claims.get("name"), claims.get("nickname"))
        return Profile(claims["iss"], claims["sub"], label)

    async def _exchange(self, endpoints: Endpoints, begin: Begin, code: str) -> dict[str, Any]:
        fields = code_fields(code, begin)
        if not self.has_pkce:
            del fields["code_verifier"]
        if endpoints.secret_in_form:
            provider = self.provider
            fields |= {"client_id": provider.client_id, "client_secret": provider.client_secret}
            return await self._client.post(endpoints.token, fields)
        return await self._client.post(endpoints.token, fields, basic(self.provider))


def pkce(begin: Begin) -> dict[str, str]:
    return {
        "code_challenge": create_s256_code_challenge(begin.verifier),
        "code_challenge_method": "S256",
    }


def code_fields(code: str, begin: Begin) -> dict[str, str]:
    """The access token request of RFC 6749, 4.1.3, with RFC 7636's verifier."""
    return {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": begin.redirect_uri,
        "code_verifier": begin.verifier,
    }


def basic(provider: Provider) -> str:
    """RFC 6749, 2.3.1: both parts are form-encoded before they are joined."""
    pair = f"{quote_plus(provider.client_id)}:{quote_plus(provider.client_secret)}"
    return "Basic " + base64.b64encode(pair.encode()).decode()


def check_asked_again(claims: Mapping[str, Any], now: datetime) -> None:
    """Asked to (``max_age``), a provider says when the person last signed in there. One that says nothing is
    believed to have asked them again; one that says that it did not is refused.
    """
    told = claims.get("auth_time")
    if isinstance(told, (int, float)) and now.timestamp() - told > ASKED_WITHIN.total_seconds():
        raise ProviderFault("it did not ask the person again")


def check_sender(answer: Answer, issuer: str, *, must_name_itself: bool) -> None:
    """RFC 9207: an answer that names its sender must name the one that was asked, and one whose provider says
    that it does so must do so. Otherwise a code of one provider could be carried to another (mix-up).
    """
    if answer.issuer is None:
        if must_name_itself:
            raise ProviderFault("the answer does not say whose it is")
    elif not hmac.compare_digest(answer.issuer.encode(), issuer.encode()):
        raise ProviderFault("the answer is of another provider")
