"""What the demo prints: progress while it plays, and a closing table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from lastcall.demo.evening import Expectation


class Bars:
    """One bar an act; the words of an act may change while it runs."""

    def __init__(self, console: Console) -> None:
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
        )
        self._tasks: dict[str, TaskID] = {}

    def show(self, what: str, done: int, total: int) -> None:
        act = what.partition(":")[0]
        if act not in self._tasks:
            self._tasks[act] = self.progress.add_task(what, total=total)
        self.progress.update(self._tasks[act], description=what, completed=done, total=total)


def closing_table(console: Console, expectations: Sequence[Expectation]) -> bool:
    """Print what was expected and seen; true when all of it held."""
    table = Table("", "expected", "seen", title="The evening, in the end")
    for expectation in expectations:
        mark = "[green]✓[/green]" if expectation.held else "[red]✗[/red]"
        table.add_row(mark, expectation.what, expectation.seen)
    console.print(table)
    return all(expectation.held for expectation in expectations)
