"""What the sync and the asyncio runner have in common."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from os import PathLike

from pydantic import ValidationError

from loopstream.errors import SettingsError
from loopstream.sdk.capture import Capture, Redact, mask_secrets
from loopstream.sdk.decisions import Call, Decision, RunAborted
from loopstream.sdk.hub import Hub
from loopstream.sdk.machine import Machine
from loopstream.sdk.options import Fail, Options, issued_keys, new_runner_id
from loopstream.sdk.session import RunSession, Status
from loopstream.wire.connection import Connection

_CANCELLATIONS = (KeyboardInterrupt, GeneratorExit, asyncio.CancelledError)


class RunnerFace:
    """Settings, counters and health of a runner.

    Args:
        bootstrap: brokers to ask first (``"host:port,host:port"``), or a `Connection` where
            logging in or TLS is needed.
        agent: the agent that this process executes; it picks the detector settings.
        session: conversation of all its runs, unless a run names its own.
        prefix: the deployment: its topics are ``<prefix>.events`` and ``<prefix>.verdicts``.
        runner: id of this process; absent: host, pid and a random part.
        key: the tenant's secret, at least 16 bytes. Digests are then HMACs, which nobody without
            the key can guess arguments from.
        key_id: the key's name, the same in all runners of a run; absent: derived from the key.
        signing_key: what ``loopstream keys issue`` wrote for this ``runner``: its text, or a
            `Path`. Events are signed with it, and verdicts that no worker has signed with it are
            ignored and counted. Of several keys the first signs, all verify.
        capture: what leaves this process beside digests. ``"digests"``: nothing. ``"preview"``:
            the first 512 characters of redacted arguments and outcomes. ``"full"``: all of them.
        redact: what previews and full values go through first, see `mask_secrets`; None: nothing.
        profiles: fingerprint for these deployments' profiles; they are known to your operator.
        normalize_tools: trim and lower-case tool names, ``bash`` is ``exec`` and ``apply-patch``
            is ``apply_patch``, as in the reference.
        linger_ms: how long an event may wait for others to share a frame with.
        max_buffer_bytes: bound of what waits while Kafka is slow or away. Above it the oldest
            events are dropped, counted, and told of by an ``events_lost`` event.
        max_buffer_events: the same, in events.
        wait: seconds that each ``before_call`` waits for an explicit answer (strict gate), unless
            it says otherwise itself; 0: it never waits.
        fail: ``"open"``: a call that loopstream can't be asked about is made. ``"closed"``: it is
            refused, also while Kafka is known to be away. A known block or abort holds either way.

    Raises:
        SettingsError: a setting makes no sense. Kafka being away is no error.
    """

    def __init__(
        self,
        bootstrap: str | Sequence[str] | Connection,
        *,
        agent: str | None = None,
        session: str | None = None,
        prefix: str = "loopstream",
        runner: str | None = None,
        key: bytes | None = None,
        key_id: str | None = None,
        signing_key: str | PathLike[str] | None = None,
        capture: Capture = "digests",
        redact: Redact | None = mask_secrets,
        profiles: Sequence[str] = ("documented",),
        normalize_tools: bool = True,
        linger_ms: float = 10.0,
        max_buffer_bytes: int = 16 * 1024 * 1024,
        max_buffer_events: int = 100_000,
        wait: float = 0.0,
        fail: Fail = "open",
    ) -> None:
        keys = issued_keys(signing_key)
        options = Options(
            agent=agent,
            prefix=prefix,
            runner=runner or ("" if keys else new_runner_id()),
            session=session,
            key=key,
            key_id=key_id,
            signing_keys=keys,
            capture=capture,
            redact=redact,
            profiles=tuple(profiles),
            normalize_tools=normalize_tools,
            linger_ms=linger_ms,
            max_buffer_bytes=max_buffer_bytes,
            max_buffer_events=max_buffer_events,
            wait=wait,
            fail=fail,
        )
        self._machine = self._start(_connection(bootstrap), options)

    def _start(self, connection: Connection, options: Options) -> Machine:
        """Tests put another machine in its place."""
        return Machine.on_kafka(connection, options)

    @property
    def _hub(self) -> Hub:
        return self._machine.hub

    @property
    def id(self) -> str:
        """The runner's id."""
        return self._hub.options.runner_id

    @property
    def healthy(self) -> bool:
        """Whether events go out and verdicts come in, as far as is known.

        It takes some seconds to notice that Kafka went away.
        """
        return self._hub.healthy

    @property
    def counters(self) -> dict[str, int]:
        """Counts since the start, by name, and what is in hand now.

        ``events_sent`` were confirmed by Kafka, ``events_dropped`` are lost;
        ``verdicts_received`` are those on this runner's runs, ``_duplicate``, ``_shadow`` and
        ``_undecodable`` ones were not acted on. ``blocks``, ``warns`` and ``aborts`` are what
        agents were told. ``events_pending``, ``bytes_pending`` and ``runs_live`` are of now.
        """
        hub = self._hub
        return {
            **hub.counters.view(),
            "events_pending": hub.outbox.pending,
            "bytes_pending": hub.outbox.size,
            "runs_live": hub.live,
        }


class RunFace:
    """What a run can do without waiting."""

    def __init__(self, hub: Hub, session: RunSession) -> None:
        self._hub = hub
        self._session = session

    @property
    def id(self) -> str | None:
        """The run's id; None for the "no run" scope of a session."""
        return self._session.run

    def _report(self, call: Call | Decision, result: object, error: object, executed: bool) -> None:
        self._session.report(call, result, error, executed)

    def _end(self, status: Status, reason: str | None) -> None:
        self._hub.finish(self._session, status, reason)

    def _end_by(self, error: BaseException | None) -> None:
        """End as the exception that left the ``with`` block says."""
        if error is None:
            self._end("completed", None)
        elif isinstance(error, RunAborted):
            self._end("aborted", error.reason)
        elif isinstance(error, _CANCELLATIONS):
            self._end("cancelled", type(error).__qualname__)
        else:
            # The class alone: a message may hold what must not leave the process.
            self._end("failed", type(error).__qualname__)


def _connection(bootstrap: str | Sequence[str] | Connection) -> Connection:
    if isinstance(bootstrap, Connection):
        return bootstrap
    try:
        return Connection.model_validate({"bootstrap": bootstrap})
    except ValidationError as error:
        fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
        message = f"{fault['msg'].removeprefix('Value error, ')}."
        hint = "Several brokers go with commas between them."
        raise SettingsError(message, where="bootstrap", hint=hint) from None
