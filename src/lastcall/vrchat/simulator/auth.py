"""Signing in: password, second factor, cookies."""

from __future__ import annotations

import base64
import binascii
import secrets
from datetime import timedelta
from urllib.parse import unquote

from lastcall.vrchat.simulator import shapes
from lastcall.vrchat.simulator.messages import Reply, Request, flat_refusal, json_reply, refusal, success
from lastcall.vrchat.simulator.model import User
from lastcall.vrchat.simulator.site import Site
from lastcall.vrchat.totp import STEP, totp

SIGN_INS = 10
"""Sign-ins by password that an account may make in ``SIGN_IN_WINDOW`` before it is locked out."""
SIGN_IN_WINDOW = timedelta(hours=1)
LOCKED_FOR = 4 * 3600


def current_user(site: Site, request: Request) -> Reply:
    """``GET /auth/user``: the user, the question for a second factor, or 401. A password makes a new
    session."""
    user = site.session_user(request)
    headers: tuple[tuple[str, str], ...] = ()
    if user is None:
        signed_in = _by_password(site, request)
        if isinstance(signed_in, Reply):
            return signed_in
        user = signed_in
        cookie = f"authcookie_{secrets.token_hex(16)}"
        site.world.sessions[cookie] = user.id
        headers = (("Set-Cookie", f"auth={cookie}; Path=/; HttpOnly; SameSite=Lax"),)
    if site.needs_second_factor(request, user):
        if user.totp_secret is not None:
            return json_reply({"requiresTwoFactorAuth": ["totp", "otp"]}, headers=headers)
        if headers:
            user.mailed_code = f"{secrets.randbelow(1_000_000):06d}"
        return json_reply({"requiresTwoFactorAuth": ["emailOtp"]}, headers=headers)
    return json_reply(shapes.current_user(site.world, user), headers=headers)


def _by_password(site: Site, request: Request) -> User | Reply:
    scheme, _, encoded = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return missing_credentials()
    try:
        username, _, password = base64.b64decode(encoded, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return missing_credentials()
    user = site.world.user_named(unquote(username))
    if user is None:
        return refusal(401, '"Invalid Username/Email or Password"')
    now = site.now()
    user.sign_ins = [at for at in user.sign_ins if at > now - SIGN_IN_WINDOW]
    user.sign_ins.append(now)
    if len(user.sign_ins) > SIGN_INS:
        return flat_refusal(
            429, "Too many sign-ins. Try again later\u2024", (("Retry-After", str(LOCKED_FOR)),)
        )
    if not secrets.compare_digest(user.password.encode(), unquote(password).encode()):
        return refusal(401, '"Invalid Username/Email or Password"')
    return user


def missing_credentials() -> Reply:
    """401 as VRChat words it: the message is itself in quotes."""
    return refusal(401, '"Missing Credentials"')


def verify_totp(site: Site, request: Request) -> Reply:
    """``POST /auth/twofactorauth/totp/verify``; a code of the neighbouring steps is good too."""
    user = site.session_user(request)
    if user is None:
        return missing_credentials()
    now = site.now()
    secret = user.totp_secret
    good = (
        [] if secret is None else [totp(secret, now + timedelta(seconds=STEP * step)) for step in (-1, 0, 1)]
    )
    return _verified(site, user, is_right=request.json().get("code") in good)


def verify_mailed_code(site: Site, request: Request) -> Reply:
    """``POST /auth/twofactorauth/emailotp/verify``; the code is used up."""
    user = site.session_user(request)
    if user is None:
        return missing_credentials()
    is_right = user.mailed_code is not None and request.json().get("code") == user.mailed_code
    if is_right:
        user.mailed_code = None
    return _verified(site, user, is_right=is_right)


def _verified(site: Site, user: User, *, is_right: bool) -> Reply:
    if not is_right:
        return json_reply({"verified": False}, 400)
    cookie = secrets.token_urlsafe(24)
    site.world.second_factors[cookie] = user.id
    return json_reply(
        {"verified": True}, headers=(("Set-Cookie", f"twoFactorAuth={cookie}; Path=/; HttpOnly"),)
    )


def token(site: Site, request: Request) -> Reply:
    """``GET /auth``: whether the session's cookie is still good."""
    if site.session_user(request) is None:
        return missing_credentials()
    return json_reply({"ok": True, "token": request.cookies()["auth"]})


def sign_out(site: Site, request: Request) -> Reply:
    """``PUT /logout``."""
    if site.world.sessions.pop(request.cookies().get("auth", ""), None) is None:
        return missing_credentials()
    return success("Ok!")
