"""docs/reference/api.md and openapi.json, made from the routes of the HTTP API."""

from __future__ import annotations

import json
from typing import Any

from lastcall.api.v1.api import api_routes
from lastcall.api.v1.description import description

INTRODUCTION = """\
# HTTP API

What a person's programs may do in their name. [Use the API with a token](../how-to/use-the-api.md) begins with
one call; this page lists them all, and the same as OpenAPI 3.1 is [openapi.json](openapi.json), which a server
answers at `/api/v1/openapi.json`.

- **Identity**: `Authorization: Bearer lc_…`. Cookies are no identity here. A token does what its person may, within
  its scopes; what needs a person at a browser (a token's making, deleting a club) answers 403.
- **Errors** are problem documents (RFC 9457, `application/problem+json`) with a sentence in `detail`, what to do in
  `advice`, a stable `code`, and for 422 the `field`. What you may not see is 404.
- **Lists** answer `items` and `next`; send `next` as `cursor` for the page after. There are no totals.
- **Creating** calls take an `Idempotency-Key`: within 24 hours the same key and body are answered with what was made
  the first time, and the same key with another body is 409. What is shown once (an invite's token) is null then.
- **Editing** calls take the `seen` time of the row you read, `updatedAt`; when somebody was faster the answer is 409
  and `fresh` is the row as it stands now.
- **Limits**: 600 calls a minute for a token; 429 says in `Retry-After` how many seconds to wait.
- HEAD is answered wherever GET is. Ids have 26 lower-case letters and digits, times are in UTC to the microsecond.
"""


def openapi() -> str:
    """The committed description."""
    return json.dumps(description(api_routes()), indent=1, ensure_ascii=False) + "\n"


def page() -> str:
    """The reference page."""
    made = description(api_routes())
    lines = [INTRODUCTION]
    by_tag: dict[str, list[tuple[str, str, dict[str, Any]]]] = {}
    for path, methods in made["paths"].items():
        for method, operation in methods.items():
            by_tag.setdefault(operation["tags"][0], []).append((method.upper(), path, operation))
    for tag, operations in by_tag.items():
        lines += [f"## {tag}", ""]
        for method, path, operation in operations:
            lines += called(method, path, operation)
    lines += ["## Bodies", "", "`?` marks a field that may be left out or is not always there.", ""]
    for name, schema in made["components"]["schemas"].items():
        lines += described(name, schema)
    return "\n".join(lines).rstrip() + "\n"


def called(method: str, path: str, operation: dict[str, Any]) -> list[str]:
    lines = [f"### {operation['summary']}", "", f"`{method} {path}`", "", flat(operation["description"]), ""]
    given = [
        f"- `{each['name']}` ({each['in']}): {kind_of(each['schema'])}{because(each)}"
        for each in operation.get("parameters", ())
        if each["in"] != "path"
    ]
    body = operation.get("requestBody")
    if body:
        given.append(f"- body: {kind_of(body['content']['application/json']['schema'])}")
    lines += [*given, ""] if given else []
    answered = []
    for status, answer in operation["responses"].items():
        if status.startswith("2"):
            content = [kind_of(form["schema"]) for form in answer.get("content", {}).values()]
            answered.append(f"{status} {content[0]}" if content else status)
        else:
            answered.append(status)
    return [*lines, f"Answers: {', '.join(answered)}.", ""]


def described(name: str, schema: dict[str, Any]) -> list[str]:
    lines = [f"### {name}", ""]
    if schema.get("description"):
        lines += [flat(schema["description"]), ""]
    if "enum" in schema:
        return [*lines, ", ".join(f"`{value}`" for value in schema["enum"]), ""]
    required = schema.get("required", ())
    lines += [
        f"- `{field}`{'' if field in required else '?'}: {kind_of(kind)}"
        for field, kind in schema.get("properties", {}).items()
    ]
    return [*lines, ""]


def kind_of(schema: dict[str, Any]) -> str:
    """A schema in a few words."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})"
    if "oneOf" in schema:
        return " or ".join(kind_of(one) for one in schema["oneOf"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if schema.get("type") == "array":
        return f"list of {kind_of(schema.get('items', {}))}"
    words = {
        "string": "text",
        "integer": "number",
        "object": "object",
        "boolean": "true or false",
        "null": "null",
    }
    kind = words.get(str(schema.get("type")), "anything")
    if schema.get("format") == "date-time":
        return "time"
    if "pattern" in schema and schema["pattern"].startswith("^[0-7]"):
        return "id"
    if "maximum" in schema and "minimum" in schema:
        return f"{kind} from {schema['minimum']} to {schema['maximum']}"
    if "maxLength" in schema:
        return f"{kind} of at most {schema['maxLength']} characters"
    return kind


def because(parameter: dict[str, Any]) -> str:
    return f". {parameter['description']}" if parameter.get("description") else ""


def flat(text: str) -> str:
    return " ".join(text.split())
