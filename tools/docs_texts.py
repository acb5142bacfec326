"""What the generated pages say in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from loopstream.events import Action, RejectCode

COMPLETION: Final = """\
`loopstream --install-completion` sets up completion for bash, zsh, fish or PowerShell;
`loopstream --show-completion` prints the script instead.
"""

METRICS_INTRO: Final = """\
A worker serves `/metrics`, `/livez` and `/readyz` on one port, if `worker.metrics_port` names it;
on the loopback interface, unless `worker.metrics_host` says otherwise. Counters begin at 0 with the
process. What has the label `partition` is told for the partitions that the worker holds now. No
label has a run id, a tool or anything else that agents name.

`/livez` is 503 when the event loop is silent, or when work waits and nothing moves for three
quarters of the time after which the worker would give up by itself. `/readyz` is 503 until the
partitions of the present assignment are recovered and open.
"""

METRICS_NOTES: Final = """\
`reason` of `loopstream_suppressed_total` is one of {suppressed}; that of
`loopstream_events_rejected_total` is a [reject code](errors.md#reject-codes); `note` is one of
{notes}. The standard `process_*` metrics come with them.

They cost nothing per event: values are read when they are scraped, distributions are fed once per
slice of up to 500 records, per row written, per verdict and per checkpoint.

## Runners

`loopstream.sdk.metrics.RunnerCollector(runner)` is a collector for a `prometheus_client` registry
of the host.
"""

ERRORS_INTRO: Final = """\
Every error says what is wrong, where, and what to do next; nobody needs to parse its text.
"""

REJECTS_INTRO: Final = """\
Why an event or a record became a dead letter. Its neighbours in a frame count all the same. The
same words are the label `reason` of `loopstream_events_rejected_total`.
"""

ACTIONS: Final[Mapping[Action, str]] = {
    Action.WARN: "The call runs; the reason is worth telling the model.",
    Action.BLOCK: "Calls that `applies_to` covers are refused from now on.",
    Action.RELEASE: "Blocks with these targets are lifted.",
    Action.ABORT: "The run ends; stands until `run_ended`.",
    Action.ANSWER: "Answers one gated call: refused if `level` is `critical`, else let through.",
}

REJECTS: Final[Mapping[RejectCode, tuple[str, str]]] = {
    RejectCode.NULL_VALUE: ("The record has no value.", "Find the producer of tombstones."),
    RejectCode.OVERSIZE_RECORD: ("The record is above 1 MiB.", "Send smaller frames."),
    RejectCode.OVERSIZE_EVENT: (
        "An event without its raw values is above 64 KiB.",
        "Shorten what the runner puts into it.",
    ),
    RejectCode.BAD_SIGNATURE: (
        "The record is not signed, or not as its headers say; nothing of it was read.",
        "Give the runner its key (`keys issue`); else find out who may write to the topic.",
    ),
    RejectCode.UNDECODABLE: (
        "Neither msgpack nor JSON, or cut short.",
        "Check the content type, and who else writes to the topic.",
    ),
    RejectCode.TOO_DEEP: ("Nested deeper than 8 levels.", "Send raw values as JSON text."),
    RejectCode.TOO_MANY_EVENTS: ("A frame of more than 4,096 events.", "Split it."),
    RejectCode.UNKNOWN_TYPE: ("No such event type.", "Upgrade the workers before the runners."),
    RejectCode.UNKNOWN_VERSION: (
        "Another major version of the schema.",
        "Upgrade the workers before the runners.",
    ),
    RejectCode.INVALID: ("A field is missing or wrong; `detail` names it.", "Fix the runner."),
    RejectCode.RAW_UNDECODABLE: ("A raw value is not JSON text.", "Encode it as JSON first."),
    RejectCode.RAW_UNDER_KEY: (
        "Raw values, but the deployment's fingerprints are keyed.",
        "Fingerprint on the runner, or give the worker the key.",
    ),
    RejectCode.NO_SCOPE: ("Neither run nor session.", "Name one of them."),
    RejectCode.MISROUTED: (
        "On a partition that the scope key does not belong to.",
        "Partition with Kafka's murmur2, over the right number of partitions.",
    ),
    RejectCode.IDENTITY_MISMATCH: (
        "Another agent, session or runner than the run began with.",
        "One run, one agent; a second runner says `run_started` with `resumed`.",
    ),
    RejectCode.NO_FINGERPRINT: (
        "Digests of another profile than the deployment's.",
        "Have runners fingerprint for this profile too.",
    ),
    RejectCode.KEY_MISMATCH: (
        "Another tenant key than the run began with.",
        "Give all runners of a run the same key.",
    ),
    RejectCode.FORGED_CONTROL: (
        "A control record that its source does not bear out, or not of a worker. It had no effect.",
        "Find out who may write to the events topic.",
    ),
    RejectCode.SETTINGS_REFUSED: (
        "A settings block that no worker may take; the one before stays.",
        "Push one that `loopstream config check` accepts.",
    ),
}
