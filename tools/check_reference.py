"""docs/reference: commands, settings, kinds of actions, reads and HTTP API are as in the code; `--write` does it."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import api_reference
import click
import kind_reference
import read_reference

from lastcall import account_settings, provider_settings, settings
from lastcall.cli import cli

COMMANDS = Path("docs/reference/commands.md")
SETTINGS = Path("docs/reference/settings.md")
KINDS = Path("docs/reference/kinds.md")
READS = Path("docs/reference/reads.md")
API = Path("docs/reference/api.md")
OPENAPI = Path("docs/reference/openapi.json")


def commands() -> str:
    lines = [
        "# Commands",
        "",
        "Every command says what went wrong and what to do in one sentence and ends with status 1;",
        "a wrong call ends with 2.",
        "Settings come from the environment and `lastcall.toml` ([settings](settings.md)).",
        "",
    ]
    for path, command in walk("lastcall", cli):
        if isinstance(command, click.Group):
            continue
        arguments = [
            p.make_metavar(click.Context(command)) for p in command.params if isinstance(p, click.Argument)
        ]
        lines += [f"## `{' '.join([path, *arguments])}`", "", inspect.cleandoc(command.help or ""), ""]
        options = [p for p in command.params if isinstance(p, click.Option) and not p.hidden]
        if options:
            lines += ["| option | meaning |", "| --- | --- |"]
            lines += [
                f"| `{', '.join([*o.opts, *o.secondary_opts])}` | {o.help or ''}{default(o)} |"
                for o in options
            ]
            lines += [""]
    return "\n".join(lines).rstrip() + "\n"


def default(option: click.Option) -> str:
    if not option.show_default or option.default is None:
        return ""
    values = option.default if isinstance(option.default, tuple) else (option.default,)
    return f" Default: `{' '.join(str(value) for value in values)}`."


def walk(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        for name in sorted(command.commands):
            yield from walk(f"{path} {name}", command.commands[name])


def settings_page() -> str:
    lines = [
        "# Settings",
        "",
        "In `lastcall.toml` of the current folder by their name, or in the environment, which wins. A name that nobody",
        "knows is refused, with the nearest known one.",
        "",
        "| name | in the environment | default | meaning |",
        "| --- | --- | --- | --- |",
    ]
    meanings = described(settings.Settings)
    for field in dataclasses.fields(settings.Settings):
        if field.name in settings.TABLES:
            continue
        variable = "DATABASE_URL" if field.name == "database_url" else f"LASTCALL_{field.name.upper()}"
        lines.append(f"| `{field.name}` | `{variable}` | {shown(field)} | {meanings[field.name]} |")
    providers = tables_section(
        "Providers to sign in with",
        "provider",
        "[let people sign in with another account](../how-to/sign-in-providers.md)",
        provider_settings.ProviderSettings,
    )
    accounts = tables_section(
        "Several accounts in one collector",
        "account",
        "[run a collector](../how-to/run-a-collector.md)",
        account_settings.AccountSettings,
    )
    return "\n".join(lines + providers + accounts) + "\n"


def tables_section(title: str, noun: str, page: str, kind: type[Any]) -> list[str]:
    prefix = f"LASTCALL_{noun.upper()}_<NAME>_"
    lines = [
        "",
        f"## {title}",
        "",
        f"Any number of them, each a table `[{noun}s.<name>]` whose name is letters and digits, or variables",
        f"`{prefix}<SETTING>`, which win over the file value by value.",
        f"How to set them up: {page}.",
        "",
        "| name | in the environment | default | meaning |",
        "| --- | --- | --- | --- |",
    ]
    meanings = described(kind)
    for field in dataclasses.fields(kind):
        if field.name != "name":
            variable = f"{prefix}{field.name.upper()}"
            default = "" if field.default in (dataclasses.MISSING, None, "") else shown(field)
            lines.append(f"| `{field.name}` | `{variable}` | {default} | {meanings[field.name]} |")
    return lines


def shown(field: dataclasses.Field[object]) -> str:
    if field.name == "home":
        return "the user's data folder"
    if field.default is None:
        return ""
    text = str(field.default).lower() if isinstance(field.default, bool) else str(field.default)
    return f"`{text}`"


def described(table: type) -> dict[str, str]:
    """Each setting with the sentence that stands below it in the source."""
    body = ast.parse(inspect.getsource(table)).body[0]
    assert isinstance(body, ast.ClassDef)
    found: dict[str, str] = {}
    name = ""
    for node in body.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            name = node.target.id
            found[name] = ""
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and name:
            found[name] = " ".join(str(node.value.value).split())
            name = ""
    return found


def main() -> int:
    write = "--write" in sys.argv[1:]
    complaints = []
    pages = (
        (COMMANDS, commands()),
        (SETTINGS, settings_page()),
        (KINDS, kind_reference.page()),
        (READS, read_reference.page(READS.read_text())),
        (API, api_reference.page()),
        (OPENAPI, api_reference.openapi()),
    )
    for path, text in pages:
        if write:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            complaints.append(f"{path} is not what the code says; run `make reference` and commit it.")
    meanings = described(settings.Settings) | described(provider_settings.ProviderSettings)
    undescribed = [name for name, meaning in meanings.items() if not meaning]
    complaints += [
        f"The setting {name} has no sentence below it that says what it means." for name in undescribed
    ]
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return bool(complaints)


if __name__ == "__main__":
    sys.exit(main())
