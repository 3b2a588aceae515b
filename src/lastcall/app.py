"""The rooms, put together. Read here what hangs on what: every registration and every route is listed
once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from litestar import Litestar, Request, Response
from litestar.datastructures import State
from litestar.types import Message, Scope

import lastcall.access.registration
import lastcall.api.v1.personal
import lastcall.clubs.registration
import lastcall.connections.registration
import lastcall.decisions.registration
import lastcall.events.registration
import lastcall.operations.listeners
import lastcall.people.personal
import lastcall.reads.registration
import lastcall.spending.registration
import lastcall.telemetry.listeners
from lastcall.access.slack.api import SlackApi
from lastcall.access.slack.channel import SlackChannel
from lastcall.access.slack.installing import BACK, Slack
from lastcall.access.slack.vault import Vault
from lastcall.api.heads import HeadAnswers
from lastcall.api.intake import BODY_LIMIT, FOR_PROGRAMS, Intake
from lastcall.api.mcp.endpoint import McpEndpoint
from lastcall.api.ops.awake import Awake, of_owners
from lastcall.api.ops.routes import Ops, ops_routes
from lastcall.api.problems import problem
from lastcall.api.slack import slack_routes
from lastcall.api.v1.api import api_routes
from lastcall.api.worker.routes import worker_routes
from lastcall.api.worker.services import WorkerServices
from lastcall.clock import SYSTEM_CLOCK, Clock
from lastcall.clubs.deletion import club_deletion_owner
from lastcall.connections.expiry import lease_expiry_owner
from lastcall.connections.keys import KeyRing
from lastcall.connections.looks import LookWork
from lastcall.connections.work import WorkBoard, WorkSource
from lastcall.db.database import Database
from lastcall.deadlines.owner import Owner
from lastcall.deadlines.scheduler import Scheduler
from lastcall.deadlines.wake import WakeChannel
from lastcall.decisions.deliveries.channels import register_channel
from lastcall.decisions.deliveries.handing import AgentWaits
from lastcall.decisions.deliveries.sending import deliveries_owner
from lastcall.decisions.deliveries.tellings import telling_owners
from lastcall.decisions.inbox.source import sources
from lastcall.decisions.questions.expiry import decision_expiry_owner
from lastcall.decisions.retention.kinds import KINDS
from lastcall.decisions.retention.refreshes import retention_refresh_owner
from lastcall.decisions.retention.sweep import retention_owner
from lastcall.mail.mailer import Mailer
from lastcall.mail.server import mail_server
from lastcall.operations.owners import operation_owners
from lastcall.operations.services.worker import WorkerSteps
from lastcall.operations.work import OperationWork
from lastcall.people.data_retention import data_retention
from lastcall.people.offer import Offer
from lastcall.people.passkey_answers import relying_party
from lastcall.people.providers.providers import providers_from
from lastcall.reads.expiry import read_expiry_owner
from lastcall.reads.work import ReadWork
from lastcall.reads.worker import ReadSteps
from lastcall.settings import Settings
from lastcall.spending.months import budget_months_owner
from lastcall.web.access import Cookies
from lastcall.web.assets import Assets
from lastcall.web.inbox import TOPIC as INBOX
from lastcall.web.live import LiveHub
from lastcall.web.pages import Pages
from lastcall.web.problems import page_problem
from lastcall.web.room import Web
from lastcall.web.routes import web_routes

CONTENT_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; object-src 'none'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)


def register() -> None:
    """What a lower room does when a higher one changes. Registering twice is once."""
    lastcall.people.personal.register()
    lastcall.clubs.registration.register()
    lastcall.access.registration.register()
    lastcall.decisions.registration.register()
    lastcall.spending.registration.register()
    lastcall.events.registration.register()
    lastcall.connections.registration.register()
    lastcall.operations.listeners.register()
    lastcall.reads.registration.register()
    lastcall.telemetry.listeners.register()
    lastcall.api.v1.personal.register()


def deadline_owners(settings: Settings, database: Database, mailer: Mailer, clock: Clock) -> list[Owner]:
    """Every kind of deadline. Retention hangs on the maintenance switch, what settles operations does not
    (SCH-02).
    """
    retention: list[Owner] = []
    if settings.maintenance:
        retention = [
            *(retention_owner(database, kind, clock) for kind in KINDS.values()),
            retention_refresh_owner(database, clock),
            decision_expiry_owner(database, clock),
            data_retention(database),
            *telling_owners(database, clock),
        ]
    return [
        *retention,
        *operation_owners(database, mailer, clock),
        deliveries_owner(database, mailer, clock),
        budget_months_owner(database, clock),
        lease_expiry_owner(database),
        read_expiry_owner(database, clock),
        club_deletion_owner(database, clock),
    ]


def work_sources(database: Database) -> list[WorkSource]:
    """What collectors are woken for."""
    return [LookWork(database), OperationWork(database), ReadWork(database)]


def mailer(settings: Settings, database: Database) -> Mailer:
    """What sends mail for this installation. Raises ``Invalid`` when the settings name no usable mail server."""
    return Mailer(database, mail_server(settings.mail_url, settings.mail_from), settings.public_url)


def offer(settings: Settings, clock: Clock) -> Offer:
    """What people may sign in with here beside links."""
    return Offer(
        relying_party(settings.public_url), providers_from(settings.providers, settings.public_url, clock)
    )


def slack(settings: Settings) -> Slack | None:
    """The Slack app of this installation, if the settings name one."""
    app, secret, signing = (
        settings.slack_client_id,
        settings.slack_client_secret,
        settings.slack_signing_secret,
    )
    if app is None or secret is None or signing is None:
        return None
    back = settings.public_url.rstrip("/") + BACK
    return Slack(SlackApi(app, secret, signing, settings.slack_url), Vault(settings.home), back)


class House:
    """One server process: its database and everything in it that lives as long as the process does."""

    def __init__(self, settings: Settings, database: Database, clock: Clock = SYSTEM_CLOCK) -> None:
        register()
        self.settings = settings
        self.database = database
        self.mailer = mailer(settings, database)
        self.slack = slack(settings)
        if self.slack is not None:
            register_channel(SlackChannel(self.slack, settings.public_url))
        owners = deadline_owners(settings, database, self.mailer, clock)
        self.scheduler = Scheduler(database, owners, clock)
        self.board = WorkBoard(database, work_sources(database), clock)
        self.wake_channel = WakeChannel(database, clock) if settings.wake_channel else None
        self.live = LiveHub(database.bus, clock, {topic: INBOX for one in sources() for topic in one.topics})
        self.agent_waits = AgentWaits(database, clock)
        self.workers = WorkerServices(
            db=database,
            keys=KeyRing(database, clock),
            board=self.board,
            steps=WorkerSteps(database, clock),
            reads=ReadSteps(database, clock),
        )
        self.mcp = McpEndpoint(database, settings.public_url)
        self.cookies = Cookies(is_secure=settings.is_https)
        self.offer = offer(settings, clock)
        self.pages = Pages(Assets(), self.cookies, self.offer)

    def awake(self) -> tuple[Awake, ...]:
        """What lives in this process alone, so that no alarm from outside brings it back (SCH-09)."""
        return (
            *of_owners(self.scheduler.status),
            Awake(
                "collectors_waiting",
                "Collectors wait here for work, and are told of it by this process alone.",
                lambda: sum(one.is_waiting for one in self.board.presence()),
            ),
            Awake("agents_waiting", "Agents wait here to be told.", lambda: self.agent_waits.waiting),
            Awake("pages_open", "Open pages follow what happens here.", lambda: self.live.open_streams),
            Awake("mail_under_way", "Mail is on its way.", lambda: self.mailer.under_way),
            Awake(
                "wake_channel_on",
                "Other processes say here what they committed; asleep, nobody hears it.",
                lambda: int(self.wake_channel is not None),
            ),
        )

    def begin_stop(self) -> None:
        """The first step of a stop: live streams and long polls end, and the scheduler takes no further
        row.
        """
        self.live.close()
        self.board.stop()
        self.agent_waits.stop()
        self._stopping = asyncio.ensure_future(self.scheduler.stop())

    @asynccontextmanager
    async def lifespan(self, _: Litestar) -> AsyncIterator[None]:
        """What runs while requests are served, and ends after the last of them."""
        if self.wake_channel:
            await self.wake_channel.start()
        await self.scheduler.start()
        await self.mailer.start()
        try:
            async with self.mcp.running():
                yield
        finally:
            self.begin_stop()
            await self.scheduler.stop()
            await self.mailer.stop()
            if self.slack is not None:
                self.slack.api.close()
            if self.wake_channel:
                await self.wake_channel.stop()


def create_app(house: House, *, logs_requests: bool = False) -> Litestar:
    """The ASGI application over an open database. ``logs_requests``: one line each."""
    web = Web(
        database=house.database,
        pages=house.pages,
        live=house.live,
        deadlines=house.scheduler.status,
        presence=house.board.presence,
        mailer=house.mailer,
        public_url=house.settings.public_url,
        offer=house.offer,
        slack=house.slack,
    )
    headers = _Headers(is_https=house.settings.is_https)
    app = Litestar(
        route_handlers=[
            web_routes(),
            api_routes(),
            ops_routes(Ops(house.database, house.scheduler, house.awake())),
            house.mcp.route(),
            *worker_routes(house.workers),
            *slack_routes(house.slack, house.database, house.settings.public_url),
        ],
        lifespan=[house.lifespan],
        state=State(
            {
                "database": house.database,
                "mailer": house.mailer,
                "cookies": house.cookies,
                "web": web,
                "agent_waits": house.agent_waits,
            }
        ),
        exception_handlers={Exception: _answer},
        before_send=[headers],
        request_max_body_size=BODY_LIMIT,
        openapi_config=None,
        logging_config=None,
    )
    app.asgi_handler = Intake(
        HeadAnswers(app.asgi_handler),
        public_url=house.settings.public_url,
        trust_proxy=house.settings.trust_proxy,
        headers=headers.raw,
        logs_requests=logs_requests,
    )
    return app


def _answer(request: Request[Any, Any, Any], exception: Exception) -> Response[Any]:
    """The one place where an error becomes an answer, where no router did it before."""
    if request.url.path.startswith(FOR_PROGRAMS):
        return problem(request, exception)
    return page_problem(request, exception)


class _Headers:
    """Puts the security headers on every answer, errors and files too."""

    def __init__(self, *, is_https: bool) -> None:
        self._headers = {
            "content-security-policy": CONTENT_POLICY,
            "referrer-policy": "no-referrer",
            "x-content-type-options": "nosniff",
            "x-frame-options": "DENY",
            "cross-origin-opener-policy": "same-origin",
            "cross-origin-resource-policy": "same-origin",
            "permissions-policy": "camera=(), microphone=(), geolocation=()",
        }
        if is_https:
            self._headers["strict-transport-security"] = "max-age=31536000"
        self.raw = [(name.encode(), value.encode()) for name, value in self._headers.items()]

    async def __call__(self, message: Message, _: Scope) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *self.raw]
