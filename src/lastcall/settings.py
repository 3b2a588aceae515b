"""Every setting of Lastcall, from ``lastcall.toml`` and the environment.

A setting ``port`` is written ``port = 8420`` in ``lastcall.toml`` of the current folder, or
``LASTCALL_PORT=8420`` in the environment, which wins. Only the database's address goes by its usual name,
``DATABASE_URL``. A name that nobody knows is refused rather than ignored, because a misspelt setting
otherwise looks like one that does not work.

This module imports nothing of the house but its errors, and only ``app.py``, the commands and the
collector's entry read it.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from lastcall.account_settings import ACCOUNT_PREFIX, AccountSettings, accounts_of
from lastcall.errors import Invalid
from lastcall.provider_settings import PROVIDER_PREFIX, ProviderSettings, providers_of
from lastcall.settings_tables import BOOLEANS

PREFIX = "LASTCALL_"
DATABASE_URL = "DATABASE_URL"
FILE_NAME = "lastcall.toml"


def default_home() -> Path:
    """The XDG data home: where an installation without ``LASTCALL_HOME`` keeps its database and state."""
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "lastcall"


@dataclass(frozen=True)
class Settings:
    """What can be set. Each field's type is what its value is checked against."""

    home: Path = field(default_factory=default_home)
    """The folder of the embedded database and the collector's state."""
    database_url: str | None = None
    """A PostgreSQL server of one's own; without it the embedded one is started in ``home``."""
    postgres_bin: Path | None = None
    """The folder of PostgreSQL programs to run the embedded database with; else they are looked for."""
    host: str = "127.0.0.1"
    """The address that the server listens on."""
    port: int = 8420
    """The port that the server listens on; 0 takes a free one."""
    public_url: str = "http://localhost:8420"
    """How browsers reach the server; another ``port`` changes it unless it is set too. With https,
    cookies are marked Secure.
    """
    trust_proxy: bool = False
    """Whether a proxy in front is the only way in, so that its X-Forwarded headers may be believed."""
    mail_url: str | None = field(default=None, repr=False)
    """The mail server: ``smtp+starttls://user:password@host:587``, ``smtps://`` or, on this computer,
    ``smtp://localhost``. Without it no mail is sent, and links are made on the command line.
    """
    mail_from: str | None = None
    """Who mail comes from, like ``Lastcall <lastcall@club.example>``; needed with ``mail_url``."""
    providers: tuple[ProviderSettings, ...] = ()
    """Providers to sign in with, beside links and passkeys: a table each, see below."""
    slack_client_id: str | None = None
    """The Slack app that clubs put into their workspaces; without it there is no Slack. The other two go with it."""
    slack_client_secret: str | None = field(default=None, repr=False)
    """The app's client secret."""
    slack_signing_secret: str | None = field(default=None, repr=False)
    """The secret with which Slack signs what it sends."""
    slack_url: str = "https://slack.com"
    """Where Slack is, or a simulated one."""
    wake_channel: bool = False
    """Repeats signals between processes; a process with a single role needs it."""
    maintenance: bool = True
    """Whether this process archives what nobody decides (SCH-02) and forgets old personal data. Lateness and
    recovery do not hang on it.
    """
    simulator_host: str = "127.0.0.1"
    """The address that the simulated VRChat listens on."""
    simulator_port: int = 8421
    """The port that the simulated VRChat listens on; 0 takes a free one."""
    server_url: str = "http://127.0.0.1:8420"
    """Where a collector finds the server."""
    account: str | None = None
    """The id of the account that a collector runs."""
    worker_key: str | None = field(default=None, repr=False)
    """The key of that account, as ``lastcall account add`` printed it."""
    vrchat_url: str = "https://api.vrchat.cloud/api/1"
    """Where the collector finds VRChat, or a simulated one."""
    vrchat_contact: str | None = None
    """An address for the User-Agent, so that the provider can reach whoever runs this."""
    vrchat_username: str | None = None
    """The account's user name, for a sign-in without a person at the terminal."""
    vrchat_password: str | None = field(default=None, repr=False)
    """The account's password; it is used to sign in and kept nowhere."""
    vrchat_totp_secret: str | None = field(default=None, repr=False)
    """The secret of the account's authenticator app, from which its codes are made."""
    accounts: tuple[AccountSettings, ...] = ()
    """More accounts for the same collector: a table each, see below."""
    metrics_port: int | None = None
    """A port on loopback at which a collector shows its figures to Prometheus; 0 takes a free one. Not set: none."""

    @property
    def is_https(self) -> bool:
        return urlsplit(self.public_url).scheme == "https"


def _environment_name(name: str) -> str:
    return DATABASE_URL if name == "database_url" else PREFIX + name.upper()


SLACK = ("slack_client_id", "slack_client_secret", "slack_signing_secret")
TABLES = ("providers", "accounts")
"""The settings that are tables, any number of each."""
_FIELDS = {item.name: item for item in fields(Settings) if item.name not in TABLES}
_BY_ENVIRONMENT = {_environment_name(name): name for name in _FIELDS}


def load(
    environment: Mapping[str, str] | None = None, folder: Path | None = None, **overrides: Any
) -> Settings:
    """Read the settings; ``overrides`` (from a command's options) win when they are not ``None``.

    Raises ``Invalid`` naming the setting, where it came from and what it should be.
    """
    environment = os.environ if environment is None else environment
    path = (folder or Path.cwd()) / FILE_NAME
    from_file, tables = _from_file(path)
    given = from_file | _from_environment(environment)
    given |= {name: (name, value) for name, value in overrides.items() if value is not None}
    if "port" in given and "public_url" not in given:
        given["public_url"] = ("public_url", f"http://localhost:{given['port'][1]}")
    values = {name: _value(name, source, raw) for name, (source, raw) in given.items()}
    settings = Settings(
        **values,
        providers=providers_of(tables["providers"], environment, str(path)),
        accounts=accounts_of(tables["accounts"], environment, str(path)),
    )
    _check_ranges(settings, {name: source for name, (source, _) in given.items()})
    return settings


def _from_file(path: Path) -> tuple[dict[str, tuple[str, Any]], dict[str, Mapping[str, Any]]]:
    """The plain settings, and the tables by what they are of."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}, {kind: {} for kind in TABLES}
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid("settings_unreadable", f"The settings file {path} cannot be read: {error}.") from error
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Invalid(
            "settings_unreadable", f"The settings file {path} is not valid TOML: {error}."
        ) from error
    tables = {kind: values.pop(kind, {}) for kind in TABLES}
    for kind, found in tables.items():
        if not isinstance(found, Mapping):
            raise Invalid("wrong_setting", f"{kind} in {path} must be tables like [{kind}.name].")
    for name in values:
        if name not in _FIELDS:
            raise _unknown(name, f"in {path}", str)
    return {name: (f"{name} in {path}", value) for name, value in values.items()}, tables


def _from_environment(environment: Mapping[str, str]) -> dict[str, tuple[str, Any]]:
    given: dict[str, tuple[str, Any]] = {}
    for key, value in environment.items():
        if key in _BY_ENVIRONMENT:
            given[_BY_ENVIRONMENT[key]] = (key, value)
        elif key.startswith(PREFIX) and not key.startswith((PROVIDER_PREFIX, ACCOUNT_PREFIX)):
            raise _unknown(key, "in the environment", _environment_name)
    return given


def _unknown(name: str, where: str, spelled: Callable[[str], str]) -> Invalid:
    bare = name.removeprefix(PREFIX).lower()
    nearest = spelled(difflib.get_close_matches(bare, _FIELDS, n=1, cutoff=0.0)[0])
    return Invalid(
        "unknown_setting",
        f"There is no setting {name} ({where}); the nearest one is {nearest}.",
        advice="Correct the name or remove it.",
        field=name,
    )


def _value(name: str, source: str, raw: Any) -> Any:
    kind = str(_FIELDS[name].type).removesuffix(" | None")
    if kind == "str" and isinstance(raw, str) and raw.strip():
        return raw.strip()
    if kind == "Path" and isinstance(raw, (str, Path)) and str(raw).strip():
        return Path(raw).expanduser().absolute()
    if kind == "bool" and isinstance(raw, bool):
        return raw
    if kind == "bool" and isinstance(raw, str) and raw.strip().lower() in BOOLEANS:
        return BOOLEANS[raw.strip().lower()]
    if kind == "int" and isinstance(raw, int) and not isinstance(raw, bool):
        return raw
    if kind == "int" and isinstance(raw, str) and raw.strip().isascii() and raw.strip().isdigit():
        return int(raw)
    wanted = {"str": "text", "Path": "a folder", "bool": "true or false", "int": "a whole number"}[kind]
    is_secret = any(part in name for part in ("key", "password", "secret", "mail_url", "database_url"))
    shown = "" if is_secret else f", not {raw!r}"
    raise Invalid("wrong_setting", f"The setting {source} must be {wanted}{shown}.", field=name)


def _check_ranges(settings: Settings, sources: Mapping[str, str]) -> None:
    for name in ("port", "simulator_port", "metrics_port"):
        if not 0 <= (getattr(settings, name) or 0) <= 65535:
            raise Invalid(
                "wrong_setting",
                f"The setting {sources.get(name, name)} must be a port from 1 to 65535 (0 takes a free one), "
                f"not {getattr(settings, name)}.",
                field=name,
            )
    for name in ("public_url", "server_url", "vrchat_url", "slack_url"):
        if not _is_web_address(getattr(settings, name)):
            raise Invalid(
                "wrong_setting",
                f"The setting {sources.get(name, name)} must be an address like https://example.org, "
                f"not {getattr(settings, name)!r}.",
                field=name,
            )
    for name in ("slack_client_secret", "slack_signing_secret", "slack_client_id"):
        if getattr(settings, name) is None and any(other in sources for other in SLACK):
            raise Invalid(
                "wrong_setting",
                f"The setting {name} is missing, which goes with {' and '.join(o for o in SLACK if o != name)}.",
                advice="Set all three, or none.",
                field=name,
            )
    if urlsplit(settings.public_url).path.strip("/"):
        raise Invalid(
            "wrong_setting",
            f"The setting {sources.get('public_url', 'public_url')} must be an address without a path, "
            f"not {settings.public_url!r}: every page's address begins at the host.",
            field="public_url",
        )


def _is_web_address(text: str) -> bool:
    try:
        url = urlsplit(text)
        # Both are read later, where nobody expects that they cannot be.
        host, _ = (url.hostname or "").encode("idna"), url.port
    except ValueError:
        return False
    return url.scheme in {"http", "https"} and bool(host)
