"""Declare a pipeline in Python: the same model as the YAML file builds.

```python
import millstream as ms

shop = ms.declare("ecommerce")
shop.source("clicks", ms.kafka(subscribe="clicks", bootstrap_servers="localhost:9092"),
            schema={"user_id": "string", "event_time": "timestamp"}, watermark=("event_time", "5 minutes"))
shop.view("visitors", "SELECT DISTINCT user_id FROM clicks")
shop.query("visitors", to=ms.parquet("lake/visitors"))
```
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

from millstream.diagnostics.failure import WrongUse
from millstream.diagnostics.finding import Severity, Span
from millstream.diagnostics.render import render
from millstream.pipeline.document import Document
from millstream.pipeline.document import Path as Place
from millstream.pipeline.loaded import Loaded, load_data
from millstream.pipeline.wording import called

if TYPE_CHECKING:
    from millstream.pipeline.model import Pipeline

# What rows are expected to be, by name: an expression, or `{"that": …, "otherwise": …}`.
Expected = Mapping[str, str | Mapping[str, str]]
Function = TypeVar("Function", bound=Callable[..., Any])
__all__ = ["Builder", "Settings", "declare", "sink"]


@dataclass(frozen=True)
class Settings:
    """The settings of one kind; used in `source` they make a source, used in `query` a sink."""

    kind: str
    """The kind's key in a spec."""
    given: Any = field(repr=False)
    """The settings by name, or one value for the kind's main field."""
    beside: Mapping[str, Any] = field(default_factory=dict)
    """What stands beside the kind in a sink's entry."""

    def entry(self) -> dict[str, Any]:
        """The entry of a spec that says the same."""
        return {self.kind: self.given, **self.beside}


def settings(kind: str) -> Callable[..., Settings]:
    """The function that makes settings of a kind: `settings("parquet")("data/x")`."""

    def make(main: Any = None, /, **given: Any) -> Settings:
        if main is not None and given:
            raise WrongUse(
                f"{kind} takes one bare value or settings by name, not both", "give every setting by its name"
            )
        return Settings(kind, given if main is None else main)

    make.__name__ = make.__qualname__ = kind
    make.__doc__ = f"Settings of {kind}; see `millstream explain {kind}`."
    return make


def sink(what: Settings, **beside: Any) -> Settings:
    """A sink with what is done when it fails: `sink(ms.postgres(…), on_error="fail")`."""
    return Settings(what.kind, what.given, beside)


def declare(name: str, *, folder: Path | str | None = None, **more: Any) -> Builder:
    """Begin a pipeline. `more` are further keys of a spec: `defaults`, `params`, `spark`, `dead_letters`.

    Relative paths start at `folder`: the calling file's unless given.
    """
    caller = sys._getframe(1)  # noqa: SLF001 - the documented way to the caller without reading its source
    start = Path(caller.f_code.co_filename).parent if folder is None else Path(folder)
    return Builder({"name": name, **more}, start if start.is_dir() else Path())


class Builder:
    """A pipeline that is being declared."""

    def __init__(self, data: dict[str, Any], folder: Path) -> None:
        self.data: dict[str, Any] = {**data, "sources": {}, "views": {}, "queries": {}}
        self.folder = folder
        self.lines: dict[Place, tuple[str, int]] = {}

    def source(
        self,
        name: str,
        what: Settings,
        *,
        watermark: tuple[str, str] | Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        """Add a source. `more` are the keys beside the kind in a spec, such as `format` and `schema`."""
        entry = {**what.entry(), **more}
        if watermark is not None:
            pair = isinstance(watermark, tuple)
            entry["watermark"] = (
                dict(zip(("event_time", "delay_threshold"), watermark, strict=True)) if pair else watermark
            )
        self._add("sources", name, entry)

    @overload
    def view(self, name: str, sql: str, /, *, expect: Expected | None = None) -> None: ...
    @overload
    def view(self, name: str, /, *, file: str, expect: Expected | None = None) -> None: ...
    @overload
    def view(
        self, name: str, /, *, python: str | Callable[..., Any], expect: Expected | None = None
    ) -> None: ...
    @overload
    def view(self, name: str, /, *, expect: Expected | None = None, **stateful: Any) -> None: ...
    @overload
    def view(self, function: Function, /) -> Function: ...
    def view(
        self,
        what: str | Function,
        sql: str | None = None,
        /,
        *,
        file: str | None = None,
        python: str | Callable[..., Any] | None = None,
        expect: Expected | None = None,
        **stateful: Any,
    ) -> Function | None:
        """Add a view: SQL, a file of it, a function by `module:name` or, as a decorator, the function.

        A view with state is given as a spec's keys: `transform_with_state` or `apply_in_pandas_with_state`, which
        take the class or function too, `from_`, `group_by`, `schema`, `state` and the others.

        `expect` says what its rows are expected to be: `{"positive_amount": "amount > 0"}`.
        """
        if not isinstance(what, str):
            self._add("views", what.__name__, {"python": what})
            return what
        if "from_" in stateful:
            stateful["from"] = stateful.pop("from_")
        given = {"sql": sql, "file": file, "python": python, "expect": expect, **stateful}
        self._add("views", what, {key: value for key, value in given.items() if value is not None})
        return None

    def query(
        self, name: str, *, to: Settings | Sequence[Settings], from_: str | None = None, **more: Any
    ) -> None:
        """Add a query. `more` are its other keys in a spec: `output_mode`, `trigger`, `checkpoint`."""
        sinks = [to] if isinstance(to, Settings) else list(to)
        entry: dict[str, Any] = {**more, "to": [one.entry() for one in sinks]}
        if from_ is not None:
            entry["from"] = from_
        self._add("queries", name, entry)

    def build(self) -> Pipeline:
        """The model. Raises `WrongUse` that tells all that is wrong."""
        loaded = self.load(None, {})
        wrong = [found for found in loaded.findings if found.severity is Severity.ERROR]
        if wrong or loaded.pipeline is None:
            raise WrongUse(f"the pipeline cannot be built\n{render(wrong, loaded.texts)}")
        return loaded.pipeline

    def load(self, file: str | None, texts: Mapping[str, str], overrides: Sequence[str] = ()) -> Loaded:
        """The model with its findings; a thing's place is the call that declared it."""
        document = Document(file or "pipeline", "", self.data)
        for place, (name, line) in self.lines.items():
            where = file if file and Path(name).name == Path(file).name else name
            document.values[place] = document.keys[place] = Span(where, line, 1, line + 1, 1)
        return load_data(document, self.data, self.folder, file, overrides, texts)

    def _add(self, section: str, name: str, entry: dict[str, Any]) -> None:
        """Put an entry into its section, with the line of the call."""
        if name in self.data[section]:
            raise WrongUse(f"{called((section, name))} is declared twice", "give one of them another name")
        caller = sys._getframe(2)  # noqa: SLF001 - as in `declare`
        self.data[section][name] = entry
        self.lines[(section, name)] = (caller.f_code.co_filename, caller.f_lineno)
