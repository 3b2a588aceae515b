"""The ID token: what has to be true of it before anybody is let in (OpenID Connect Core 3.1.3.7)."""

from __future__ import annotations

import contextlib
import hmac
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from joserfc import jwt
from joserfc.errors import JoseError, SecurityWarning
from joserfc.jwk import JWKRegistry, KeySet
from joserfc.jws import JWSRegistry

from lastcall.people.providers.provider import is_subject
from lastcall.people.providers.transport import ProviderFault

ALGORITHMS = (
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
    "Ed25519",
)
"""Signatures by a private key that only the provider has. ``none`` and the shared-secret ones are missing on
purpose: with those, the public key or nothing at all would do to sign."""
LEEWAY = timedelta(seconds=60)
"""How far the provider's clock may be from ours."""
TOKEN_LENGTH = 32 * 1024


class UnknownKey(ProviderFault):
    """The token names a key that is not among those we have: the provider may have changed its keys."""


@dataclass(frozen=True)
class Expected:
    """What this server knows before it looks into the token."""

    issuer: str
    client_id: str
    nonce: str


class _Registry(JWSRegistry):
    max_header_length = 8192  # some providers put their certificates into the header

    def get_alg(self, name: str) -> Any:
        """Some providers still call Ed25519 by its older name, of which the library warns."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SecurityWarning)
            return super().get_alg(name)


def public_keys(document: Mapping[str, Any]) -> KeySet:
    """The provider's signing keys, shared secrets left out whatever the document says."""
    keys = document.get("keys")
    if not isinstance(keys, list):
        raise ProviderFault("its key set has no keys")
    usable = []
    for key in keys:
        if isinstance(key, dict) and key.get("kty") != "oct" and key.get("use") != "enc":
            # One key of a kind that is not known here must not lock everybody out.
            with contextlib.suppress(JoseError, ValueError, TypeError, KeyError):
                usable.append(JWKRegistry.import_key(key))
    if not usable:
        raise ProviderFault("its key set has no usable key")
    return KeySet(usable)


def claims_of(token: Any, keys: KeySet, expected: Expected, now: datetime) -> dict[str, Any]:
    """The token's claims once its signature and every claim that guards a sign-in hold.

    Raises ``UnknownKey`` when fetching the keys anew might help, ``ProviderFault`` for everything else.
    """
    if not isinstance(token, str) or len(token) > TOKEN_LENGTH:
        raise ProviderFault("there is no ID token")
    claims = _signed(token, keys)
    for check in CHECKS:
        problem = check(claims, expected, now)
        if problem is not None:
            raise ProviderFault(f"the ID token {problem}")
    return claims


def _signed(token: str, keys: KeySet) -> dict[str, Any]:
    try:
        return jwt.decode(
            token, keys, registry=_Registry(algorithms=ALGORITHMS, strict_check_header=False)
        ).claims
    except JoseError as error:
        if error.error == "invalid_key_id":
            raise UnknownKey("the ID token names an unknown key") from error
        raise ProviderFault(f"the ID token is not signed as it must be ({error.error})") from error
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ProviderFault("the ID token cannot be read") from error


def _wrong_issuer(claims: Mapping[str, Any], expected: Expected, _now: datetime) -> str | None:
    return None if claims.get("iss") == expected.issuer else "is of another issuer"


def _wrong_audience(claims: Mapping[str, Any], expected: Expected, _now: datetime) -> str | None:
    audience = claims.get("aud")
    several = audience if isinstance(audience, list) else [audience]
    if expected.client_id not in several:
        return "is for somebody else"
    party = claims.get("azp")
    if party is None and len(several) > 1:
        return "is for several and does not say who asked"
    return None if party in (None, expected.client_id) else "was asked for by somebody else"


def _wrong_nonce(claims: Mapping[str, Any], expected: Expected, _now: datetime) -> str | None:
    nonce = claims.get("nonce")
    is_ours = isinstance(nonce, str) and hmac.compare_digest(
        nonce.encode(errors="surrogatepass"), expected.nonce.encode()
    )
    return None if is_ours else "answers another question"


def _wrong_time(claims: Mapping[str, Any], _expected: Expected, now: datetime) -> str | None:
    expires, issued = _number(claims.get("exp")), _number(claims.get("iat"))
    moment, leeway = now.timestamp(), LEEWAY.total_seconds()
    if expires is None or issued is None:
        return "has no times"
    if expires <= moment - leeway:
        return "has expired"
    starts = max(issued, _number(claims.get("nbf")) or issued)
    return "is from the future" if starts > moment + leeway else None


def _wrong_subject(claims: Mapping[str, Any], _expected: Expected, _now: datetime) -> str | None:
    return None if is_subject(claims.get("sub")) else "names nobody"


CHECKS = (_wrong_issuer, _wrong_audience, _wrong_nonce, _wrong_time, _wrong_subject)


def _number(value: Any) -> float | None:
    """A NumericDate, which is finite: every comparison with NaN is false, so that would never expire."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if abs(value) < 1e12 else None
