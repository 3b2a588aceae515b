"""Discord and Slack: their own ways, followed against a provider on loopback that stands at their addresses."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.people.openid_provider import OpenIdProvider, openid_provider

from lastcall.clock import SYSTEM_CLOCK
from lastcall.people.providers import discord, slack
from lastcall.people.providers.discord import Discord
from lastcall.people.providers.discovery import Discovery
from lastcall.people.providers.provider import Answer, Begin, Provider
from lastcall.people.providers.slack import Slack
from lastcall.people.providers.transport import ProviderClient, ProviderFault

BEGIN = Begin("https://club.example.org/sign-in/with/x/back", "the state", "the nonce", "v" * 43)
CLIENT = ProviderClient(private=True)


@pytest.fixture
async def there() -> AsyncIterator[OpenIdProvider]:
    async with openid_provider(names_itself=False) as provider:
        yield provider


def asked(address: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}


@pytest.fixture
def at_discord(there: OpenIdProvider, monkeypatch: pytest.MonkeyPatch) -> Discord:
    monkeypatch.setattr(discord, "TOKEN", f"{there.issuer}/token")
    monkeypatch.setattr(discord, "USER", f"{there.issuer}/user")
    there.answers["/token"] = {"access_token": "opaque", "token_type": "Bearer"}
    return Discord(Provider("discord", "Discord", "1", "secret"), CLIENT)


async def test_discord_is_asked_for_the_id_alone_with_pkce(at_discord: Discord) -> None:
    address = await at_discord.begin(BEGIN)
    assert address.startswith("https://discord.com/oauth2/authorize?")
    fields = asked(address)
    assert (fields["scope"], fields["state"], fields["code_challenge_method"]) == (
        "identify",
        "the state",
        "S256",
    )
    assert BEGIN.verifier not in address
    assert "prompt" not in fields
    assert asked(await at_discord.begin(replace(BEGIN, asks_again=True)))["prompt"] == "consent"


async def test_a_discord_account_is_its_id(at_discord: Discord, there: OpenIdProvider) -> None:
    there.answers["/user"] = {"id": "80351110224678912", "username": "nelly", "email": "nelly@example.org"}
    profile = await at_discord.finish(BEGIN, Answer("code", None), datetime.now(UTC))
    assert (profile.issuer, profile.subject, profile.label) == (
        "https://discord.com",
        "80351110224678912",
        "nelly",
    )


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/token", {"access_token": "opaque", "token_type": "mac"}),
        ("/token", {"token_type": "Bearer"}),
        ("/token", {"access_token": "a\r\nHost: other", "token_type": "Bearer"}),
        ("/user", {"username": "nelly"}),
        ("/user", {"id": 80351110224678912}),
        ("/user", {"id": ""}),
    ],
)
async def test_an_answer_of_discord_without_an_id_names_nobody(
    at_discord: Discord, there: OpenIdProvider, path: str, answer: dict[str, Any]
) -> None:
    there.answers["/user"] = {"id": "80351110224678912", "username": "nelly"}
    there.answers[path] = answer
    with pytest.raises(ProviderFault):
        await at_discord.finish(BEGIN, Answer("code", None), datetime.now(UTC))


async def test_an_answer_of_another_provider_is_not_taken_to_discord(
    at_discord: Discord, there: OpenIdProvider
) -> None:
    with pytest.raises(ProviderFault, match="another provider"):
        await at_discord.finish(BEGIN, Answer("code", "https://evil.example.org"), datetime.now(UTC))
    assert there.asked == []


@pytest.fixture
def at_slack(there: OpenIdProvider, monkeypatch: pytest.MonkeyPatch) -> Slack:
    known = replace(slack.ENDPOINTS, token=f"{there.issuer}/token", keys=f"{there.issuer}/keys")
    there.claims = {"iss": "https://slack.com", "sub": "U0R7JM", slack.TEAM: "T0R7GR", slack.USER: "U0R7JM"}
    there.claims |= {"aud": "1.2", "name": "Krane"}
    provider = Provider("slack", "Slack", "1.2", "secret")
    made = Slack(provider, CLIENT, Discovery(slack.ISSUER, CLIENT, SYSTEM_CLOCK, known))
    monkeypatch.setattr(
        there, "token", lambda form, _: {"ok": True, "id_token": there.id_token({"nonce": "the nonce"})}
    )
    return made


async def test_slack_is_asked_with_a_nonce(at_slack: Slack) -> None:
    address = await at_slack.begin(BEGIN)
    assert address.startswith("https://slack.com/openid/connect/authorize?")
    fields = asked(address)
    assert (fields["nonce"], fields["scope"]) == ("the nonce", "openid profile")
    assert "code_challenge" not in fields


async def test_a_slack_account_counts_within_its_workspace(at_slack: Slack, there: OpenIdProvider) -> None:
    profile = await at_slack.finish(BEGIN, Answer("code", None), datetime.now(UTC))
    assert (profile.issuer, profile.subject, profile.label) == ("https://slack.com", "T0R7GR/U0R7JM", "Krane")
    there.claims[slack.TEAM] = "T9999"
    other = await at_slack.finish(BEGIN, Answer("code", None), datetime.now(UTC))
    assert other.subject == "T9999/U0R7JM"


@pytest.mark.parametrize(
    "claims",
    [
        {slack.TEAM: None},
        {slack.TEAM: ""},
        {"nonce": "another"},
        {"aud": "them"},
        {"iss": "https://x.example"},
    ],
)
async def test_a_token_of_slack_that_does_not_hold_names_nobody(
    at_slack: Slack, there: OpenIdProvider, claims: dict[str, Any]
) -> None:
    there.claims |= claims
    with pytest.raises(ProviderFault):
        await at_slack.finish(BEGIN, Answer("code", None), datetime.now(UTC))
