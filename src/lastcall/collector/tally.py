"""What one account did since the process started, for the status line and the metrics."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Tally:
    """Counts that only grow, but ``running``: the passes under way. ``operations`` by how each left this process,
    ``reads`` by whether there was an answer, ``faults`` by their code."""

    running: int = 0
    passes: int = 0
    samples: int = 0
    audit_pages: int = 0
    operations: Counter[str] = field(default_factory=Counter)
    reads: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
