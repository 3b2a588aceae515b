"""What is asked of Slack, by its own client. It blocks, so each call has a thread, and a time after which nobody waits
for it any more. Never called in a transaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.signature import SignatureVerifier

from lastcall.errors import LastcallError, NotFound, Unavailable

CALL_TIMEOUT = timedelta(seconds=8)
"""For one call, its thread's wait included. A delivery is given a little longer, so a slow Slack is found here."""
THREADS = 4
"""Calls at once. What a hanging Slack holds is these threads, and nothing that the rest of the house needs."""
TIMESTAMP_LENGTH = 12  # digits of seconds since 1970; Slack's have ten until the year 2286
SCOPES = "commands,chat:write"

_UNREACHABLE = frozenset({
    "account_inactive", "channel_not_found", "invalid_auth", "not_authed", "token_expired", "token_revoked",
    "user_disabled", "user_not_found",
})  # fmt: skip
"""Slack's words for somebody whom the app does not reach any more, or for an app that was taken out."""


@dataclass(frozen=True)
class Installed:
    """What Slack says of an app that was put into a workspace."""

    team_id: str
    team_name: str
    token: str


class SlackApi:
    """Slack at ``url``, for the app with this id and these secrets."""

    def __init__(self, client_id: str, client_secret: str, signing_secret: str, url: str) -> None:
        self.client_id = client_id
        self.client_secret = client_secret
        self._verifier = SignatureVerifier(signing_secret)
        self._url = url.rstrip("/")
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="slack")

    def is_signed(self, body: bytes, headers: Mapping[str, str]) -> bool:
        """Whether Slack signed this body within the last five minutes."""
        timestamp = headers.get("x-slack-request-timestamp", "")
        signature = headers.get("x-slack-signature", "")
        is_time = timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= TIMESTAMP_LENGTH
        if not (is_time and signature.isascii()):
            return False
        try:
            return self._verifier.is_valid(body, timestamp, signature)
        except UnicodeDecodeError:  # Slack's bodies are text.
            return False

    def install_address(self, redirect: str, state: str) -> str:
        """Where somebody puts the app into their workspace."""
        asked = {"client_id": self.client_id, "scope": SCOPES, "redirect_uri": redirect, "state": state}
        return f"{self._url}/oauth/v2/authorize?{urlencode(asked)}"

    async def exchange(self, code: str, redirect: str) -> Installed:
        """What the code stands for that Slack sent a browser back with. Raises ``NotFound`` for one that Slack does
        not take, ``Unavailable`` when it does not answer."""
        answer = await self._call(
            lambda client: (
                client.oauth_v2_access(
                    client_id=self.client_id,
                    client_secret=self.client_secret,
                    code=code,
                    redirect_uri=redirect,
                ).data
            )
        )
        team, token = answer.get("team"), answer.get("access_token")
        if not isinstance(team, dict) or not isinstance(token, str):
            raise _silent("its answer names no workspace")
        team_id, name = team.get("id"), team.get("name")
        if not isinstance(team_id, str):
            raise _silent("its answer names no workspace")
        return Installed(team_id, name if isinstance(name, str) else team_id, token)

    async def say(self, token: str, slack_user_id: str, text: str) -> None:
        """Send somebody a direct message. Raises ``NotFound`` for somebody whom the app does not reach any more, and
        ``Unavailable`` when it may be tried again."""
        await self._call(
            lambda client: (
                client.chat_postMessage(
                    channel=slack_user_id, text=text, mrkdwn=False, unfurl_links=False, unfurl_media=False
                ).data
            ),
            token,
        )

    async def revoke(self, token: str) -> None:
        """Give the token back. Errors as for ``say``."""
        await self._call(lambda client: client.auth_revoke().data, token)

    def close(self) -> None:
        """No further call is begun."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _call(self, ask: Callable[[WebClient], Any], token: str | None = None) -> Mapping[str, Any]:
        seconds = int(CALL_TIMEOUT.total_seconds())
        client = WebClient(token, f"{self._url}/api/", timeout=seconds, retry_handlers=[])
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CALL_TIMEOUT.total_seconds()):
                answer = await loop.run_in_executor(self._threads, ask, client)
        except SlackApiError as error:
            raise _refused(str(error.response.get("error", "unknown"))) from None
        except (SlackClientError, OSError, TimeoutError, ValueError) as error:
            raise _silent(type(error).__name__) from None
        if not isinstance(answer, dict):
            raise _silent("its answer is not one")
        return answer


def _refused(word: str) -> LastcallError:
    if word in _UNREACHABLE or word in {"invalid_code", "code_already_used", "bad_redirect_uri"}:
        return NotFound("slack_refused", f"Slack does not take this: {word}.", advice="Connect Slack again.")
    return _silent(word)


def _silent(reason: str) -> Unavailable:
    return Unavailable(
        "slack_unavailable", f"Slack gave no usable answer: {reason}.", advice="Try again later."
    )
