"""The checks of the pipeline once more, in DuckDB's SQL: the baseline, and an independent formulation.

They are for runs as `pipeline_traces.py` makes them: no member crashes or joins, and every message is for all
members. Each query returns a row for whatever is wrong, with its `run`. Tables are made once; a check reads
them or the segments.
"""

from pathlib import Path

import duckdb

from priocast.core.guarantees import (
    AGREEMENT,
    CAUSAL_ORDER,
    FIFO_AMONG_EQUALS,
    INTEGRITY,
    PRIORITY,
    PRIORITY_ACCOUNTING,
    TIMESTAMP_ORDER,
    TOTAL_ORDER,
    UNIFORMITY,
    VIEW_SYNCHRONY,
)

_BATCHES = """
    create view batches as
    select member || '#' || incarnation as process, sender || '#' || sender_incarnation as sent_by, *
    from read_parquet('{}/*/messages/*.parquet')
"""
_VIEWS = """
    create table views as
    select run, member || '#' || incarnation as process, view, coordinator,
        step, position, members, orderer, priorities_act,
        lead(step, 1, 9223372036854775807) over (partition by filename order by step) as next_step
    from read_parquet('{}/*/group_events/*.parquet', filename = true) where event = 'view'
"""
_SIZES = """
    create view sizes as
    select distinct run, view, coordinator, len(members) as members, position as first from views
"""
_DELIVERIES = """
    create table deliveries as
    select run, process, view, coordinator, step, safe, sent_by, level,
        unnest(range(first, first + count)) as number,
        unnest(range(position, position + count)) as position
    from batches where event = 'delivered'
"""
_BROADCASTS = """
    create table broadcasts as
    select run, process, step, sent_by, level, unnest(range(first, first + count)) as number
    from batches where event = 'broadcast'
"""
_ORDER = """
    create table agreed as
    select run, view, coordinator, sent_by, level, number, mode(position) as position,
        min(position) as lowest, max(position) as highest, count(distinct process) as processes,
        count(*) as deliveries
    from deliveries group by all
"""


# A message waits from when the orderer receives it until it sends it with a position, or from its broadcast
# until its sender sends it. For each message: the last departure of a less urgent one before its own.
_PRIORITY = """
    with entered as (
        select run, process as queue, sent_by, level, batches.step,
            unnest(range(first, first + count)) as number
        from batches join views using (run, process, view, coordinator)
        where event = 'received' and batches.position < 0 and process = orderer
        union all
        select run, process || ' sends', sent_by, level, step, number from broadcasts
    ), departed as (
        select run, process as queue, sent_by, level, batches.step,
            unnest(range(first, first + count)) as number
        from batches join views using (run, process, view, coordinator)
        where event = 'sent' and batches.position >= 0 and process = orderer
        union all
        select run, process || ' sends', sent_by, level, batches.step, unnest(range(first, first + count))
        from batches join views using (run, process, view, coordinator)
        where event = 'sent' and batches.position < 0 and process = sent_by and priorities_act != 'consuming'
    ), levels as (select distinct level from departed)
    , times as (select run, queue, level, step from departed group by all)
    , lower as (
        select times.run, times.queue, levels.level, times.step
        from times join levels on times.level < levels.level
    ), departures as (select distinct * from lower)
    select entered.run
    from entered join departed using (run, queue, sent_by, level, number)
    asof join departures on entered.run = departures.run and entered.queue = departures.queue
        and entered.level = departures.level and departed.step > departures.step
    where departures.step > entered.step
"""
# Everybody must have consumed nothing of what is less urgent and after it when a message arrives, and
# somebody everything that is less urgent and before it.
_ACCOUNTING = """
    with chosen as (select * from views where priorities_act = 'consuming')
    , arrived as (
        select run, process, view, coordinator, batches.step, sent_by, level,
            unnest(range(first, first + count)) as number
        from batches join chosen using (run, process, view, coordinator) where event = 'received'
    ), reached as (
        select arrived.*, coalesce(deliveries.position, -1) as reached
        from arrived asof left join deliveries
        on arrived.run = deliveries.run and arrived.process = deliveries.process
            and arrived.step > deliveries.step
    ), farthest as (
        select run, view, coordinator, sent_by, level, number, max(reached) as reached
        from reached group by all
    ), ordered as (
        select * from agreed join farthest using (run, view, coordinator, sent_by, level, number)
    ), levels as (select distinct level from ordered)
    , lower as (
        select run, view, coordinator, levels.level, position
        from ordered join levels on ordered.level < levels.level
    )
    select ordered.run from ordered asof left join lower
    on ordered.run = lower.run and ordered.view = lower.view and ordered.coordinator = lower.coordinator
        and ordered.level = lower.level and ordered.position > lower.position
    where ordered.reached >= ordered.position or lower.position > ordered.reached
"""

CHECKS: dict[str, tuple[str, ...]] = {
    INTEGRITY: (
        "select run from agreed where deliveries > processes",
        "select run from agreed anti join broadcasts using (run, sent_by, level, number)",
        "select run from broadcasts group by run, sent_by, level, number having count(*) > 1",
        """select distinct run from deliveries anti join views using (run, process, view, coordinator)""",
    ),
    TOTAL_ORDER: (
        "select run from agreed where lowest < highest",
        """select run from deliveries group by run, view, coordinator, position
            having min(hash(sent_by, level, number)) < max(hash(sent_by, level, number))""",
        """select run from (select run, position, lag(position) over
            (partition by run, process order by step) as before from deliveries) where position <= before""",
        """select run from agreed join sizes using (run, view, coordinator)
            group by run, view, coordinator, first
            having min(position) > first or max(position) - min(position) + 1 > count(distinct position)""",
    ),
    AGREEMENT: (
        """select run from agreed join sizes using (run, view, coordinator)
            where processes < members""",
    ),
    VIEW_SYNCHRONY: (
        """select run from deliveries join views using (run, process, view, coordinator)
            where deliveries.step < views.step or deliveries.step > next_step
                or deliveries.position < views.position""",
        """select run from views group by run, view, coordinator
            having count(distinct members) > 1 or count(distinct orderer) > 1""",
    ),
    UNIFORMITY: (
        """with packets as (
                select run, view, coordinator, process, sent_by, level, position >= 0 as placed,
                    unnest(range(first, first + count)) as number
                from batches where event in ('sent', 'received') and safe
            ), counted as (
                select run, view, coordinator, sent_by, level, number,
                    count(distinct process) as holders,
                    count(distinct if(placed, process, null)) as placed
                from packets group by all
            ), safe as (
                select distinct run, view, coordinator, sent_by, level, number from deliveries where safe
            )
            select run from safe left join counted using (run, view, coordinator, sent_by, level, number)
            join sizes using (run, view, coordinator)
            where coalesce(if(placed > 0, least(holders, placed), holders), 0) < members""",
        """select run from agreed semi join (select * from deliveries where safe)
            using (run, view, coordinator, sent_by, level, number)
            join sizes using (run, view, coordinator) where processes < members""",
    ),
    FIFO_AMONG_EQUALS: (
        """select run from (select run, number, lag(number, 1, -1) over
            (partition by run, sent_by, level order by view, position) as before from agreed)
            where number != before + 1""",
    ),
    CAUSAL_ORDER: (
        """select broadcasts.run from broadcasts join agreed using (run, sent_by, level, number)
            asof join deliveries on broadcasts.run = deliveries.run
                and broadcasts.process = deliveries.process and broadcasts.step > deliveries.step
            where agreed.position <= deliveries.position""",
    ),
    PRIORITY: (_PRIORITY,),
    PRIORITY_ACCOUNTING: (_ACCOUNTING,),
    TIMESTAMP_ORDER: (
        """select run from (select run, stamp_number, lag(stamp_number + count - 1) over
            (partition by run, process order by step) as before
            from batches where distribution != '') where stamp_number <= before""",
        """select run from batches where distribution != '' group by run, view, coordinator, distribution,
            stamp_number having min(hash(sent_by, level, first)) < max(hash(sent_by, level, first))""",
        """select run from batches where distribution != '' group by run, view, coordinator, sent_by, level,
            first having min(stamp_number) < max(stamp_number)""",
        """select batches.run from batches join broadcasts on batches.run = broadcasts.run
            and batches.sent_by = broadcasts.sent_by and batches.level = broadcasts.level
            and batches.first = broadcasts.number
            asof join (select run, process, step, stamp_number from batches where distribution != '') as seen
            on broadcasts.run = seen.run and broadcasts.process = seen.process and broadcasts.step > seen.step
            where distribution != '' and batches.stamp_number <= seen.stamp_number""",
    ),
}


class SqlChecks:
    """One trace in DuckDB: its tables, and what each check finds."""

    def __init__(self, directory: Path, memory: str, threads: int) -> None:
        self._database = duckdb.connect(config={"memory_limit": memory, "threads": threads})
        self._database.execute("set enable_progress_bar = false")
        self._database.execute(_BATCHES.format(directory))
        self._directory = directory

    def make_tables(self) -> None:
        """Make the tables that the checks share."""
        for statement in (_VIEWS, _SIZES, _DELIVERIES, _BROADCASTS, _ORDER):
            self._database.execute(statement.format(self._directory))

    def broken_runs(self, guarantee: str) -> dict[str, int]:
        """The runs that break a guarantee, each with the number of findings."""
        found: dict[str, int] = {}
        for query in CHECKS[guarantee]:
            counted = f"select run, count(*) from ({query}) group by run"  # noqa: S608  our own queries
            for run, count in self._database.execute(counted).fetchall():
                found[run] = found.get(run, 0) + count
        return found
