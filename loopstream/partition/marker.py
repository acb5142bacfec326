"""The marker row: how far a partition's rows go, and what is in force in it.

It is written last in each checkpoint. Its key starts with a byte that no scope key (UTF-8) has.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import msgpack

from loopstream.errors import CorruptStateError
from loopstream.events import Pin
from loopstream.policy.deployment import Deployment
from loopstream.policy.orders import AgentOrder
from loopstream.state.pack import ROW_VERSION, peek
from loopstream.state.run import NO_OFFSET

MARKER_PREFIX: Final = b"\xff"


def marker_key(partition: int) -> bytes:
    """Key of a partition's marker row in the table."""
    return MARKER_PREFIX + b"marker-%d" % partition


def row_position(row: bytes) -> tuple[int, int]:
    """(partition, last applied offset) of a run's row or a marker row, without unpacking it."""
    head = peek(row)
    return head.partition, head.offset


@dataclass(slots=True)
class Marker:
    """What must survive of a partition beside its rows.

    ``rows`` counts the partition's run rows. ``pinned``: the pin has been read back from the
    partition's log, so replay will find it. ``orders``: for all runs of an agent, by agent.
    """

    partition: int
    offset: int = NO_OFFSET
    append_time: int = 0
    rows: int = 0
    config_offset: int = NO_OFFSET
    commands_offset: int = NO_OFFSET
    pin_config_offset: int = NO_OFFSET
    pin_commands_offset: int = NO_OFFSET
    pin_settings: dict[str, str] = field(default_factory=dict)
    pinned: bool = False
    settings: dict[str, str] = field(default_factory=dict)
    orders: dict[str, AgentOrder] = field(default_factory=dict)

    def pack(self) -> bytes:
        """The marker as a row; its head is that of every row."""
        fields: list[Any] = [
            ROW_VERSION,
            self.partition,
            self.offset,
            self.append_time,
            None,
            self.rows,
            [self.config_offset, self.commands_offset],
            [self.pin_config_offset, self.pin_commands_offset, self.pin_settings],
            self.pinned,
            self.settings,
        ]
        if self.orders:
            fields.append(self.orders)  # rows without any keep their bytes
        return bytes(msgpack.packb(fields))

    @classmethod
    def unpack(cls, row: bytes) -> Marker:
        """The marker that `pack` made the row of.

        Raises:
            CorruptStateError: these bytes are no marker row.
        """
        head = peek(row)
        try:
            fields = msgpack.unpackb(row, raw=False, strict_map_key=True)
            rows, (config, commands), pin, pinned, settings, *orders = fields[5:]
            pin_config, pin_commands, pin_settings = pin
            return cls(
                head.partition,
                head.offset,
                head.appended,
                rows,
                config,
                commands,
                pin_config,
                pin_commands,
                pin_settings,
                pinned,
                settings,
                {agent: AgentOrder(*order) for agent, order in (orders or [{}])[0].items()},
            )
        except Exception as error:
            raise CorruptStateError(
                f"a marker row that does not unpack ({type(error).__name__})."
            ) from error


def state_from_pin(partition: int, pin: Pin) -> bytes:
    """The marker row of a partition in which nothing has happened yet but this pin.

    Replay starts from it, as the partition's first owner did.
    """
    return Marker(
        partition,
        config_offset=pin.config_offset,
        commands_offset=pin.commands_offset,
        pin_config_offset=pin.config_offset,
        pin_commands_offset=pin.commands_offset,
        pin_settings=pin.settings,
        pinned=True,
        settings=pin.settings,
    ).pack()


def deployment_from_pin(pin: Pin) -> Deployment:
    """The deployment whose facts a pin carries.

    Raises:
        CorruptStateError: the policy is no deployment of this version.
    """
    try:
        return Deployment(**json.loads(pin.policy))
    except (TypeError, ValueError, RecursionError) as error:
        raise CorruptStateError(
            f"a pin whose policy is not understood ({type(error).__name__}).",
            hint="Was it written by another version of loopstream?",
        ) from None


def policy_text(deployment: Deployment) -> str:
    """The deployment's facts as they travel in a pin."""
    return json.dumps(asdict(deployment), sort_keys=True, separators=(",", ":"))
