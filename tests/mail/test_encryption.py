"""Where encryption is asked for, nothing is said without it: neither a password nor whom the mail is for."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import aiosmtplib
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.mail.conftest import FROM, SAM

from lastcall.mail.server import mail_server
from lastcall.mail.smtp import Attempt, Outcome
from lastcall.mail.states import MailState
from lastcall.testing.mail import MailSink


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Key and certificate of 127.0.0.1, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sink")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "sink.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return path


def tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


async def attempt(sink: MailSink, scheme: str) -> Outcome:
    server = mail_server(f"{scheme}://127.0.0.1:{sink.port}", FROM)
    assert server is not None
    return await Attempt(server, SAM, b"Subject: x\r\n\r\nbody\r\n").make()


async def test_a_server_that_offers_no_encryption_gets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody in between takes the offer out: STARTTLS is not in the answer to EHLO."""
    async with MailSink() as stripped:
        outcome = await attempt(stripped, "smtp+starttls")
        assert outcome.state is MailState.FAILED
        assert "STARTTLS" in (outcome.error or "")
        assert (stripped.connections, stripped.senders, stripped.received) == (1, [], [])
        as_offered: Callable[..., Any] = aiosmtplib.SMTP
        monkeypatch.setattr(aiosmtplib, "SMTP", lambda **given: as_offered(**given | {"start_tls": None}))
        assert (await attempt(stripped, "smtp+starttls")).state is MailState.SENT  # the twin: "if offered"


async def test_a_server_whose_certificate_nobody_vouches_for_gets_nothing(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with MailSink(tls=tls(certificate)) as sink:
        outcome = await attempt(sink, "smtp+starttls")
        assert outcome.state is MailState.FAILED
        assert (sink.senders, sink.received) == ([], [])
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))  # how an operator names a CA of their own
        assert await attempt(sink, "smtp+starttls") == Outcome(MailState.SENT)
        assert len(sink.received) == 1
        assert (await attempt(sink, "smtps")).state is MailState.FAILED  # it speaks no TLS at once
