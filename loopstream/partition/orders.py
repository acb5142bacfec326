"""Orders for all runs of an agent: each run takes the newest up with its next event.

Carrying one out at once would mean unpacking every stored row of the partition inside one record
(see docs/adr/0003-settings-reach-a-run-with-its-next-event.md). The marker row remembers the
newest order of each agent for as long as a run from before it may live.
"""

from __future__ import annotations

from typing import Final

from loopstream.events import RejectCode
from loopstream.partition.admission import RefusedEventError
from loopstream.partition.marker import Marker
from loopstream.policy.deployment import Deployment
from loopstream.policy.orders import AgentOrder, Order
from loopstream.state.run import RunState

MAX_AGENTS: Final = 256


def remember(marker: Marker, deployment: Deployment, agent: str, order: AgentOrder) -> None:
    """Take an order up; it takes the place of the agent's one before.

    Raises:
        RefusedEventError: ``invalid``, as there are too many.
    """
    orders, idle_ms = marker.orders, deployment.idle_ms
    # Append times may go back a little when a partition's leader changes: twice the time is safe.
    for name in [n for n, o in orders.items() if order.appended - o.appended > 2 * idle_ms]:
        del orders[name]
    if agent not in orders and len(orders) >= MAX_AGENTS:
        raise RefusedEventError(RejectCode.INVALID, f"orders for over {MAX_AGENTS} agents")
    orders[agent] = order


def due(marker: Marker, state: RunState, *, known: bool) -> Order | None:
    """What a run has to hear before its next event; it is taken as heard.

    Args:
        known: the run was this agent's before the event. One that begins, or has ended, is none
            of those that were meant.
    """
    agent = state.agent
    newest = None if agent is None else marker.orders.get(agent)
    if agent is None or newest is None or newest.offset <= state.ordered:
        return None
    state.ordered = newest.offset
    return newest.order(agent) if known and state.ended is None else None
