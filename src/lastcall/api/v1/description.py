"""The API's description (OpenAPI 3.1), made by the framework from the routes and their shapes."""

from __future__ import annotations

import inspect
import json
import re
from typing import Any

import msgspec
from litestar import Litestar, Router
from litestar.handlers import HTTPRouteHandler
from litestar.openapi.config import OpenAPIConfig
from litestar.openapi.spec import Components, SecurityScheme
from litestar.types import Method

import lastcall
from lastcall.api.problems import camel
from lastcall.api.v1.shapes import Input, Shape

_SCHEME = "token"
_UNTRUE = "400"
"""What the framework answers to a bad parameter when nobody handles its exceptions; ours is 422."""
_CAPITAL = re.compile(r"(?=[A-Z])")

_made: dict[str, Any] = {}


def description(routes: Router) -> dict[str, Any]:
    """The description as it is served and committed. Made once, from an application of these routes alone,
    which nobody serves: in ours the framework would add addresses of its own.
    """
    if not _made:
        described = Litestar([routes], openapi_config=_config(), logging_config=None)
        _made.update(_finished(described.openapi_schema.to_schema()))
    return _made


def _config() -> OpenAPIConfig:
    return OpenAPIConfig(
        title="Lastcall",
        version=lastcall.__version__,
        description=(
            "What a person's programs may do in their name. A call carries an API token; what it may do is what "
            "the person may, within the token's scopes."
        ),
        components=Components(
            security_schemes={
                _SCHEME: SecurityScheme(type="http", scheme="bearer", description="An API token, lc_…")
            }
        ),
        security=[{_SCHEME: []}],
        operation_id_creator=_operation_id,
        use_handler_docstrings=True,
    )


def _operation_id(handler: HTTPRouteHandler, _: Method, __: object) -> str:
    return camel(handler.handler_name)


def _finished(schema: dict[str, Any]) -> dict[str, Any]:
    """What the framework leaves out or says otherwise than we do: words, and that unknown fields are
    refused.
    """
    # It writes whole limits as fractions.
    made: dict[str, Any] = json.loads(msgspec.json.encode(schema), parse_float=_number)
    for path in made["paths"].values():
        for operation in path.values():
            operation["responses"].pop(_UNTRUE, None)
            operation["summary"] = " ".join(_CAPITAL.split(operation["operationId"])).capitalize()
            for answer in operation["responses"].values():
                if not answer.get("headers"):
                    answer.pop("headers", None)
    shapes = {shape.__name__: shape for shape in (*_kinds_of(Shape), *_kinds_of(Input))}
    for name, component in made["components"]["schemas"].items():
        component.pop("description", None)
        shape = shapes.get(name)
        if shape is not None:
            component["description"] = inspect.cleandoc(shape.__doc__ or "")
            if issubclass(shape, Input):
                component["additionalProperties"] = False
    return made


def _kinds_of(base: type[msgspec.Struct]) -> list[type[msgspec.Struct]]:
    found: list[type[msgspec.Struct]] = []
    for kind in base.__subclasses__():
        found += [kind, *_kinds_of(kind)]
    return found


def _number(text: str) -> float | int:
    value = float(text)
    return int(value) if value.is_integer() else value
