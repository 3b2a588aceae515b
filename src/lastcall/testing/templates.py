"""pytest plugin: a template is compiled once a test process, not for each of its applications."""

from __future__ import annotations

from functools import wraps
from types import CodeType
from typing import Any

from jinja2 import BytecodeCache, Environment
from jinja2.bccache import Bucket


class _Compiled(BytecodeCache):
    """By the template's file and what stands in it."""

    def __init__(self) -> None:
        self._code: dict[tuple[str, str], CodeType] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        bucket.code = self._code.get((bucket.key, bucket.checksum))

    def dump_bytecode(self, bucket: Bucket) -> None:
        assert bucket.code is not None
        self._code[bucket.key, bucket.checksum] = bucket.code


_compiled = _Compiled()
_make = Environment.__init__


@wraps(_make)
def _remembering(environment: Environment, *args: Any, **kwargs: Any) -> None:
    kwargs.setdefault("bytecode_cache", _compiled)
    _make(environment, *args, **kwargs)


Environment.__init__ = _remembering  # type: ignore[assignment, method-assign]
