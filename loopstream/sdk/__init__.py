"""The runner SDK: what agents ask before a tool call and report after it.

Data flows from `Run` through the session, the outbox and the sender's thread to Kafka, and from
the reader's thread back into the session, where it decides the next call. Light: kafka-python,
msgpack and pydantic; no Faust, no engine. It never stops or blocks an agent because Kafka is away.
"""

from loopstream.sdk.aio import AsyncRun, AsyncRunner
from loopstream.sdk.capture import mask_secrets
from loopstream.sdk.decisions import (
    Allow,
    Block,
    Call,
    Decision,
    RunAborted,
    ToolBlocked,
    Warn,
    blocked_result,
)
from loopstream.sdk.runner import Run, Runner
from loopstream.wire.connection import Connection

__all__ = [
    "Allow",
    "AsyncRun",
    "AsyncRunner",
    "Block",
    "Call",
    "Connection",
    "Decision",
    "Run",
    "RunAborted",
    "Runner",
    "ToolBlocked",
    "Warn",
    "blocked_result",
    "mask_secrets",
]
