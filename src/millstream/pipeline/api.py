"""Declare a pipeline in Python; the result is the same model as that of a YAML spec.

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

from millstream.diagnostics.failure import InvalidInput
from millstream.diagnostics.finding import Severity, Span
from millstream.diagnostics.render import render
from millstream.pipeline.load.document import Path as Place
from millstream.pipeline.load.document import YamlDocument
from millstream.pipeline.load.loader import LoadedSpec, load_data
from millstream.pipeline.load.value_phrases import describe_path

if TYPE_CHECKING:
    from millstream.pipeline.model import Pipeline

# Expectations by name: an expression, or `{"that": …, "otherwise": …}`.
Expected = Mapping[str, str | Mapping[str, str]]
Function = TypeVar("Function", bound=Callable[..., Any])
__all__ = ["Builder", "Settings", "declare", "sink"]


@dataclass(frozen=True)
class Settings:
    """The settings of one kind of source or sink. `source` takes them as a source, `query` as a sink."""

    kind: str
    """The kind's key in a spec."""
    values: Any = field(repr=False)
    """The settings by name, or a single value for the kind's main field."""
    beside: Mapping[str, Any] = field(default_factory=dict)
    """The other keys of a sink's entry in a spec, such as `on_error`."""

    def entry(self) -> dict[str, Any]:
        """Return the equivalent entry of a spec."""
        return {self.kind: self.values, **self.beside}


def settings(kind: str) -> Callable[..., Settings]:
    """Return the function that creates settings of a kind: `settings("parquet")("data/x")`."""

    def create(main: Any = None, /, **values: Any) -> Settings:
        if main is not None and values:
            raise InvalidInput(
                f"{kind} takes either one plain value or settings by name, not both",
                "pass every setting by its name",
            )
        return Settings(kind, values if main is None else main)

    create.__name__ = create.__qualname__ = kind
    create.__doc__ = f"Settings of {kind}; see `millstream explain {kind}`."
    return create


def sink(what: Settings, **beside: Any) -> Settings:
    """Return a sink with its error handling: `sink(ms.postgres(…), on_error="fail")`."""
    return Settings(what.kind, what.values, beside)


def declare(name: str, *, folder: Path | str | None = None, **more: Any) -> Builder:
    """Start to declare a pipeline. `more` are other keys of a spec: `defaults`, `params`, `spark`, `dead_letters`.

    Relative paths start at `folder`, which defaults to the folder of the calling file.
    """
    caller = sys._getframe(1)  # noqa: SLF001 - the documented way to the caller without reading its source
    start = Path(caller.f_code.co_filename).parent if folder is None else Path(folder)
    return Builder({"name": name, **more}, start if start.is_dir() else Path())


class Builder:
    """Collects the sources, views and queries of a pipeline and builds its model."""

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
        """Add a source. `more` are the other keys of its entry in a spec, such as `format` and `schema`."""
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
        """Add a view: SQL, a SQL file, a function as `module:name` or, used as a decorator, the function itself.

        A view with state takes the keys of a spec: `transform_with_state` or `apply_in_pandas_with_state` (the class
        or function itself is accepted too), `from_`, `group_by`, `schema`, `state` and the others.

        `expect` contains the expectations on its rows: `{"positive_amount": "amount > 0"}`.
        """
        if not isinstance(what, str):
            self._add("views", what.__name__, {"python": what})
            return what
        if "from_" in stateful:
            stateful["from"] = stateful.pop("from_")
        settings = {"sql": sql, "file": file, "python": python, "expect": expect, **stateful}
        self._add("views", what, {key: value for key, value in settings.items() if value is not None})
        return None

    def query(
        self, name: str, *, to: Settings | Sequence[Settings], from_: str | None = None, **more: Any
    ) -> None:
        """Add a query. `more` are its other keys in a spec: `output_mode`, `trigger`, `checkpoint`."""
        sinks = [to] if isinstance(to, Settings) else list(to)
        entry: dict[str, Any] = {**more, "to": [sink.entry() for sink in sinks]}
        if from_ is not None:
            entry["from"] = from_
        self._add("queries", name, entry)

    def build(self) -> Pipeline:
        """Build the model. Raises `InvalidInput` with all errors."""
        loaded = self.load(None, {})
        errors = [item for item in loaded.findings if item.severity is Severity.ERROR]
        if errors or loaded.pipeline is None:
            raise InvalidInput(f"the pipeline cannot be built\n{render(errors, loaded.texts)}")
        return loaded.pipeline

    def load(self, file: str | None, texts: Mapping[str, str], overrides: Sequence[str] = ()) -> LoadedSpec:
        """Build the model with its findings, which point to the calls that declared each entry."""
        document = YamlDocument(file or "pipeline", "", self.data)
        for place, (name, line) in self.lines.items():
            source_file = file if file and Path(name).name == Path(file).name else name
            document.values[place] = document.keys[place] = Span(source_file, line, 1, line + 1, 1)
        return load_data(document, self.data, self.folder, file, overrides, texts)

    def _add(self, section: str, name: str, entry: dict[str, Any]) -> None:
        """Add an entry to its section, with the file and line of the caller."""
        if name in self.data[section]:
            raise InvalidInput(f"{describe_path((section, name))} is declared twice", "rename one of them")
        caller = sys._getframe(2)  # noqa: SLF001 - as in `declare`
        self.data[section][name] = entry
        self.lines[(section, name)] = (caller.f_code.co_filename, caller.f_lineno)
