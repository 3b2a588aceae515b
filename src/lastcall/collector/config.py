"""What a collector needs to know, from the settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from lastcall.errors import Invalid
from lastcall.settings import Settings
from lastcall.vrchat.session import Credentials

ONLY = "account"
"""What the account of the plain settings is called."""


@dataclass(frozen=True)
class AccountConfig:
    """One VRChat account that this process runs. ``credentials`` are used only when it has to sign in; ``name`` says
    at the terminal and in the figures which account is meant."""

    account_id: str
    worker_key: str = field(repr=False)
    credentials: Credentials | None = None
    name: str = ONLY


@dataclass(frozen=True)
class CollectorConfig:
    """``contact`` goes into the User-Agent, as VRChat asks. ``metrics_port``: of loopback, 0 for a free one.

    ``signs_in_anew``: make a new VRChat session although the folder holds one.
    """

    server_url: str
    state_folder: Path
    contact: str
    accounts: tuple[AccountConfig, ...]
    vrchat_url: str
    signs_in_anew: bool = False
    metrics_port: int | None = None


def config_from(settings: Settings) -> CollectorConfig:
    """What the settings say about the collector. Raises ``Invalid`` for one that is missing."""
    if not settings.vrchat_contact:
        raise _missing(
            "vrchat_contact",
            "VRChat asks for an address at which it reaches whoever runs this, such as your mail.",
        )
    accounts = [*_plain_account(settings), *_tables(settings)]
    ids = [account.account_id for account in accounts]
    if len(set(ids)) < len(ids):
        raise Invalid(
            "account_twice",
            "One account stands in the settings twice.",
            advice="Give each account once: as account and worker_key, or as a table.",
            field="accounts",
        )
    return CollectorConfig(
        server_url=settings.server_url,
        state_folder=settings.home / "collector",
        contact=settings.vrchat_contact,
        accounts=tuple(accounts),
        vrchat_url=settings.vrchat_url,
        metrics_port=settings.metrics_port,
    )


def _plain_account(settings: Settings) -> list[AccountConfig]:
    """That of the plain settings; needed where no table names another."""
    if settings.accounts and not settings.account and not settings.worker_key:
        return []
    for name in ("account", "worker_key"):
        if not getattr(settings, name):
            raise _missing(name, "`lastcall account add` prints account and worker key.")
    username, password = settings.vrchat_username, settings.vrchat_password
    if bool(username) != bool(password):
        raise Invalid(
            "wrong_setting",
            "The collector needs both vrchat_username and vrchat_password, or neither.",
            advice="Without them it asks at the terminal when it has to sign in.",
            field="vrchat_username" if password else "vrchat_password",
        )
    credentials = _credentials(username, password, settings.vrchat_totp_secret)
    return [AccountConfig(settings.account or "", settings.worker_key or "", credentials)]


def _tables(settings: Settings) -> list[AccountConfig]:
    return [
        AccountConfig(
            account.id,
            account.worker_key,
            _credentials(account.username, account.password, account.totp_secret),
            account.name,
        )
        for account in settings.accounts
    ]


def _credentials(username: str | None, password: str | None, totp_secret: str | None) -> Credentials | None:
    return Credentials(username, password, totp_secret) if username and password else None


def _missing(name: str, why: str) -> Invalid:
    return Invalid(
        f"{name}_missing",
        f"The collector needs the setting {name}.",
        advice=f"Set LASTCALL_{name.upper()}. {why}",
        field=name,
    )
