"""`python -m benchmarks [name …]`: run the benchmarks, print every figure beside its limit, exit 1 on a miss."""

from __future__ import annotations

import asyncio
import importlib
import pkgutil
import sys
import time

from rich.console import Console
from rich.table import Table

import benchmarks
from benchmarks.harness import Figure

NOT_SUITES = {"__main__", "fleet", "harness", "role", "world"}


async def main(names: list[str]) -> int:
    console = Console()
    suites = [m.name for m in pkgutil.iter_modules(benchmarks.__path__) if m.name not in NOT_SUITES]
    unknown = set(names) - set(suites)
    if unknown:
        console.print(f"No benchmark is called {', '.join(sorted(unknown))}; there are {', '.join(suites)}.")
        return 2
    figures: list[Figure] = []
    for name in names or suites:
        began = time.monotonic()
        console.print(f"[bold]{name}[/bold] …")
        figures += await importlib.import_module(f"benchmarks.{name}").run()
        console.print(f"  took {time.monotonic() - began:.0f} s")
    table = Table("figure", "layer", "measured", "limit", "", "note")
    for figure in figures:
        verdict = "" if not figure.limit else "held" if figure.held else "MISSED"
        table.add_row(
            figure.name,
            figure.layer,
            f"{figure.value:,.3g} {figure.unit}".strip(),
            figure.limit,
            verdict,
            figure.note,
        )
    console.print(table)
    return int(not all(figure.held for figure in figures))


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
