"""Compare the sources of a query with those of a checkpoint's record."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal

from millstream.plan.change_kinds.source_changes import (
    SourceAdded,
    SourceColumnsChanged,
    SourceGrew,
    SourceMoved,
    SourceOptionChanged,
    SourcePlacesChanged,
    SourceRecreated,
    SourceRemoved,
    SourceRenamed,
    SourceReplaced,
    SourcesReordered,
    StaticSourceChanged,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from millstream.checkpoint.metadata import QueryMetadata
    from millstream.plan.changes import Change

    Entry = Mapping[str, str]

# Keys of a recorded source that do not say what it reads.
_OURS = ("name", "folder", "kind")
# Ids that servers report. They differ if a topic or table was recreated.
_IDS = ("topic.", "table_id")
# Where the servers are. Another address of the same servers changes nothing.
_ADDRESSES = ("bootstrap_servers", "database", "url", "host", "port")
# What an entry declares about its rows. A plan shows the effect of a change; the text does not.
_PLANNED = ("schema", "watermark", "drop_duplicates_within_watermark", "expect")
# Options that each start uses, whatever the checkpoint has.
_OF_NEXT_START = ("group_id", "group_id_prefix", "fail_on_data_loss", "max_file_age", "file_name_only")
# How the next batch is planned, and what happens to its files.
_OF_BATCHES = ("max_", "min_", "rows_per", "ramp_up", "num_partitions", "latest_first", "clean", "archive_to")
_PATTERN = re.compile(r"[*+?|()\[\]{}\\^$]")


def compare_sources(before: QueryMetadata, now: QueryMetadata) -> Iterator[Change]:
    """Yield the changes of streaming sources, by position, then those of their options and of static sources."""
    old, new = _distinct(before.sources), _distinct(now.sources)
    plan = now.plan or before.plan
    has_state = None if plan is None else bool(plan.stateful)
    yield from _compare_positions(old, new, (len(before.sources), len(now.sources)))
    yield from _compare_places(before, now)
    names = {entry["name"]: entry for entry in old}
    for entry in new:
        former = names.get(entry["name"]) or _find_renamed(entry, old, new)
        if former is None or former["kind"] != entry["kind"]:
            continue
        yield from _compare_identity(former, entry)
        options = (before.inputs.get(former["name"]), now.inputs.get(entry["name"]))
        if options[0] is not None and options[1] is not None:
            yield from _compare_options(entry, options[0], options[1], has_state=has_state)
            if now.plan is None:
                yield from _compare_unplanned(entry["name"], options[0], options[1])
    streaming = {entry["name"] for entry in (*old, *new)}
    for name in now.inputs:
        if name not in streaming and before.inputs and before.inputs.get(name) != now.inputs[name]:
            yield StaticSourceChanged(name, bool(has_state))
            if now.plan is None and name in before.inputs:
                yield from _compare_unplanned(name, before.inputs[name], now.inputs[name])


def _distinct(sources: tuple[dict[str, str], ...]) -> list[dict[str, str]]:
    """Return the sources by their folder in the checkpoint. A source at two places of a plan is read once."""
    by_folder: dict[str, dict[str, str]] = {}
    for number, entry in enumerate(sources):
        by_folder.setdefault(entry.get("folder", str(number)), {"kind": "?", **entry})
    return list(by_folder.values())


def _compare_positions(
    old: list[dict[str, str]], new: list[dict[str, str]], positions: tuple[int, int]
) -> Iterator[Change]:
    """Compare distinct sources. `positions` are the numbers of places at which the two plans read a source."""
    old_names, new_names = [entry["name"] for entry in old], [entry["name"] for entry in new]
    if old_names == new_names:
        for former, entry in zip(old, new, strict=True):
            if former["kind"] != entry["kind"]:
                yield SourceReplaced(entry["name"], former["kind"], entry["kind"])
    elif len(old) == len(new) and sorted(old_names) != sorted(new_names):
        for former, entry in zip(old, new, strict=True):
            if former["name"] == entry["name"]:
                continue
            if former["kind"] != entry["kind"]:
                yield SourceReplaced(entry["name"], former["kind"], entry["kind"])
            elif _content(former) == _content(entry):
                yield SourceRenamed(former["name"], entry["name"])
            else:
                yield SourceMoved(
                    entry["name"], "source", f"source '{former['name']}'", f"source '{entry['name']}'"
                )
    elif len(old) != len(new):
        for name in old_names:
            if name not in new_names:
                yield SourceRemoved(name, is_refused=positions[0] != positions[1])
        yield from (SourceAdded(name) for name in new_names if name not in old_names)


def _compare_places(before: QueryMetadata, now: QueryMetadata) -> Iterator[Change]:
    """Compare the places at which two plans read as many sources. A plan may read one source at several places."""
    old, new = _distinct(before.sources), _distinct(now.sources)
    old_names, new_names = [entry["name"] for entry in old], [entry["name"] for entry in new]
    has_equal_names = sorted(old_names) == sorted(new_names)
    # Only a plan has the places of a source with a new name.
    if len(old) != len(new) or (now.plan is None and not has_equal_names):
        return
    former = {} if has_equal_names else dict(zip(new_names, old_names, strict=True))
    old_places, new_places = (tuple(entry["name"] for entry in record.sources) for record in (before, now))
    if len(old_places) != len(new_places):
        yield SourcePlacesChanged(old_places, new_places)
    elif old_places != tuple(former.get(name, name) for name in new_places):
        is_one_kind = len({entry["kind"] for entry in (*old, *new)}) == 1
        yield SourcesReordered(old_places, new_places, is_one_kind)


def _find_renamed(
    entry: Entry, old: list[dict[str, str]], new: list[dict[str, str]]
) -> dict[str, str] | None:
    """Return the former source at the position of a source with a new name, if it reads the same."""
    if len(old) != len(new):
        return None
    former = old[new.index(dict(entry))]
    return former if _content(former) == _content(entry) else None


def _content(entry: Entry) -> dict[str, str]:
    """Return what a source reads, without what only a connection reports."""
    return {
        key: value
        for key, value in entry.items()
        if key not in _OURS and not key.startswith((*_IDS, "partitions."))
    }


def _compare_identity(former: Entry, entry: Entry) -> Iterator[Change]:
    for key, value in _content(entry).items():
        recorded = former.get(key)
        if recorded is None or recorded == value:
            continue
        if key in _ADDRESSES:
            yield SourceOptionChanged(entry["name"], key, recorded, value, "place", has_state=False)
            continue
        old, new = set(recorded.split(",")), set(value.split(","))
        if old == new:
            continue
        if old < new or all(any(_is_pattern_of(text, name) for text in new) for name in old):
            yield SourceGrew(entry["name"], key, tuple(sorted(new - old)))
        else:
            yield SourceMoved(entry["name"], key, recorded, value)
    for key, value in entry.items():
        if key.startswith(_IDS) and former.get(key, value) != value:
            yield SourceRecreated(entry["name"], key.removeprefix("topic.") if "." in key else "the table")


def _is_pattern_of(text: str, name: str) -> bool:
    """Return whether a text is a regular expression, such as `orders-.*`, that a name matches.

    The names of topics have no other special character than the dot.
    """
    try:
        return bool(_PATTERN.search(text)) and re.fullmatch(text, name) is not None
    except re.error:
        return False


def _compare_options(
    entry: Entry, old: Mapping[str, Any], new: Mapping[str, Any], *, has_state: bool | None
) -> Iterator[Change]:
    """Compare a source as the spec declares it: the fields of its kind, then those of every source."""
    name, kind = entry["name"], entry["kind"]
    old_columns, new_columns = old.get("schema") or {}, new.get("schema") or {}
    if old_columns and new_columns and old_columns != new_columns:
        yield SourceColumnsChanged(
            name,
            tuple(column for column in new_columns if column not in old_columns),
            tuple(column for column in old_columns if column not in new_columns),
            tuple(
                f"{column} {old_columns[column]} -> {new_columns[column]}"
                for column in new_columns
                if column in old_columns and new_columns[column] != old_columns[column]
            ),
        )
    skipped = (kind, "static", *_PLANNED)
    pairs = [
        *_differences(old.get(kind), new.get(kind)),
        *(pair for pair in _differences(old, new) if pair[0] not in skipped),
    ]
    for option, before, now in pairs:
        if option not in entry and option not in ("subscribe", "subscribe_pattern", "path"):
            yield SourceOptionChanged(name, option, before, now, _effect(option), has_state)


def _compare_unplanned(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    """Yield the changes of a source whose effect only a plan shows."""
    for option in _PLANNED:
        # Records of older versions lack some of them.
        before, now = old.get(option) or None, new.get(option) or None
        if before != now:
            yield SourceOptionChanged(name, option, str(before), str(now), "plan", has_state=None)


def _differences(old: Any, new: Any) -> Iterator[tuple[str, str, str]]:
    if not isinstance(old, dict) or not isinstance(new, dict):
        return
    for key in dict.fromkeys((*old, *new)):
        if old.get(key) != new.get(key):
            yield str(key), str(old.get(key)), str(new.get(key))


def _effect(option: str) -> Literal["start", "next_start", "rate", "rows"]:
    """Return what an option of a source decides, from its name or the words with which Spark's options begin."""
    if option in _OF_NEXT_START:
        return "next_start"
    if option.startswith(("starting", "include_existing")):
        return "start"
    if option.startswith(_OF_BATCHES):
        return "rate"
    # A stream fails at a commit with changes unless it skips them, so none of its rows depends on that.
    if option.startswith(("on_malformed", "skip_change_commits")):
        return "rate"
    return "rows"


def find_former_source(entry: Entry, former: Sequence[Entry]) -> int | None:
    """Return the position of the former source whose offsets fit a source; None if none reads the same."""
    for number, other in enumerate(former):
        if other.get("name") == entry.get("name") and other.get("kind") == entry.get("kind"):
            changes = list(_compare_identity(other, entry))
            fits = all(isinstance(change, SourceGrew | SourceOptionChanged) for change in changes)
            return number if fits else None
    contents = [(other.get("kind"), _content(other)) for other in former]
    content = (entry.get("kind"), _content(entry))
    return contents.index(content) if content in contents else None
