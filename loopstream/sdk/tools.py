"""Wrapping functions as tools: asked about before, reported after."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Literal

from loopstream.sdk.decisions import Block, Decision, ToolBlocked, Warn

OnBlock = Literal["return", "raise"]
OnWarn = Callable[[Warn], None]


def argument_reader(
    function: Callable[..., Any],
) -> Callable[[tuple[Any, ...], dict[str, Any]], dict[str, Any]]:
    """What a call of ``function`` looks like as a model's arguments: by name, defaults left out."""
    signature = inspect.signature(function)

    def read(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:
            # The call will fail by itself; it is reported as it was tried.
            return {"args": list(args), **kwargs}
        named = dict(bound.arguments)
        for name, parameter in signature.parameters.items():
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                named.update(named.pop(name, {}))
        return named

    return read


def refused(decision: Decision, on_block: OnBlock, on_warn: OnWarn | None) -> Block | None:
    """The block, if the decision is one; a warning is passed on.

    Raises:
        ToolBlocked: the decision is a block, and ``on_block`` says so.
    """
    if isinstance(decision, Block):
        if on_block == "raise":
            raise ToolBlocked(decision)
        return decision
    if isinstance(decision, Warn) and on_warn is not None:
        on_warn(decision)
    return None
