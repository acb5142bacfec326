"""A runner written from docs/reference/wire.md and fingerprints.md, as a stranger would: nothing
of loopstream's own code, kafka-python for Kafka and msgpack where verdicts come as msgpack.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Iterator
from typing import Any

import msgpack
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.partitioner.default import murmur2

MISSING = object()


class RunAbortedError(Exception):
    """The run was ended."""


class ForeignRun:
    """One run. With ``digests`` arguments and results stay here, else they travel as JSON text."""

    def __init__(
        self,
        bootstrap: str,
        prefix: str,
        run: str,
        agent: str,
        *,
        epoch: int,
        digests: bool = False,
        resumed: bool = False,
        runner: str = "foreign",
        key: str | None = None,
    ) -> None:
        self.unsigned = 0
        self._runner = runner
        self._key_id, _, issued = (key or "").partition(":")
        self._issued = bytes.fromhex(issued)
        self.refused_by: dict[tuple[Any, ...], dict[str, Any]] = {}
        self.warnings: list[dict[str, Any]] = []
        self.abort: dict[str, Any] | None = None
        self.answers: dict[str, dict[str, Any]] = {}
        self._topic = f"{prefix}.events"
        self._envelope: dict[str, Any] = {
            "v": 1,
            "run": run,
            "agent": agent,
            "runner": runner,
            "epoch": epoch,
        }
        self._seq = 0
        self._digests = digests
        self._seen: set[str] = set()
        self._producer = KafkaProducer(
            bootstrap_servers=bootstrap, acks="all", enable_idempotence=True
        )
        self._consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None)
        self._listen_from_now_on(f"{prefix}.verdicts", run)
        self._send("run_started", resumed=resumed)

    def close(self) -> None:
        self._producer.close()
        self._consumer.close()

    # -- a runner's loop -------------------------------------------------------------------

    def before(self, tool: str, args: object) -> str | None:
        """Why the call must not be made; None: go on."""
        self.listen()
        self._stop_if_aborted()
        block = self._standing_block(tool, args)
        more = {} if block is None else {"disposition": "refused"}
        self._send("tool_call", tool=tool, **self._call(args), **more)
        return None if block is None else block["reason"]

    def ask(self, tool: str, args: object, patience_s: float) -> dict[str, Any]:
        """Wait at a gate for the answer to this very call."""
        event = self._send("tool_call", tool=tool, disposition="gated", **self._call(args))
        deadline = time.monotonic() + patience_s
        while event not in self.answers:
            assert time.monotonic() < deadline, "no answer"
            self.listen()
            self._stop_if_aborted()
        return self.answers[event]

    def after(
        self, tool: str, args: object, result: object = MISSING, error: object = MISSING
    ) -> None:
        """Report what came of the call."""
        self._send("tool_outcome", tool=tool, **self._outcome(args, result, error))

    def compacted(self) -> None:
        self._send("compaction", succeeded=True, retried=True)

    def end(self) -> None:
        self._send("run_ended", status="completed")

    # -- events ----------------------------------------------------------------------------

    def _send(self, kind: str, **fields: Any) -> str:
        self._seq += 1
        event_id = f"{self._envelope['epoch']}-{self._seq}"
        event = {**self._envelope, "type": kind, "id": event_id, "seq": self._seq}
        event |= {"time": int(time.time() * 1000), **fields}
        # The scope key as the record's key: the client's own partitioner finds the partition.
        key = self._envelope["run"].encode()
        value = json.dumps(event).encode()
        self._producer.send(self._topic, key=key, value=value, headers=self._headers(value)).get(30)
        return event_id

    def _headers(self, value: bytes) -> list[tuple[str, bytes]]:
        if not self._issued:
            return []
        signature = hmac.digest(self._issued, b"loopstream record 1\0" + value, "sha256")
        who = [("signer", self._runner.encode()), ("key-id", self._key_id.encode())]
        return [("signature", signature), *who]

    def _call(self, args: object) -> dict[str, Any]:
        if not self._digests:
            return {"args": json.dumps(args)}
        return {"fp": {"v": 1, "documented": {"args": digest(args)}}}

    def _outcome(self, args: object, result: object, error: object) -> dict[str, Any]:
        if not self._digests:
            named = {"args": args, "result": result, "error": error}
            return {name: json.dumps(v) for name, v in named.items() if v is not MISSING}
        counted: dict[str, Any] = {"args": digest(args)}
        if error is not MISSING:
            counted |= {"result": digest(error), "failed": True}
        elif isinstance(result, dict):
            texts = [part["text"] for part in result.get("content", ())]
            whole = {"details": result.get("details", {}), "text": "\n".join(texts).strip()}
            counted["result"] = digest(whole)
        elif result is not MISSING:
            counted["result"] = digest(result)
        return {"fp": {"v": 1, "documented": counted}}

    # -- verdicts --------------------------------------------------------------------------

    def listen(self, longest_s: float = 0.05) -> None:
        """Take in the verdicts that have come."""
        for batch in self._consumer.poll(timeout_ms=int(longest_s * 1000)).values():
            for record in batch:
                value = record.value
                if not self._signed(value, dict(record.headers)):
                    self.unsigned += 1
                    continue
                verdict = json.loads(value) if value[:1] == b"{" else msgpack.unpackb(value)
                self._take(verdict)

    def _signed(self, value: bytes, headers: dict[str, bytes]) -> bool:
        if not self._issued:
            return True
        info = b"loopstream run 1\0" + self._envelope["run"].encode() + b"\1"
        run_key = hmac.digest(hmac.digest(bytes(32), self._issued, "sha256"), info, "sha256")
        signature = hmac.digest(run_key, b"loopstream verdict 1\0" + value, "sha256")
        known = headers.get("key-id") == self._key_id.encode()
        return known and hmac.compare_digest(signature, headers.get("signature", b""))

    def _listen_from_now_on(self, topic: str, run: str) -> None:
        partitions = len(self._consumer.partitions_for_topic(topic))
        mine = TopicPartition(topic, (murmur2(run.encode()) & 0x7FFFFFFF) % partitions)
        self._consumer.assign([mine])
        self._consumer.seek(mine, self._consumer.end_offsets([mine])[mine])

    def _take(self, verdict: dict[str, Any]) -> None:
        mine = verdict["scope"] == self._envelope["run"]
        if not mine or verdict["id"] in self._seen or verdict["mode"] == "shadow":
            return
        self._seen.add(verdict["id"])
        action = verdict["action"]
        if action == "warn":
            self.warnings.append(verdict)
        elif action == "abort":
            self.abort = verdict
        elif action == "answer":
            self.answers[verdict["evidence"]["event"]] = verdict
        else:
            for target in targets(verdict):
                self.refused_by.pop(target, None)
                if action == "block":
                    self.refused_by[target] = verdict

    def _stop_if_aborted(self) -> None:
        if self.abort is not None:
            raise RunAbortedError(self.abort["reason"])

    def _standing_block(self, tool: str, args: object) -> dict[str, Any] | None:
        signature = f"{tool}:{digest(args)}"
        for (of_call, of_tool, spared), verdict in self.refused_by.items():
            covers = of_call == signature if of_call else of_tool == tool
            if covers and signature not in spared:
                return verdict
        return None


def targets(verdict: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    for target in verdict["applies_to"]:
        yield target.get("signature"), target.get("tool"), tuple(target.get("except", ()))


def digest(value: object) -> str:
    """SHA-256 of the canonical text; this much of it is enough for what the tests send."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
