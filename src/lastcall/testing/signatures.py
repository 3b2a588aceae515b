"""pytest plugin: an application is made for every test that wants one, but what Litestar reads of its handlers is
read once.

For each application it reads the signature of each handler anew and makes a class of it, and it copies every router
in depth first. That was three quarters of the third of a second that an application takes. A signature depends on
the handler's function alone, which nobody changes, and where its arguments come from on the path and on what the
routers provide besides; our routers are each made for one application.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from litestar import Router
from litestar._kwargs import KwargsModel
from litestar._signature import SignatureModel
from litestar.di import Provide
from litestar.utils.signature import ParsedSignature

_OPTIONS = "HTTPRoute.create_options_handler.<locals>.options_handler"
"""The handler that Litestar makes for each route: the same function over another path each time."""


def _remembered(owner: type, name: str, key: Callable[..., object]) -> None:
    """``owner.name``, a class method, answers from memory what has the same key; None is no key."""
    make = getattr(owner, name)
    memory: dict[object, Any] = {}

    @wraps(make.__func__)
    def remember(_: type, *args: Any, **kwargs: Any) -> Any:
        found = key(*args, **kwargs)
        if found is None:
            return make(*args, **kwargs)
        if found not in memory:
            memory[found] = make(*args, **kwargs)
        return memory[found]

    setattr(owner, name, classmethod(remember))


def _of_function(fn: object, signature_namespace: dict[str, Any]) -> object:
    lasting = _lasting(fn)
    return lasting and (lasting, tuple(sorted(signature_namespace)))


def _of_model(
    dependency_name_set: set[str],
    fn: object,
    parsed_signature: object,
    type_decoders: object,
    data_dto: object = None,
) -> object:
    lasting = _lasting(fn)
    return lasting and (
        lasting,
        frozenset(dependency_name_set),
        id(parsed_signature),
        str(type_decoders),
        data_dto,
    )


def _of_kwargs(
    signature_model: type[SignatureModel],
    parsed_signature: ParsedSignature,
    dependencies: dict[str, Provide],
    path_parameters: set[str],
    layered_parameters: dict[str, object],
    ctx: object = None,
) -> object:
    lasting = _lasting(getattr(ctx, "fn", None))
    provided = {name: _lasting(one.dependency) for name, one in dependencies.items()}
    if lasting is None or None in provided.values() or layered_parameters:
        return None
    return (
        lasting,
        signature_model,
        id(parsed_signature),
        frozenset(path_parameters),
        tuple(provided.items()),
    )


def _lasting(fn: object) -> object:
    """What stands for the function, unless it was made for one application and holds it."""
    name = getattr(fn, "__qualname__", "<")
    if name == _OPTIONS:
        return name
    return None if "<" in name else fn


def _itself(router: Router, _: dict[int, Any]) -> Router:
    return router


_remembered(ParsedSignature, "from_fn", _of_function)
_remembered(SignatureModel, "create", _of_model)
_remembered(KwargsModel, "create_for_signature_model", _of_kwargs)
Router.__deepcopy__ = _itself  # type: ignore[attr-defined]
