"""Are the checkpoints of a run sound? Asked before Spark starts; what may be mended is mended when asked to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.checkpoint.damage import damage
from millstream.checkpoint.repair import repair
from millstream.checkpoint.wrong import AFRESH
from millstream.diagnostics.failure import CannotGoOn, NotReady, Unfit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from millstream.checkpoint.damage import Damage
    from millstream.connectors.sink import Writer
    from millstream.pipeline.model import Pipeline


def sound(
    pipeline: Pipeline,
    queries: Sequence[str],
    *,
    mend: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Look at each query's checkpoint; the caller holds the locks. `say` gets a sentence for each cure done.

    Raises `CannotGoOn` for the first damage that is not mended: what, what it means for the sinks, what to do.
    """
    for query in queries:
        folder = pipeline.checkpoint(query).local
        assert folder is not None, "locked, and so on this machine"
        # One cure may uncover what lay behind it: torn offsets are looked at before the state they lead to.
        while found := damage(folder):
            first = found[0]
            if not (mend and first.mendable):
                raise _refusal(query, found)
            for place in _mended(folder, first):
                say(f"{query}: {first.file.relative_to(folder)} is kept as {place.relative_to(folder)}")
            say(f"{query}: {first.what}; done: {first.cure}; {first.why}")


def _mended(folder: Path, first: Damage) -> list[Path]:
    try:
        return repair(folder, first)
    except OSError as refused:
        raise NotReady(
            f"checkpoint folder {folder} cannot be mended: {refused.strerror}",
            "give this user the right to write there",
        ) from refused


def _refusal(query: str, found: Sequence[Damage]) -> CannotGoOn:
    first = found[0]
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    fix = (
        f"'millstream run --repair --select {query}' does this: {first.cure}"
        if first.mendable
        else first.cure
    )
    return CannotGoOn(f"the checkpoint of query '{query}' is damaged: {first.what}; {first.why}{more}", fix)


def unplanned(query: str, writers: Mapping[str, Writer], planned: int | None) -> None:
    """Does a sink hold a batch that the checkpoint has yet to plan? Asked of open writers, before the first batch.

    The checkpoint was then taken back: restored from an older copy, or bereft of its newest offsets. Planned again,
    the batch may have other rows, and the sink would pass all of them over. Raises `Unfit`.
    """
    ahead = 0 if planned is None else planned + 1
    for name, writer in writers.items():
        if writer.holds(ahead):
            raise Unfit(
                f"sink '{name}' holds batch {ahead} of query '{query}', which its checkpoint has not planned: the "
                "checkpoint is older than the sink, and rows would be passed over",
                f"put the newest files back into the checkpoint's offsets and commits; {AFRESH}",
            )
