"""What goes to an authenticator and what comes back, read with care: the answer is made by whoever sends it."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import structlog
from webauthn import (
    generate_authentication_options,
    generate_registration_options,
    verify_authentication_response,
    verify_registration_response,
)
from webauthn.authentication.verify_authentication_response import VerifiedAuthentication
from webauthn.helpers import (
    options_to_json_dict,
    parse_authentication_credential_json,
    parse_client_data_json,
    parse_registration_credential_json,
)
from webauthn.helpers.structs import (
    AuthenticationCredential,
    AuthenticatorSelectionCriteria,
    CollectedClientData,
    PublicKeyCredentialDescriptor,
    RegistrationCredential,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)
from webauthn.registration.verify_registration_response import VerifiedRegistration

from lastcall.errors import Invalid
from lastcall.people.actor import Actor

ANSWER_LENGTH = 16 * 1024  # characters; an answer has about one thousand
TIMEOUT = 300_000  # milliseconds that a browser gives the person; WCAG 2.2.1 wants them unhurried
REASON_LENGTH = 200  # characters of a reason that go into the log; some repeat what was sent
NEEDED = UserVerificationRequirement.REQUIRED

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class RelyingParty:
    """This installation, to an authenticator: passkeys are bound to ``id`` and answer on ``origin`` alone."""

    id: str
    origin: str


def relying_party(public_url: str) -> RelyingParty | None:
    """From the address that browsers use; ``None`` where browsers have no passkeys: on an IP address, and on
    plain http but for localhost.
    """
    url = urlsplit(public_url)
    host = url.hostname or ""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        is_local = host == "localhost" or host.endswith(".localhost")
        if not host or (url.scheme != "https" and not is_local):
            return None
        port = url.port
        usual = {"https": 443, "http": 80}[url.scheme]
        return RelyingParty(
            host, f"{url.scheme}://{host}" + (f":{port}" if port not in (None, usual) else "")
        )
    return None


def creation_options(
    party: RelyingParty, state: str, actor: Actor, email: str, known: Sequence[PublicKeyCredentialDescriptor]
) -> dict[str, Any]:
    """Options for a passkey that is found without a user name. The authenticator keeps the person's id and shows
    ``email`` where somebody has several.
    """
    return options_to_json_dict(
        generate_registration_options(
            rp_id=party.id,
            rp_name="Lastcall",
            user_id=actor.person_id.bytes,
            user_name=email,
            user_display_name=actor.display_name,
            challenge=state.encode(),
            timeout=TIMEOUT,
            exclude_credentials=list(known),
            authenticator_selection=AuthenticatorSelectionCriteria(
                resident_key=ResidentKeyRequirement.REQUIRED, user_verification=NEEDED
            ),
        )
    )


def assertion_options(
    party: RelyingParty, state: str, known: Sequence[PublicKeyCredentialDescriptor]
) -> dict[str, Any]:
    """Options for an answer by one of ``known``; by any passkey for this place when there are none."""
    return options_to_json_dict(
        generate_authentication_options(
            rp_id=party.id,
            challenge=state.encode(),
            timeout=TIMEOUT,
            allow_credentials=list(known),
            user_verification=NEEDED,
        )
    )


@dataclass(frozen=True)
class Registration:
    """A new passkey as the browser sent it; nothing of it is true before ``verified``."""

    state: str
    party: RelyingParty
    credential: RegistrationCredential

    @property
    def transports(self) -> list[str]:
        return [transport.value for transport in self.credential.response.transports or ()]

    def verified(self) -> VerifiedRegistration:
        """The key. Raises ``Invalid`` when anything about the answer does not hold."""
        try:
            return verify_registration_response(
                credential=self.credential,
                expected_challenge=self.state.encode(),
                expected_rp_id=self.party.id,
                expected_origin=self.party.origin,
                require_user_verification=True,
            )
        except Exception as error:
            raise _unfit(error) from error


@dataclass(frozen=True)
class Assertion:
    """An answer of a passkey as the browser sent it; nothing of it is true before ``verified``."""

    state: str
    party: RelyingParty
    credential: AuthenticationCredential

    @property
    def credential_id(self) -> bytes:
        return self.credential.raw_id

    def is_of(self, person_id: UUID) -> bool:
        """Whether the authenticator means this person. One that keeps no user handle says nothing, which is
        enough for a confirmation, where the credential was named to it."""
        return self.credential.response.user_handle in (None, b"", person_id.bytes)

    def verified(self, public_key: bytes) -> VerifiedAuthentication | None:
        """The answer, if it is for this challenge, place and origin, checked the person, and is signed by the
        key. The count is judged by the caller, who knows the last one.
        """
        try:
            return verify_authentication_response(
                credential=self.credential,
                expected_challenge=self.state.encode(),
                expected_rp_id=self.party.id,
                expected_origin=self.party.origin,
                credential_public_key=public_key,
                credential_current_sign_count=NO_COUNT,
                require_user_verification=True,
            )
        except Exception as error:  # noqa: BLE001 - whatever a forged answer makes a parser raise, it is no
            log.info("passkey refused", reason=(str(error) or type(error).__name__)[:REASON_LENGTH])
            return None


NO_COUNT = -1
"""Lower than any count, so that the library leaves judging it to us, under the row's lock."""


def read_registration(party: RelyingParty, answer: str) -> Registration:
    """Raises ``Invalid`` for what is no answer to a creation."""
    try:
        credential = parse_registration_credential_json(_short(answer))
        client_data = parse_client_data_json(credential.response.client_data_json)
        return Registration(_state(client_data), party, credential)
    except Exception as error:
        raise _unfit(error) from error


def read_assertion(party: RelyingParty, answer: str) -> Assertion:
    """Raises ``Invalid`` for what is no answer to a request."""
    try:
        credential = parse_authentication_credential_json(_short(answer))
        client_data = parse_client_data_json(credential.response.client_data_json)
        return Assertion(_state(client_data), party, credential)
    except Exception as error:
        raise _unfit(error) from error


def _short(answer: str) -> str:
    if len(answer) > ANSWER_LENGTH:
        raise ValueError("too long")
    return answer


def _state(client_data: CollectedClientData) -> str:
    if client_data.cross_origin:
        raise ValueError("asked for inside another site's page")
    return client_data.challenge.decode("ascii")


def _unfit(error: Exception) -> Invalid:
    log.info("passkey answer refused", reason=(str(error) or type(error).__name__)[:REASON_LENGTH])
    return Invalid(
        "passkey_unfit",
        "The browser's answer does not fit, so nothing was done.",
        advice="Try again; if it stays so, use another browser or another way to sign in.",
        field="credential",
    )
