"""What every form of an action says of itself, be the action new or edited."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from lastcall.web.compose.fields import Given
from lastcall.web.compose.timing import Timing


class Filled:
    """A form with what was filled in and when it is due."""

    given: Given
    timing: Timing

    @property
    def values(self) -> Mapping[str, str]:
        """What every field of the form says."""
        return defaultdict(str, self.given.values)

    @property
    def problems(self) -> Mapping[str, str]:
        """What is wrong with every field, in a sentence."""
        return defaultdict(str, {**self.given.problems, **self.timing.problems})

    @property
    def problem_count(self) -> int:
        return self.given.problem_count + len(self.timing.problems)
