"""The settings of sign-in providers: a table ``[providers.<name>]`` each, or ``LASTCALL_PROVIDER_<NAME>_…``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

from lastcall.errors import Invalid
from lastcall.settings_tables import Given, Tables


class ProviderKind(StrEnum):
    OPENID = "openid"
    DISCORD = "discord"
    SLACK = "slack"


@dataclass(frozen=True)
class ProviderSettings:
    """One provider that people may sign in with."""

    name: str
    """Its part of the addresses that are registered with the provider; letters and digits."""
    kind: ProviderKind
    """`openid` for any OpenID provider with discovery, or `discord`, or `slack`."""
    client_id: str
    """What the provider calls this installation."""
    client_secret: str = field(repr=False)
    """The secret that the provider gave for it."""
    issuer: str | None = None
    """For `openid`: the provider's issuer, exactly as its discovery document spells it."""
    label: str = ""
    """What the button says after "Sign in with"; the provider's name when it is not set."""
    private_network: bool = False
    """For `openid`: the provider is in one's own network, so that private addresses and plain http are let
    through, for this provider alone."""


_TABLES = Tables(
    "provider", "A", tuple(item.name for item in fields(ProviderSettings) if item.name != "name")
)
PROVIDER_PREFIX = _TABLES.prefix
_LABELS = {ProviderKind.DISCORD: "Discord", ProviderKind.SLACK: "Slack"}


def providers_of(
    tables: Mapping[str, Any], environment: Mapping[str, str], file_name: str
) -> tuple[ProviderSettings, ...]:
    """Every provider, in the order of their names. Raises ``Invalid`` naming the setting and its place."""
    given = _TABLES.read(tables, environment, file_name)
    return tuple(_provider(name, values) for name, values in given.items())


def _provider(name: str, given: Given) -> ProviderSettings:
    texts = {
        key: _TABLES.text(source, value) for key, (source, value) in given.items() if key != "private_network"
    }
    for key in ("kind", "client_id", "client_secret"):
        if key not in texts:
            raise Invalid("wrong_setting", f"The provider {name} has no {key}.", field="providers")
    try:
        kind = ProviderKind(texts["kind"])
    except ValueError as error:
        kinds = ", ".join(ProviderKind)
        raise Invalid(
            "wrong_setting",
            f"The setting {given['kind'][0]} must be one of {kinds}, not {texts['kind']!r}.",
            field="providers",
        ) from error
    is_private = _TABLES.boolean(*given["private_network"]) if "private_network" in given else False
    _check_issuer(name, kind, texts.get("issuer"), is_private=is_private)
    return ProviderSettings(
        name=name,
        kind=kind,
        client_id=texts["client_id"],
        client_secret=texts["client_secret"],
        issuer=texts.get("issuer"),
        label=texts.get("label") or _LABELS.get(kind) or name.capitalize(),
        private_network=is_private,
    )


def _check_issuer(name: str, kind: ProviderKind, issuer: str | None, *, is_private: bool) -> None:
    if kind is not ProviderKind.OPENID:
        if issuer is not None or is_private:
            raise Invalid(
                "wrong_setting",
                f"The provider {name} is {kind}, whose addresses are known: remove issuer and private_network.",
                field="providers",
            )
        return
    url = urlsplit(issuer or "")
    schemes = {"https", "http"} if is_private else {"https"}
    if url.scheme not in schemes or not url.hostname or url.query or url.fragment or url.username is not None:
        raise Invalid(
            "wrong_setting",
            f"The issuer of the provider {name} must be an address like https://id.example.org, "
            f"not {issuer!r}.",
            advice="Plain http is let through only with private_network.",
            field="providers",
        )
