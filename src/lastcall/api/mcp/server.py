"""The tools behind the official SDK: the one file that needs it, imported only where it is installed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mcp_types as types
import msgspec
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError

import lastcall
from lastcall.api.intake import BODY_LIMIT
from lastcall.api.mcp import (
    agent_management_tools,
    agent_tools,
    asking_tools,
    decision_tools,
    delivery_tools,
    door_tools,
    event_tools,
    inbox_tools,
    operation_tools,
    retention_tools,
    spending_tools,
)
from lastcall.api.mcp.tool import AgentTool, Tool
from lastcall.api.problems import as_family, problem_document
from lastcall.api.v1.fresh import rendered
from lastcall.db.database import Database
from lastcall.errors import LastcallError
from lastcall.people.actor import Actor, AgentActor

ACTOR = "lastcall.actor"
"""Under this the request's scope says for whom it acts."""

_PARTS = (
    operation_tools,
    event_tools,
    door_tools,
    inbox_tools,
    decision_tools,
    retention_tools,
    agent_management_tools,
)
TOOLS: dict[str, Tool[Any]] = {tool.name: tool for part in _PARTS for tool in part.TOOLS}
"""What a person's programs may be given."""
_AGENT_PARTS = (agent_tools, asking_tools, delivery_tools, spending_tools)
AGENT_TOOLS: dict[str, AgentTool[Any]] = {tool.name: tool for part in _AGENT_PARTS for tool in part.TOOLS} | {
    tool.name: tool for tool in inbox_tools.AGENT_TOOLS
}
"""What an agent with its own key may be given, each by its grant."""

_INSTRUCTIONS = (
    "Lastcall queues reviewed writes to a club's VRChat group and sends each at most once. With a person's token you "
    "act in that person's name: let them review what is queued. When an answer is lost, send the same request id "
    "again. “Outcome unknown” means that nobody knows whether it happened: never queue it anew by yourself. With an "
    "agent's key you are an agent of one club, queue nothing yourself and ask its staff instead."
)


def session_manager(database: Database) -> StreamableHTTPSessionManager:
    """Answers one request with one JSON document and keeps nothing in between, so that any process may get the next
    one and a stop waits for nobody."""
    server = _server(database)
    return StreamableHTTPSessionManager(
        server, stateless=True, json_response=True, max_request_body_size=BODY_LIMIT
    )


def _server(database: Database) -> Server[Any]:
    async def list_tools(context: Any, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_described(tool) for tool in tools_of(_caller(context)).values()])

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        actor = _caller(context)
        tool = tools_of(actor).get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"There is no tool “{params.name[:100]}”.")
        return await _called(tool, database, actor, params.arguments or {})

    return Server(
        "lastcall",
        version=lastcall.__version__,
        title="Lastcall",
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        get_tool_input_schema=_schema_of,
    )


def tools_of(actor: Actor | AgentActor) -> Mapping[str, Tool[Any] | AgentTool[Any]]:
    """What this caller may be given: a person's programs theirs, an agent those of its grants."""
    match actor:
        case Actor():
            return TOOLS
        case AgentActor():
            return {
                name: tool
                for name, tool in AGENT_TOOLS.items()
                if tool.grant is None or tool.grant in actor.grants
            }


def _caller(context: Any) -> Actor | AgentActor:
    actor: Actor | AgentActor = context.request.scope[ACTOR]
    return actor


def _schema_of(name: str) -> dict[str, Any] | None:
    tool = TOOLS.get(name) or AGENT_TOOLS.get(name)
    return None if tool is None else tool.schema()


def _described(tool: Tool[Any] | AgentTool[Any]) -> types.Tool:
    return types.Tool(
        name=tool.name,
        description=tool.words,
        input_schema=tool.schema(),
        annotations=types.ToolAnnotations(
            read_only_hint=tool.reads,
            destructive_hint=tool.destroys,
            idempotent_hint=tool.repeats or tool.reads,
            open_world_hint=False,
        ),
    )


async def _called(
    tool: Tool[Any] | AgentTool[Any],
    database: Database,
    actor: Any,
    arguments: dict[str, Any],
) -> types.CallToolResult:
    """What the tool answers, or the house's sentence with its code, which the agent can read and act on."""
    try:
        answer = await tool.call(database, actor, arguments)
    except Exception as error:  # noqa: BLE001 - what nobody expected is logged and told without its details
        refused = as_family(error)
        return _result(problem_document(refused, rendered), text=_said(refused), is_error=True)
    return _result(answer)


def _said(error: LastcallError) -> str:
    return " ".join(part for part in (error.sentence, error.advice, f"({error.code})") if part)


def _result(value: Any, *, text: str | None = None, is_error: bool = False) -> types.CallToolResult:
    encoded = msgspec.json.encode(value)
    return types.CallToolResult(
        content=[types.TextContent(text=encoded.decode() if text is None else text)],
        structured_content=msgspec.json.decode(encoded),
        is_error=is_error,
    )
