"""All kinds of change between the query that wrote a checkpoint and the query as it is now."""

from __future__ import annotations

from millstream.plan.change_kinds.query_changes import QueryChange
from millstream.plan.change_kinds.source_changes import SourceChange
from millstream.plan.change_kinds.state_changes import StateChange

Change = SourceChange | StateChange | QueryChange
