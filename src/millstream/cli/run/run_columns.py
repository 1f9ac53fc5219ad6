"""Format the figures of a query as columns, and choose the columns that fit the terminal."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from millstream.dashboard.state.kafka_lag import Key, TopicLag, record_offsets, total_behind
from millstream.engine.events.progress_listener import lag_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from millstream.engine.events.event_bus import Event

_COLOURS = {
    "running": "green",
    "starting": "yellow",
    "first batch": "yellow",
    "retrying": "yellow",
    "waiting": "yellow",
    "failed": "bold red",
    "ended": "dim",
}
_GAP = 2
# A query's name is cut only in a terminal that is narrower than this and the state together.
_SHORTEST_NAME = 12


@dataclass
class QueryFigures:
    """The current figures of one query. `interval` is its trigger in seconds, if it has one."""

    interval: float | None
    state: str = "starting"
    batch: int | None = None
    dead_letters: int = 0
    failed_rows: int = 0
    late_rows: int = 0
    metrics: dict[str, Any] = field(default_factory=dict)
    topics: dict[Key, TopicLag] = field(default_factory=dict)

    def update(self, event: Event) -> None:
        """Update the figures with one event of this query."""
        if event.event in ("idle", "waiting", "retry", "query_failed", "query_stopped"):
            # No rows flow. The other figures are those of the last batch.
            self.metrics = {**self.metrics, "processed_rate": 0.0, "rows_out": 0}
        match event.event:
            case "query_started":
                self.state = "first batch" if self.batch is None else "running"
                # A run until caught up has another trigger than the spec.
                self.interval = event.data.get("trigger_seconds", self.interval)
            case "batch_committed":
                self.state = "running"
                self.batch = event.data["batch"]
                self.late_rows += event.data["late_rows"]
                failures = event.data.get("expectations", {}).values()
                self.failed_rows += sum(rows for counts in failures for rows in counts.values())
                self.metrics = event.data
                record_offsets(self.topics, 0.0, 0.0, event.data.get("sources", []), [])
            case "dead_letter":
                self.dead_letters += event.data["records"] or 0
            case "idle" | "going_on":
                self.state = "running"
            case "retry":
                self.state = "retrying"
            case "waiting":
                self.state = "waiting"
            case "query_failed":
                self.state = "failed"
            case "query_stopped":
                self.state = "ended"


@dataclass(frozen=True)
class FigureColumn:
    """A column of the table. `width` is kept free for its values, so that columns do not come and go."""

    head: str
    width: int
    format: Callable[[QueryFigures], Text]


def _batch_time(figures: QueryFigures) -> Text:
    """Format the time of the last batch and its trigger: red if the batch took longer."""
    milliseconds = figures.metrics.get("duration_ms", {}).get("triggerExecution")
    if milliseconds is None:
        return Text("-")
    seconds = milliseconds / 1000
    text = f"{seconds:.1f} s" + (f" / {figures.interval:g} s" if figures.interval else "")
    share = seconds / figures.interval if figures.interval else 0
    return Text(text, "bold red" if share > 1 else "yellow" if share > 0.8 else "")


def _rate_out(figures: QueryFigures) -> Text:
    rows = figures.metrics.get("rows_out")
    milliseconds = figures.metrics.get("duration_ms", {}).get("triggerExecution")
    return Text(format_number(rows / milliseconds * 1000 if rows is not None and milliseconds else None))


def _unread(figures: QueryFigures) -> Text:
    """Format the number of records that the topics had beyond the last batch; only Kafka reports it."""
    behind = total_behind(figures.topics.values())
    return Text("-" if behind is None else format_number(behind))


def _watermark(figures: QueryFigures) -> Text:
    lag = lag_seconds(figures.metrics.get("watermark"))
    return Text("-" if lag is None else format_span(lag))


def _problems(figures: QueryFigures) -> Text:
    """Name what was dropped or rejected, without the zeros."""
    counts = ((figures.late_rows, "late"), (figures.failed_rows, "failed"), (figures.dead_letters, "dead"))
    return Text(", ".join(f"{format_number(count)} {word}" for count, word in counts if count), "yellow")


# In the order of the table. The numbers rank the columns: 1 is the last to be dropped.
_COLUMNS = (
    (5, FigureColumn("batch", 5, lambda row: Text("-" if row.batch is None else str(row.batch)))),
    (1, FigureColumn("in/s", 6, lambda row: Text(format_number(row.metrics.get("processed_rate"))))),
    (6, FigureColumn("out/s", 6, _rate_out)),
    (0, FigureColumn("batch time", 14, _batch_time)),
    (2, FigureColumn("lag", 6, _unread)),
    (4, FigureColumn("watermark lag", 13, _watermark)),
    (7, FigureColumn("state rows", 10, lambda row: Text(format_number(row.metrics.get("state_rows"))))),
)
_PROBLEMS = FigureColumn("problems", 8, _problems)


def build_table(queries: Mapping[str, QueryFigures], width: int) -> Table:
    """Build the table of the queries for a terminal of this width: no header and no figure is cut.

    Columns that do not fit are left out, the least important first. The problems have a column once there are any.
    """
    name_width = max([len("query"), *map(len, queries)])
    state_width = max(len(state) for state in _COLOURS)
    name_width = min(name_width, max(_SHORTEST_NAME, width - state_width - _GAP))
    free = width - name_width - _GAP - state_width
    cells = {column: [column.format(row) for row in queries.values()] for _, column in _COLUMNS}
    problems = [_problems(row) for row in queries.values()]
    candidates = list(_COLUMNS)
    if any(problems):
        cells[_PROBLEMS] = problems
        candidates.append((3, _PROBLEMS))
    chosen = []
    for _, column in sorted(candidates, key=lambda candidate: candidate[0]):
        needed = _GAP + max(column.width, len(column.head), *(len(cell) for cell in cells[column]))
        if needed > free:
            break
        free -= needed
        chosen.append(column)
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    table.add_column("query", no_wrap=True, overflow="ellipsis", width=name_width)
    table.add_column("state", no_wrap=True, min_width=state_width)
    shown = [column for _, column in candidates if column in chosen]
    for column in shown:
        is_text = column is _PROBLEMS
        table.add_column(
            column.head, justify="left" if is_text else "right", no_wrap=True, min_width=column.width
        )
    for index, (name, row) in enumerate(queries.items()):
        state = Text(row.state, _COLOURS.get(row.state, ""))
        table.add_row(name, state, *(cells[column][index] for column in shown))
    return table


def format_number(value: float | None) -> str:
    """Format a figure in at most six characters."""
    if value is None:
        return "-"
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= size:
            return f"{value / (1e3 if unit == 'k' else size):.1f}{unit}"
    return f"{value:.0f}"


def format_span(seconds: float) -> str:
    """Format a duration in its largest unit: `48 s`, `6 min`, `2.5 h`."""
    if abs(seconds) < 60:
        return f"{seconds:.0f} s"
    if abs(seconds) < 3600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if abs(seconds) < 86400 else f"{seconds / 86400:.1f} d"
