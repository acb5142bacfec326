"""SQL over an export or a live range, with ready views; nothing but the data can be reached."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import duckdb

from loopstream.errors import UsageError

_FETCH: Final = 1000
_HINT: Final = "Tables: events, verdicts. Views: runs, calls, loops. `describe runs` tells columns."
_READS: Final = frozenset(("SELECT", "EXPLAIN", "PRAGMA", "RELATION"))

_VIEWS: Final = """
create view calls as
with told as (
    select *, row_number() over (
        partition by scope, type, tool, args_digest, call_id
        order by "partition", "offset", "index") as nth
    from events where type in ('tool_call', 'tool_outcome')
)
select c.scope, c.run, c.agent,
    row_number() over (
        partition by c.scope order by c."partition", c."offset", c."index") as n,
    c.tool, c.disposition, c.args_digest, c.call_id, c.preview,
    c.time, c.append_time, o.result_digest, o.failed, o.executed, o.unknown_tool,
    o.time as outcome_time, epoch_ms(o.time) - epoch_ms(c.time) as duration_ms,
    c."partition", c."offset", c."index"
from told c left join told o on o.type = 'tool_outcome' and c.scope = o.scope
    and c.tool = o.tool and c.args_digest is not distinct from o.args_digest
    and c.call_id is not distinct from o.call_id and c.nth = o.nth
where c.type = 'tool_call';

create view runs as
with told as (
    select scope, any_value(run) as run, any_value(agent) as agent,
        any_value("session") as "session", any_value(runner) as runner,
        min(append_time) as first_seen, max(append_time) as last_seen,
        count(*) filter (where type = 'tool_call') as calls,
        count(*) filter (where type = 'tool_outcome') as outcomes,
        count(*) filter (where disposition = 'refused') as refused,
        count(distinct tool) as tools,
        any_value(status) filter (where type = 'run_ended') as status,
        min("partition") as "partition"
    from events where scope is not null group by scope
), said as (
    select scope, count(*) filter (where action = 'warn' and acted) as warnings,
        count(*) filter (where action = 'block' and acted) as block_verdicts,
        count(*) filter (where action = 'abort' and acted) as aborts,
        count(*) filter (where action in ('warn', 'block', 'abort') and not acted)
            as shadow_verdicts,
        min(judged_time) filter (where level <> 'none' and acted) as first_spoken,
        min(event_offset) filter (where level <> 'none' and acted) as first_spoken_offset
    from (select *, mode <> 'shadow' as acted from verdicts) group by scope
), after as (
    select e.scope, count(*) as calls_after_first,
        epoch_ms(max(e.append_time)) - epoch_ms(any_value(s.first_spoken)) as ms_after_first
    from events e join said s on e.scope = s.scope and e."offset" > s.first_spoken_offset
    where e.type = 'tool_call' group by e.scope
)
select told.*, coalesce(warnings, 0) as warnings,
    coalesce(block_verdicts, 0) as block_verdicts, coalesce(aborts, 0) as aborts,
    coalesce(shadow_verdicts, 0) as shadow_verdicts, first_spoken,
    coalesce(calls_after_first, 0) as calls_after_first,
    coalesce(ms_after_first, 0) as ms_after_first
from told left join said using (scope) left join after using (scope);

create view loops as
select scope, any_value(run) as run, any_value(agent) as agent, tool, args_digest,
    count(*) as calls, count(distinct result_digest) as results,
    min(append_time) as first_seen, max(append_time) as last_seen,
    any_value(preview) as preview
from calls group by scope, tool, args_digest having count(*) > 2
order by calls desc, scope;
"""


@dataclass(slots=True)
class Answer:
    """What a query came to; ``seconds`` is complete once all rows were taken."""

    columns: list[str]
    rows: Iterator[tuple[Any, ...]]
    seconds: float = 0.0
    count: int = 0


def add_views(db: duckdb.DuckDBPyConnection) -> None:
    """The ready views over the tables ``events`` and ``verdicts``."""
    db.execute(_VIEWS)


def ask(db: duckdb.DuckDBPyConnection, sql: str) -> Answer:
    """Run one query that reads.

    Args:
        db: locked (`tables.lock`).

    Raises:
        UsageError: it is no SQL, more than one statement, or would change something.
    """
    began = time.perf_counter()
    try:
        statements = db.extract_statements(sql)
        kinds = [statement.type.name for statement in statements]
        if len(kinds) != 1 or kinds[0] not in _READS:
            what = "is not one query" if len(kinds) != 1 else f"{kinds[0]} does not read"
            raise UsageError(f"{what}.", where="sql", hint="One SELECT, DESCRIBE or EXPLAIN.")
        result = db.execute(statements[0])
        columns = [column[0] for column in result.description or ()]
    except duckdb.Error as error:
        first = str(error).strip().splitlines()[0]
        raise UsageError(f"{first}.", where="sql", hint=_HINT) from None
    answer = Answer(columns, iter(()))
    answer.rows = _rows(result, answer, began)
    return answer


def _rows(
    result: duckdb.DuckDBPyConnection, answer: Answer, began: float
) -> Iterator[tuple[Any, ...]]:
    try:
        while rows := result.fetchmany(_FETCH):
            answer.count += len(rows)
            yield from rows
    except duckdb.Error as error:
        first = str(error).strip().splitlines()[0]
        raise UsageError(f"{first}.", where="sql", hint=_HINT) from None
    finally:
        answer.seconds = time.perf_counter() - began
