"""The settings of sign-in providers: a table ``[providers.<name>]`` each, or ``LASTCALL_PROVIDER_<NAME>_…``.

They are a table and not fields of their own, because there may be any number of them. Environment variables
fill in or replace single values of a table, so that a secret need not stand in a file.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

from lastcall.errors import Invalid

PROVIDER_PREFIX = "LASTCALL_PROVIDER_"
_NAME = re.compile(r"[a-z][a-z0-9]{0,30}")
BOOLEANS = {
    "true": True,
    "yes": True,
    "on": True,
    "1": True,
    "false": False,
    "no": False,
    "off": False,
    "0": False,
}


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


_FIELDS = tuple(item.name for item in fields(ProviderSettings) if item.name != "name")
_LABELS = {ProviderKind.DISCORD: "Discord", ProviderKind.SLACK: "Slack"}


def providers_of(
    tables: Mapping[str, Any], environment: Mapping[str, str], file_name: str
) -> tuple[ProviderSettings, ...]:
    """Every provider, in the order of their names. Raises ``Invalid`` naming the setting and its place."""
    given: dict[str, dict[str, tuple[str, Any]]] = {}
    for name, table in tables.items():
        where = f"[providers.{name}] in {file_name}"
        if not isinstance(table, Mapping):
            raise Invalid("wrong_setting", f"{where} must be a table with a kind.", field="providers")
        _check_name(name, where)
        for key, value in table.items():
            if key not in _FIELDS:
                raise _unknown(key, where, key)
            given.setdefault(name, {})[key] = (f"{key} of {where}", value)
    for variable, value in environment.items():
        if variable.startswith(PROVIDER_PREFIX):
            name, key = _split(variable)
            given.setdefault(name, {})[key] = (variable, value)
    return tuple(_provider(name, given[name]) for name in sorted(given))


def _split(variable: str) -> tuple[str, str]:
    """``LASTCALL_PROVIDER_GUILD_CLIENT_ID`` is ``client_id`` of ``guild``."""
    name, _, key = variable.removeprefix(PROVIDER_PREFIX).lower().partition("_")
    _check_name(name, f"the variable {variable}")
    if key not in _FIELDS:
        raise _unknown(variable, "the environment", key)
    return name, key


def _check_name(name: str, where: str) -> None:
    if not _NAME.fullmatch(name):
        raise Invalid(
            "wrong_setting",
            f"The provider's name in {where} must be a small letter, then small letters and digits, at most 31.",
            field="providers",
        )


def _unknown(name: str, where: str, key: str) -> Invalid:
    nearest = difflib.get_close_matches(key, _FIELDS, n=1, cutoff=0.0)[0]
    return Invalid(
        "unknown_setting",
        f"A provider has no setting {name} ({where}); the nearest one is {nearest}.",
        advice="Correct the name or remove it.",
        field="providers",
    )


def _provider(name: str, given: Mapping[str, tuple[str, Any]]) -> ProviderSettings:
    texts = {key: _text(source, value) for key, (source, value) in given.items() if key != "private_network"}
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
    is_private = _boolean(*given["private_network"]) if "private_network" in given else False
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


def _text(source: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or not value.strip().isprintable():
        raise Invalid("wrong_setting", f"The setting {source} must be text.", field="providers")
    return value.strip()


def _boolean(source: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in BOOLEANS:
        return BOOLEANS[value.strip().lower()]
    raise Invalid("wrong_setting", f"The setting {source} must be true or false.", field="providers")
