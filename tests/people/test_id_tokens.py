"""An ID token lets somebody in only when everything about it holds."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

from lastcall.people.providers import id_tokens
from lastcall.people.providers.id_tokens import Expected, UnknownKey, claims_of, public_keys
from lastcall.people.providers.transport import ProviderFault

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
EXPECTED = Expected("https://id.example.org", "us", "the nonce")
KEY = RSAKey.generate_key(2048, auto_kid=True)
OTHER = RSAKey.generate_key(2048, auto_kid=True)
KEYS = public_keys(KeySet([KEY]).as_dict())
RIGHT: dict[str, Any] = {
    "iss": EXPECTED.issuer,
    "sub": "248289761001",
    "aud": "us",
    "iat": NOW.timestamp(),
    "exp": NOW.timestamp() + 300,
    "nonce": EXPECTED.nonce,
}


def token(*, header: dict[str, Any] | None = None, key: Any = KEY, **claims: Any) -> str:
    body = {name: value for name, value in (RIGHT | claims).items() if value is not None}
    registry = JWSRegistry(algorithms=["RS256", "ES256"], strict_check_header=False)
    return jwt.encode({"alg": "RS256", "kid": KEY.kid} | (header or {}), body, key, registry=registry)


def read(text: Any, *, now: datetime = NOW) -> dict[str, Any]:
    return claims_of(text, KEYS, EXPECTED, now)


def part(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def test_a_token_that_holds_says_who_it_is() -> None:
    assert read(token())["sub"] == "248289761001"
    assert read(token(aud=["us"], azp="us"))["sub"] == "248289761001"
    assert read(token(aud=["us", "them"], azp="us"))["sub"] == "248289761001"
    assert read(token(header={"typ": "JWT", "x-unknown": "is ignored"}))["sub"] == "248289761001"


WRONG: dict[str, dict[str, Any]] = {
    "another issuer": {"iss": "https://id.example.org/"},
    "no issuer": {"iss": None},
    "another audience": {"aud": "them"},
    "no audience": {"aud": None},
    "several audiences without a party": {"aud": ["us", "them"]},
    "another party": {"aud": ["us", "them"], "azp": "them"},
    "another party of one audience": {"azp": "them"},
    "another nonce": {"nonce": "another nonce"},
    "no nonce": {"nonce": None},
    "a nonce that is no text": {"nonce": 7},
    "expired": {"exp": NOW.timestamp() - 61},
    "no expiry": {"exp": None},
    "an expiry that is no number": {"exp": "2027"},
    "a true expiry": {"exp": True},
    "an endless expiry": {"exp": 1e300},
    "issued in the future": {"iat": NOW.timestamp() + 61},
    "not valid yet": {"nbf": NOW.timestamp() + 61},
    "no subject": {"sub": None},
    "an empty subject": {"sub": ""},
    "a subject that is no text": {"sub": 1},
    "an over-long subject": {"sub": "x" * 256},
    "a subject beyond ASCII": {"sub": "ü"},
}


@pytest.mark.parametrize("claims", WRONG.values(), ids=WRONG)
def test_a_token_with_a_wrong_claim_lets_nobody_in(claims: dict[str, Any]) -> None:
    with pytest.raises(ProviderFault):
        read(token(**claims))


@pytest.mark.parametrize(
    ("guard", "claims"),
    [
        (id_tokens._wrong_issuer, {"iss": "https://evil.example.org"}),
        (id_tokens._wrong_audience, {"aud": "them"}),
        (id_tokens._wrong_nonce, {"nonce": "another nonce"}),
        (id_tokens._wrong_time, {"exp": 1.0}),
    ],
)
def test_twin_without_its_check_a_wrong_claim_lets_somebody_in(
    monkeypatch: pytest.MonkeyPatch, guard: Callable[..., Any], claims: dict[str, Any]
) -> None:
    monkeypatch.setattr(id_tokens, "CHECKS", tuple(check for check in id_tokens.CHECKS if check is not guard))
    assert read(token(**claims))["sub"] == "248289761001"


def test_half_a_character_is_a_wrong_nonce_and_no_error() -> None:
    # What JSON's backslash escapes can say and no encoder here writes.
    expected = id_tokens.Expected("https://id.example.org", "us", "a nonce")
    assert id_tokens._wrong_nonce({"nonce": "\ud800"}, expected, NOW) is not None


def test_the_databases_clock_judges_the_time() -> None:
    text = token()
    assert read(text, now=NOW + timedelta(minutes=5, seconds=59))
    with pytest.raises(ProviderFault, match="expired"):
        read(text, now=NOW + timedelta(minutes=6))


def test_a_token_without_a_signature_lets_nobody_in() -> None:
    bare = f"{part({'alg': 'none'})}.{part(RIGHT)}."
    for text in (bare, f"{part({'alg': 'None'})}.{part(RIGHT)}.", token().rsplit(".", 1)[0] + "."):
        with pytest.raises(ProviderFault):
            read(text)


def hs256(secret: bytes) -> str:
    head = f"{part({'alg': 'HS256', 'kid': KEY.kid})}.{part(RIGHT)}"
    mark = hmac.digest(secret, head.encode(), hashlib.sha256)
    return f"{head}.{base64.urlsafe_b64encode(mark).rstrip(b'=').decode()}"


def test_the_public_key_is_no_shared_secret() -> None:
    """Whoever knows the public key, which is everybody, could sign if a shared-secret algorithm were allowed."""
    for secret in (KEY.as_pem(private=False), KEY.as_pem(private=False).strip(), b"us", b""):
        with pytest.raises(ProviderFault, match="not signed as it must be"):
            read(hs256(secret))


def test_a_shared_secret_in_the_key_set_is_left_out() -> None:
    shared = {"kty": "oct", "kid": "shared", "k": base64.urlsafe_b64encode(b"s" * 32).decode()}
    document = {"keys": [shared, *KeySet([KEY]).as_dict()["keys"]]}
    assert [key.kid for key in public_keys(document)] == [KEY.kid]
    with pytest.raises(ProviderFault, match="no usable key"):
        public_keys({"keys": [shared]})


def test_twin_with_other_algorithms_allowed_a_bare_token_lets_somebody_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(id_tokens, "ALGORITHMS", ("none", "RS256"))
    assert read(f"{part({'alg': 'none'})}.{part(RIGHT)}.")["sub"] == "248289761001"


@pytest.mark.parametrize("algorithm", id_tokens.ALGORITHMS)
def test_every_signature_by_a_private_key_is_understood(algorithm: str) -> None:
    curves = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}
    if algorithm.startswith("ES"):
        key: Any = ECKey.generate_key(curves[algorithm], auto_kid=True)
    else:
        key = OKPKey.generate_key("Ed25519", auto_kid=True) if algorithm.startswith("Ed") else KEY
    registry = id_tokens._Registry(algorithms=[algorithm])
    text = jwt.encode({"alg": algorithm, "kid": key.kid}, dict(RIGHT), key, registry=registry)
    assert claims_of(text, public_keys(KeySet([key]).as_dict()), EXPECTED, NOW)["sub"] == "248289761001"


def test_a_signature_of_another_key_lets_nobody_in() -> None:
    with pytest.raises(ProviderFault, match="bad_signature"):
        read(token(key=OTHER))
    with pytest.raises(UnknownKey):
        read(token(key=OTHER, header={"kid": OTHER.kid}))
    with pytest.raises(ProviderFault):
        read(token(key=ECKey.generate_key("P-256"), header={"alg": "ES256"}))


def test_a_changed_claim_breaks_the_signature() -> None:
    head, _, mark = token().split(".")
    with pytest.raises(ProviderFault, match="bad_signature"):
        read(f"{head}.{part(RIGHT | {'sub': 'somebody else'})}.{mark}")


@pytest.mark.parametrize(
    "text", [None, 7, "", "a.b.c", "..", "x" * 40_000, f"{part([])}.{part({})}.x", "é.é.é", {"token": "x"}]
)
def test_what_is_no_token_lets_nobody_in(text: Any) -> None:
    with pytest.raises(ProviderFault):
        read(text)


@pytest.mark.parametrize("document", [{}, {"keys": None}, {"keys": []}, {"keys": [7, {}, {"kty": "RSA"}]}])
def test_a_key_set_without_a_usable_key_is_none(document: dict[str, Any]) -> None:
    with pytest.raises(ProviderFault):
        public_keys(document)


def test_a_key_of_an_unknown_kind_does_not_lock_everybody_out() -> None:
    document = {
        "keys": [{"kty": "AKP", "kid": "new"}, {"kty": "EC", "crv": "P-0"}, *KeySet([KEY]).as_dict()["keys"]]
    }
    assert claims_of(token(), public_keys(document), EXPECTED, NOW)["sub"] == "248289761001"
