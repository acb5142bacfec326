"""A deployment whose events are signed: its keys, its runners, and those who forge."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from loopstream.sdk import AsyncRunner, Runner
from loopstream.wire.codec import pack_frame
from loopstream.wire.keys import IssuedKey, MasterKey, key_line
from loopstream.wire.signing import record_headers
from tests.e2e.house import Fields, House

NEW, OLD = MasterKey("new", b"n" * 32), MasterKey("old", b"o" * 32)


class SignedHouse(House):
    """A house that signs what it writes itself, as the runner ``house``."""

    def __init__(
        self,
        bootstrap: str,
        prefix: str,
        folder: Path,
        keys: Sequence[MasterKey],
        *,
        events: str = "required",
        **values: str,
    ) -> None:
        self.file = folder / "signing.keys"
        self.keys = tuple(keys)
        self.hold(*keys)
        values = {"signing.file": str(self.file), "signing.events": events, **values}
        super().__init__(bootstrap, prefix, folder, blocks={"enabled": True}, values=values)

    def hold(self, *keys: MasterKey) -> None:
        """The keys that workers started from now on hold."""
        self.keys = keys
        self.file.write_text("\n".join(map(key_line, keys)))

    def restart(self) -> None:
        """Stop the worker as an operator does, and start another."""
        worker = self.workers[-1]
        assert worker.stop() == 0, str(worker)
        self.start()

    def issue(self, runner: str, *keys: MasterKey) -> str:
        """What ``loopstream keys issue`` would write."""
        return "\n".join(key_line(key.issue(runner)) for key in keys or self.keys)

    def signing(self, name: str, *keys: MasterKey, **more: Any) -> Runner:
        """A runner that was issued a key."""
        return self.runner("coder", runner=name, signing_key=self.issue(name, *keys), **more)

    def signing_async(self, name: str, *keys: MasterKey) -> AsyncRunner:
        """The same for asyncio."""
        key = self.issue(name, *keys)
        return AsyncRunner(
            self.bootstrap, agent="coder", prefix=self.prefix, runner=name, signing_key=key
        )

    def send(
        self,
        value: bytes | None,
        partition: int,
        *,
        content_type: bytes | None = None,
        key: bytes | None = None,
        headers: Iterable[tuple[str, bytes]] | None = None,
    ) -> int:
        """As `House.send`; signed unless headers are given."""
        if headers is None:
            headers = record_headers(self.keys[0].issue("house"), "house", value or b"")
        return super().send(value, partition, content_type=content_type, key=key, headers=headers)

    def send_as(
        self, signer: str | None, events: list[Fields], run: str, key: IssuedKey | None = None
    ) -> None:
        """Write a frame to a run's partition as a runner, with its own key or another; unsigned
        if there is no signer.
        """
        value = pack_frame(events)
        headers = []
        if signer is not None:
            headers = record_headers(key or self.keys[0].issue(signer), signer, value)
        self.send(value, self.partition(run), headers=headers)
