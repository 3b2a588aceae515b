"""Every provider of the settings, by name, and the address that each sends browsers back to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from lastcall.clock import Clock
from lastcall.errors import NotFound
from lastcall.outgoing.addresses import Resolve, resolve
from lastcall.people.providers import slack
from lastcall.people.providers.discord import Discord
from lastcall.people.providers.discovery import Discovery
from lastcall.people.providers.openid import OpenId
from lastcall.people.providers.provider import Provider, ProviderWay
from lastcall.people.providers.transport import ProviderClient


class Entry(Protocol):
    """What is asked of the settings of one provider."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def client_id(self) -> str: ...
    @property
    def client_secret(self) -> str: ...
    @property
    def issuer(self) -> str | None: ...
    @property
    def label(self) -> str: ...
    @property
    def private_network(self) -> bool: ...


class Providers:
    """The providers that people may use here."""

    def __init__(self, ways: Mapping[str, ProviderWay], public_url: str) -> None:
        self._ways = ways
        self._public_url = public_url.rstrip("/")

    @property
    def all(self) -> Sequence[Provider]:
        """For the buttons, in the order of the settings."""
        return [way.provider for way in self._ways.values()]

    def way(self, name: str) -> ProviderWay:
        """Raises ``NotFound`` for a name that the settings do not have."""
        try:
            return self._ways[name]
        except KeyError:
            raise NotFound("not_found", "There is no such page.") from None

    def redirect_uri(self, name: str) -> str:
        """Where the provider sends the browser back to, as it must be registered there. Each provider has its
        own, so that an answer of one cannot come in as another's."""
        return f"{self._public_url}/sign-in/with/{name}/back"


def providers_from(
    entries: Iterable[Entry], public_url: str, clock: Clock, look_up: Resolve = resolve
) -> Providers:
    """The providers that the settings name."""
    return Providers({entry.name: _way(entry, clock, look_up) for entry in entries}, public_url)


def _way(entry: Entry, clock: Clock, look_up: Resolve) -> ProviderWay:
    provider = Provider(entry.name, entry.label, entry.client_id, entry.client_secret)
    client = ProviderClient(private=entry.private_network, look_up=look_up)
    if entry.kind == "discord":
        return Discord(provider, client)
    if entry.kind == "slack":
        return slack.Slack(provider, client, Discovery(slack.ISSUER, client, clock, slack.ENDPOINTS))
    return OpenId(provider, client, Discovery(entry.issuer or "", client, clock))
