"""The error tree. Every error carries facts: a stable code, whether a retry can help, where it
happened, and what the operator does next. The CLI prints them as one message; nobody parses text.
"""

from __future__ import annotations

from typing import ClassVar

EXIT_OK = 0
EXIT_VERDICT = 1
EXIT_USAGE = 2
EXIT_SETTINGS = 3
EXIT_KAFKA = 4
EXIT_DATA = 5
# The worker gave up in a state where carrying on could lose data; its supervisor restarts it.
EXIT_RESTART = 70


class LoopstreamError(Exception):
    """Base of all errors that loopstream raises on purpose.

    Args:
        message: what is wrong, one sentence.
        where: position of the fault: ``topic-partition@offset``, ``file:line`` or a setting's path.
        hint: what the reader should do next, one sentence.
    """

    code: ClassVar[str] = "error"
    retriable: ClassVar[bool] = False
    exit_code: ClassVar[int] = EXIT_USAGE

    def __init__(self, message: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text} {self.hint}" if self.hint else text


class UsageError(LoopstreamError):
    """The command line asks for something that makes no sense."""

    code = "usage"


class SettingsError(LoopstreamError):
    """A setting is missing, unknown, malformed or out of bounds."""

    code = "settings"
    exit_code = EXIT_SETTINGS


class KafkaUnreachableError(LoopstreamError):
    """No broker answered within the time allowed."""

    code = "kafka_unreachable"
    retriable = True
    exit_code = EXIT_KAFKA


class TopicsError(LoopstreamError):
    """A topic is missing, or its partitions or policy are not what loopstream needs."""

    code = "topics"
    exit_code = EXIT_KAFKA


class BrokerError(LoopstreamError):
    """The embedded broker could not be resolved, started or stopped."""

    code = "broker"
    exit_code = EXIT_KAFKA


class DataError(LoopstreamError):
    """A file or record can't be decoded."""

    code = "undecodable"
    exit_code = EXIT_DATA


class CorruptStateError(LoopstreamError):
    """A stored row does not decode, or contradicts what was committed."""

    code = "corrupt_state"
    exit_code = EXIT_RESTART
