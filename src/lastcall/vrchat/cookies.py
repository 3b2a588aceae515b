"""The two cookies that are a VRChat session, and the encrypted file that keeps them.

Every sign-in by password is a new session for VRChat, and too many lock the account for hours: so the cookies
outlive the process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from http.cookies import CookieError, SimpleCookie
from pathlib import Path

import msgspec
from cryptography.fernet import Fernet, InvalidToken

from lastcall.errors import Invalid

SESSION_COOKIES = ("auth", "twoFactorAuth")
"""What VRChat needs to see again; every other cookie (those of the proxy in front of it) is dropped."""


class Cookies:
    """The session's cookies in memory. ``save`` is called after each change, before the call that caused it
    returns."""

    def __init__(
        self, values: Mapping[str, str] | None = None, save: Callable[[Mapping[str, str]], None] | None = None
    ) -> None:
        self._values = dict(values or {})
        self._save = save

    def header(self) -> str | None:
        """The ``Cookie`` header, or ``None`` without a session."""
        return "; ".join(f"{name}={value}" for name, value in self._values.items()) or None

    def remember(self, set_cookie: Iterable[str]) -> None:
        """Take over what ``Set-Cookie`` headers say; an emptied or outdated cookie is forgotten."""
        before = dict(self._values)
        for line in set_cookie:
            try:
                parsed = SimpleCookie(line)
            except CookieError:
                continue
            for name in SESSION_COOKIES:
                if name in parsed:
                    morsel = parsed[name]
                    if morsel.value and morsel["max-age"] != "0":
                        self._values[name] = morsel.value
                    else:
                        self._values.pop(name, None)
        self._changed_from(before)

    def forget(self, *names: str) -> None:
        """Drop these cookies, or all of them."""
        before = dict(self._values)
        for name in names or SESSION_COOKIES:
            self._values.pop(name, None)
        self._changed_from(before)

    def _changed_from(self, before: Mapping[str, str]) -> None:
        if self._save is not None and before != self._values:
            self._save(self._values)


def cookie_file(path: Path, key: bytes) -> Cookies:
    """Cookies kept in ``path`` (mode 0600), encrypted with the Fernet ``key``; a missing file is an empty
    session.

    Raises ``Invalid`` when the file was written with another key or is damaged: nothing is overwritten then.
    """
    try:
        cipher = Fernet(key)
    except ValueError as error:
        raise Invalid(
            "session_key",
            f"The key of the VRChat session in {path} is damaged.",
            advice="Restore it, or delete the key and the session, and sign in again.",
        ) from error

    def save(values: Mapping[str, str]) -> None:
        _write_private(path, cipher.encrypt(msgspec.json.encode(dict(values))))

    if not path.exists():
        return Cookies(save=save)
    try:
        values = msgspec.json.decode(cipher.decrypt(path.read_bytes()), type=dict[str, str])
    except (InvalidToken, msgspec.DecodeError) as error:
        raise Invalid(
            "session_file",
            f"The VRChat session in {path} cannot be read with this key.",
            advice="Restore the key that belongs to it, or delete the file and sign in again.",
        ) from error
    return Cookies(values, save)


def key_file(path: Path) -> bytes:
    """The Fernet key in ``path``; made, with mode 0600, when there is none yet."""
    if path.exists():
        return path.read_bytes().strip()
    key = Fernet.generate_key()
    _write_private(path, key + b"\n")
    return key


def _write_private(path: Path, content: bytes) -> None:
    """Replace ``path`` in one step: after a crash there is the old content or the new, never half of
    either."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(path.name + ".new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
