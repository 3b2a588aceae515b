"""The real server in a process of its own, at its loudest, with real mail and a real provider."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import httpx2
from tests.people.openid_provider import CLIENT, SECRET, OpenIdProvider, openid_provider
from tests.web.conftest import PLAIN, Visitor

from lastcall.testing.mail import MailSink
from lastcall.testing.waiting import eventually

SOURCE = Path(__file__).resolve().parents[2] / "src"
SERVE = """
import logging, os, traceback
import structlog
from lastcall.cli import cli, logs, running

quiet = logs.set_up_logs
house = open(os.environ["HOUSE_LOG"], "a", buffering=1)

def tee(_logger, _name, event):
    # What the house hands to its logger, before what looks secret is taken out of the line.
    error = event.get("exc_info")
    print(event, *(traceback.format_exception(error) if isinstance(error, Exception) else ()), file=house)
    return event

def loud():
    quiet()
    structlog.configure(
        processors=[tee, *structlog.get_config()["processors"]],
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG),
    )
    logging.getLogger().setLevel(logging.DEBUG)

running.set_up_logs = loud
cli()
"""
FORM_COOKIE, SESSION_COOKIE = "lastcall-form", "lastcall"
MAIL_PASSWORD = "a mail password: %&=+"


@dataclass
class House:
    """``secrets`` is everything that was made along the way and lets somebody act as somebody, by what it is."""

    url: str
    sink: MailSink
    provider: OpenIdProvider
    folder: Path
    environment: dict[str, str]
    stack: AsyncExitStack
    secrets: dict[str, str] = field(default_factory=dict)

    def keep(self, what: str, secret: str) -> str:
        self.secrets[f"{what} {len(self.secrets)}"] = secret
        return secret

    async def visitor(self, session: str | None = None) -> Visitor:
        cookies = {SESSION_COOKIE: session} if session else {}
        client = httpx2.AsyncClient(
            base_url=self.url, cookies=cookies, trust_env=False, timeout=20, verify=PLAIN
        )
        return Visitor(await self.stack.enter_async_context(client))

    def keep_cookies(self, visitor: Visitor) -> None:
        for name in (FORM_COOKIE, SESSION_COOKIE):
            if name in visitor.client.cookies:
                self.keep(f"cookie {name}", visitor.client.cookies[name])

    async def form(self, visitor: Visitor, page: str, path: str, **fields: Any) -> httpx2.Response:
        """Open a page and send a form from it."""
        token = self.keep("form token", await visitor.token(page))
        self.keep_cookies(visitor)
        answer = await visitor.client.post(path, data={"form_token": token, **fields})
        self.keep_cookies(visitor)
        return answer

    async def mail(self, address: str, number: int = 1) -> str:
        """The path in a mail, if it has one; its token and its code are kept."""
        mail = await self.sink.mail_to(address, number=number, within=20)
        if re.search(r"^    \S+$", mail.text, re.MULTILINE):
            self.keep("code", self.keep("code as it is shown", mail.code).replace("-", ""))
        if "://" not in mail.text:
            return ""
        self.keep("token in a mail", mail.path.rpartition("/")[2])
        return mail.path

    def keep_flow(self, address: str) -> None:
        """What stands in the address of the provider."""
        asked = parse_qs(urlsplit(address).query)
        for name in ("state", "nonce", "code_challenge"):
            self.keep(name, asked[name][0])

    async def command(self, *arguments: str) -> tuple[str, str]:
        """Run ``lastcall …``; what it showed and what it logged."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "lastcall",
            *arguments,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        shown, logged = await process.communicate()
        assert process.returncode == 0, logged
        return shown.decode(), logged.decode()

    def logs(self) -> dict[str, str]:
        return {
            "what the server wrote": (self.folder / "stderr").read_text()
            + (self.folder / "stdout").read_text(),
            "what it handed to its log": (self.folder / "house").read_text(),
        }


@asynccontextmanager
async def running_house(database_url: str, port: int, folder: Path) -> AsyncIterator[House]:
    """Stopped by a signal at the end, so that the last lines are there too."""
    async with AsyncExitStack() as stack:
        sink = await stack.enter_async_context(MailSink(logins=("porter", MAIL_PASSWORD)))
        provider = await stack.enter_async_context(openid_provider())
        url = f"http://localhost:{port}"
        environment = {
            "PYTHONPATH": str(SOURCE),
            "HOUSE_LOG": str(folder / "house"),
            "LASTCALL_HOME": str(folder / "home"),
            "DATABASE_URL": database_url,
            "LASTCALL_PORT": str(port),
            "LASTCALL_PUBLIC_URL": url,
            "LASTCALL_MAIL_URL": sink.url.replace("//", f"//porter:{quote(MAIL_PASSWORD, safe='')}@"),
            "LASTCALL_MAIL_FROM": "Lastcall <lastcall@club.example>",
            "LASTCALL_PROVIDER_LOCAL_KIND": "openid",
            "LASTCALL_PROVIDER_LOCAL_ISSUER": provider.issuer,
            "LASTCALL_PROVIDER_LOCAL_PRIVATE_NETWORK": "yes",
            "LASTCALL_PROVIDER_LOCAL_CLIENT_ID": CLIENT,
            "LASTCALL_PROVIDER_LOCAL_CLIENT_SECRET": SECRET,
        }
        house = House(url, sink, provider, folder, environment, stack)
        house.keep("mail password", MAIL_PASSWORD)
        house.keep("client secret", SECRET)
        password = urlsplit(database_url).password
        assert password is not None
        house.keep("database password", password)
        with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", SERVE, "serve", env=environment, stdout=out, stderr=err
            )
        try:
            visitor = await house.visitor()

            async def answers() -> bool:
                assert process.returncode is None, (folder / "stderr").read_text()
                try:
                    return (await visitor.get("/ops/health")).status_code == 200
                except httpx2.TransportError:
                    return False

            await eventually(answers, within=30)
            yield house
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
            await process.wait()
