"""What the control topic has said about one run: the fold of its verdicts.

Pure and bounded. Verdicts may come twice (each counts once, by its id) and are obeyed in the
order of the topic; shadow verdicts are seen and not acted on.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, Literal, TypeVar

from loopstream.events import Action, Level, Target, Verdict

Seen = Literal["new", "duplicate", "shadow"]
K = TypeVar("K")
V = TypeVar("V")

# Per run. A verdict comes twice only within a worker's replay after a crash.
MAX_IDS: Final = 1024
MAX_TARGETS: Final = 1024
MAX_WARNINGS: Final = 64
MAX_CALLS: Final = 64


class Standing:
    """Standing refusals, warnings not handed out yet, and whether the run was ended.

    Attributes:
        abort: the verdict that ended the run.
        evicted: standing refusals that were forgotten because there were too many.
    """

    def __init__(self) -> None:
        self.abort: Verdict | None = None
        self.evicted = 0
        self._ids: OrderedDict[str, None] = OrderedDict()
        self._blocks: OrderedDict[Target, Verdict] = OrderedDict()
        # Targets by the signature or tool that they name, oldest first.
        self._index: dict[str, list[Target]] = {}
        self._warnings: OrderedDict[str, Verdict] = OrderedDict()
        self._calls: OrderedDict[str, tuple[str, str]] = OrderedDict()
        self._told: OrderedDict[str, None] = OrderedDict()

    def apply(self, verdict: Verdict) -> Seen:
        """Fold one verdict in; answers to gates are not this class's matter."""
        if verdict.id in self._ids:
            return "duplicate"
        _put(self._ids, verdict.id, None, MAX_IDS)
        if verdict.mode == "shadow":
            return "shadow"
        self._obey(verdict)
        return "new"

    def _obey(self, verdict: Verdict) -> None:
        match verdict.action:
            case Action.WARN:
                if verdict.evidence.event not in self._told:
                    _put(self._warnings, verdict.id, verdict, MAX_WARNINGS)
            case Action.BLOCK:
                for target in verdict.applies_to:
                    self._block(target, verdict)
            case Action.RELEASE:
                for target in verdict.applies_to:
                    self._release(target)
            case Action.ABORT:
                self.abort = self.abort or verdict
            case Action.ANSWER:
                pass

    def remember(self, event: str, tool: str, signature: str) -> None:
        """A call was reported: a warning may come back that names only its event."""
        _put(self._calls, event, (tool, signature), MAX_CALLS)

    def block_on(self, tool: str, signature: str) -> Verdict | None:
        """A standing refusal that covers a call: one of the call itself before one of its tool."""
        for name in (signature, tool):
            for target in reversed(self._index.get(name, ())):
                if target.covers(tool, signature):
                    return self._blocks[target]
        return None

    def warning_on(self, tool: str, signature: str) -> Verdict | None:
        """The oldest warning about this call that was not handed out; it is handed out now."""
        for verdict in self._warnings.values():
            if self._is_about(verdict, tool, signature):
                return self._warnings.pop(verdict.id)
        return None

    def told(self, event: str) -> None:
        """The agent heard of this call's warning as an answer: the same one is not repeated."""
        _put(self._told, event, None, MAX_WARNINGS)
        same = [id_ for id_, said in self._warnings.items() if said.evidence.event == event]
        for id_ in same:
            del self._warnings[id_]

    @property
    def blocks(self) -> dict[Target, Verdict]:
        """The standing refusals."""
        return dict(self._blocks)

    def _block(self, target: Target, verdict: Verdict) -> None:
        self._release(target)
        self._blocks[target] = verdict
        self._index.setdefault(_name(target), []).append(target)
        if len(self._blocks) > MAX_TARGETS:
            self.evicted += 1
            self._release(next(iter(self._blocks)))

    def _release(self, target: Target) -> None:
        if self._blocks.pop(target, None) is not None:
            same = self._index[_name(target)]
            same.remove(target)
            if not same:
                del self._index[_name(target)]

    def _is_about(self, verdict: Verdict, tool: str, signature: str) -> bool:
        call = self._calls.get(verdict.evidence.event)
        if call is not None:
            return call == (tool, signature)
        if verdict.applies_to:
            return any(target.covers(tool, signature) for target in verdict.applies_to)
        # A warning from before a restart names a call that only the earlier process knew.
        return verdict.tool == tool


def is_refusal(answer: Verdict) -> bool:
    """Whether the answer to a gate forbids the call."""
    return answer.level is Level.CRITICAL and answer.mode != "shadow"


def is_warning(answer: Verdict) -> bool:
    """Whether the answer to a gate is worth showing to the model."""
    return answer.level is Level.WARNING and answer.mode != "shadow"


def _name(target: Target) -> str:
    return target.signature if target.signature is not None else target.tool or ""


def _put(store: OrderedDict[K, V], key: K, value: V, bound: int) -> None:
    """Put a key last; the oldest goes if there are too many."""
    store[key] = value
    store.move_to_end(key)
    if len(store) > bound:
        store.popitem(last=False)
