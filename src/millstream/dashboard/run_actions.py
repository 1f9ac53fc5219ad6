"""What the live page may ask of a run: stop, restart a query, deliver dead letters again."""

from __future__ import annotations

import threading
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING

from millstream.connectors.api.dead_letters import read_once
from millstream.diagnostics.failure import InvalidInput
from millstream.engine.events.event_messages import format_count

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from millstream.pipeline.model import Pipeline

NAMES = ("stop", "restart", "resend")
# Records that are read and sent at a time.
PORTION = 1000


@dataclass
class RunActions:
    """Carries out what the page asks for. Each method returns a sentence, or raises one of Millstream's errors."""

    pipeline: Pipeline
    end: Callable[[], None]
    """Ask the run to end gracefully, as a first Ctrl-C does."""
    restart: Callable[[str], None]
    """Restart a query after its batch. Raises `InvalidInput` if that is not possible."""
    tell: Callable[[str], None] = lambda _: None
    """Note in the log of the run what was asked."""

    def __post_init__(self) -> None:
        self._resending = threading.Lock()

    def run(self, name: str, parameters: Mapping[str, str]) -> str:
        """Carry out an action by its name. Raises `InvalidInput` for one that does not exist."""
        match name:
            case "stop":
                self.tell("asked on the page: stop the run")
                self.end()
                return "The batches in progress finish, then the run ends."
            case "restart":
                query = parameters.get("query", "")
                self.restart(query)
                self.tell(f"asked on the page: restart {query}")
                return f"{query} restarts after its batch in progress."
            case "resend":
                return self._resend()
        raise InvalidInput(f"there is no action '{name[:40]}'", f"the actions are {', '.join(NAMES)}")

    def _resend(self) -> str:
        if not self._resending.acquire(blocking=False):
            raise InvalidInput("dead letters are being delivered already", "wait until that has ended")
        try:
            sent, remaining = resend_dead_letters(self.pipeline)
        finally:
            self._resending.release()
        text = f"{format_count(sent, 'dead letter')} delivered to their topics again"
        if remaining:
            store = self.pipeline.letters.describe()
            verb = "stays" if remaining == 1 else "stay"
            text += f"; {remaining:,} of them {verb} in {store}, which deletes only from its start"
        self.tell(f"asked on the page: {text}")
        return f"{text}."


def resend_dead_letters(pipeline: Pipeline) -> tuple[int, int]:
    """Send each dead letter of a topic to it again, and delete it from the store.

    Returns the number of records that were sent, and the number of their dead letters that could not be deleted. Only
    what was read is deleted: a dead letter may be written meanwhile, and a row that a sink refused has no topic.
    Raises `NotReady` if the broker does not accept one; then none of that source is deleted, and some may be in the
    topic twice.
    """
    store, started = pipeline.letters, datetime.now(UTC)
    total = remaining = 0
    for name in (name for name, entry in pipeline.sources.items() if not entry.static):
        written: defaultdict[str, set[datetime]] = defaultdict(set)
        chosen = (letter for letter in read_once(store, name, started, written) if letter.topic is not None)
        sent = 0
        while portion := list(islice(chosen, PORTION)):
            for topic in dict.fromkeys(letter.topic or "" for letter in portion):
                own = [letter for letter in portion if letter.topic == topic]
                if pipeline.sources[name].source.resend(topic, own):
                    sent += len(own)
        if sent:
            remaining += store.delete_sent(name, written)
        total += sent
    return total, remaining
