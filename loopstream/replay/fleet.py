"""What is worth knowing about a fleet, out of the tables."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import duckdb

_BUCKETS: Final = 60

_TABLES: Final = {
    "In all": """
        select count(*) as runs, coalesce(sum(calls), 0)::bigint as calls,
            count(*) filter (where warnings + block_verdicts + aborts > 0) as runs_spoken_to,
            count(*) filter (where block_verdicts + aborts > 0) as runs_stopped,
            coalesce(sum(calls_after_first), 0)::bigint as calls_after_first_warning,
            round(coalesce(sum(ms_after_first), 0) / 1000.0, 1) as seconds_after_first_warning
        from runs""",
    "Agents that loop most": """
        select agent, count(*) as runs,
            count(*) filter (where warnings + block_verdicts + aborts > 0) as runs_spoken_to,
            sum(warnings)::bigint as warnings, sum(block_verdicts)::bigint as block_verdicts,
            sum(aborts)::bigint as aborts, sum(shadow_verdicts)::bigint as shadow_verdicts,
            sum(calls_after_first)::bigint as calls_after_first_warning,
            round(sum(ms_after_first) / 1000.0, 1) as seconds_after_first_warning
        from runs group by agent
        having sum(warnings + block_verdicts + aborts + shadow_verdicts) > 0
        order by runs_spoken_to desc, calls_after_first_warning desc, agent limit 20""",
    "Tools that loop most": """
        select tool, detector, count(distinct scope) as runs,
            count(*) filter (where mode <> 'shadow') as verdicts,
            count(*) filter (where mode = 'shadow') as shadow_verdicts,
            max("count") as highest_count
        from verdicts where level <> 'none' and action <> 'release'
        group by tool, detector order by runs desc, verdicts desc, tool limit 20""",
    "Runs that went on longest after their first warning": """
        select coalesce(run, scope) as run, agent, status, calls, calls_after_first,
            round(ms_after_first / 1000.0, 1) as seconds_after_first, warnings, block_verdicts,
            aborts
        from runs where calls_after_first > 0 order by calls_after_first desc, run limit 20""",
    "Calls repeated most": """
        select coalesce(run, scope) as run, agent, tool, calls, results as different_results,
            preview as arguments
        from loops order by calls desc, run limit 20""",
}

_OVER_TIME: Final = """
with said as (
    select action, epoch_ms(judged_time) as ms from verdicts where level <> 'none'
), span as (
    select min(ms) as low, greatest(max(ms) - min(ms), 1) as width from said
)
select least(cast(floor((ms - low) * $buckets / width) as int), $buckets - 1) as bucket,
    any_value(low + width * bucket / $buckets)::bigint as begin, action, count(*)
from said, span group by bucket, action order by bucket, action
"""


def fleet_tables(db: duckdb.DuckDBPyConnection) -> dict[str, list[dict[str, Any]]]:
    """Tables by heading; the views of `query` must be there."""
    return {name: _rows(db, query) for name, query in _TABLES.items()}


def verdicts_over_time(db: duckdb.DuckDBPyConnection) -> list[tuple[str, dict[str, int]]]:
    """Verdicts by action in up to 60 equal stretches: (begin in UTC, counts)."""
    rows = db.execute(_OVER_TIME, {"buckets": _BUCKETS}).fetchall()
    if not rows:
        return []
    begins = {bucket: begin for bucket, begin, _, _ in rows}
    counts: dict[int, dict[str, int]] = {}
    for bucket, _, action, count in rows:
        counts.setdefault(bucket, {})[action] = count
    first, last = min(begins), max(begins)
    width = (begins[last] - begins[first]) / max(1, last - first)
    stretches = []
    for bucket in range(last + 1):
        millis = begins.get(bucket, begins[first] + (bucket - first) * width)
        name = datetime.fromtimestamp(millis / 1000, tz=UTC).strftime("%m-%d %H:%M:%S")
        stretches.append((name, counts.get(bucket, {})))
    return stretches


def _rows(db: duckdb.DuckDBPyConnection, query: str) -> list[dict[str, Any]]:
    result = db.execute(query)
    names = [column[0] for column in result.description or ()]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]
