"""Models of values of our own making, without validating them: many times cheaper."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from loopstream.events.base import Model

M = TypeVar("M", bound=Model)

_new: Final = object.__new__
_set: Final = object.__setattr__


def trusted(model: type[M], /, **fields: Any) -> M:
    """An instance of a model.

    Args:
        model: its class.
        fields: every field of it by name, each of its declared type.
    """
    return _made(model, fields, set(fields))


def altered(model: M, /, **fields: Any) -> M:
    """A copy with other values in some fields, each of its declared type."""
    given = {*model.__pydantic_fields_set__, *fields}
    return _made(type(model), {**model.__dict__, **fields}, given)


def _made(kind: type[M], fields: dict[str, Any], given: set[str]) -> M:
    """What pydantic's own model_construct does, less its search for defaults and aliases."""
    made: M = _new(kind)
    _set(made, "__dict__", fields)
    _set(made, "__pydantic_fields_set__", given)
    _set(made, "__pydantic_extra__", None)
    _set(made, "__pydantic_private__", None)
    return made
