"""The examples over small files: each query of each of them as a pipeline of its own, with generated input."""

from __future__ import annotations

import random
import re
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

Spec = dict[str, Any]
EXAMPLES = Path(__file__).parents[3] / "examples"
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/pipeline.yml"))
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
STORE = "spark.sql.streaming.stateStore.providerClass"
_START = datetime(2026, 1, 1, 12, tzinfo=UTC)
_VARIABLE = re.compile(r"\$\{\w+(?::-([^}]*))?\}")
_KEEPS = ("schema", "watermark", "drop_duplicates_within_watermark", "static", "expect")
# Columns that another kind of source gives by itself, and those that it adds to a record.
_OWN = {
    "rate": {"timestamp": "timestamp", "value": "bigint"},
    "delta": {"order_id": "bigint", "status": "string", "amount": "double", "event_time": "timestamp"},
    "socket": {"value": "string"},
    "text": {"value": "string"},
}
_CATALOG = {"product_id": "string", "category": "string", "value": "string"}
_KEPT = {"offset": "bigint", "partition": "int", "timestamp": "timestamp", "topic": "string", "key": "string"}


def read_examples() -> dict[str, Spec]:
    """Return a pipeline for each query, by `example/query`. `sources` read JSON in `$IN/example/source`."""
    specs = {}
    for name in NAMES:
        text = (EXAMPLES / name / "pipeline.yml").read_text()
        spec = yaml.safe_load(_VARIABLE.sub(lambda match: match[1] or "", text))
        for query, entry in spec["queries"].items():
            specs[f"{name}/{query}"] = _reduce(name, spec, query, entry)
    return specs


def _reduce(name: str, spec: Spec, query: str, entry: Spec) -> Spec:
    files = {path.stem: path.read_text() for path in (EXAMPLES / name).glob("views/*.sql")}
    views = {key: _inline(name, view) for key, view in {**files, **spec.get("views", {})}.items()}
    code = {path.stem: path.read_text() for path in (EXAMPLES / name).glob("*.py") if path.stem != "pipeline"}
    settings = {STORE: ROCKSDB} if "transform_with_state" in str(views) else {}
    out = {
        "from": entry.get("from", query),
        "output_mode": entry.get("output_mode", "append"),
        "to": [{"console": {}}],
    }
    sources = {key: _read_files(f"{name}-{key}", source) for key, source in spec["sources"].items()}
    used = _find_used(out["from"], views, str(code)) & (views.keys() | sources.keys())
    return {
        "name": "p",
        "spark": settings,
        "code": code,
        "sources": {key: source for key, source in sources.items() if key in used},
        "views": {key: view for key, view in views.items() if key in used},
        "params": spec.get("params", {}),
        "queries": {"out": out},
    }


def _find_used(start: str, views: dict[str, Spec], code: str) -> set[str]:
    """Return the names in the text of what a query reads, its sources and views among them."""
    used, names = set(), [start]
    while names:
        name = names.pop()
        if name in used:
            continue
        used.add(name)
        view = views.get(name, {})
        # The parameters of a function are the names that it reads.
        names += re.findall(r"\w+", f"{view}{code if 'python' in view else ''}")
    return used


def _inline(name: str, view: Any) -> Spec:
    view = {"sql": view} if isinstance(view, str) else dict(view)
    if "file" in view:
        view["sql"] = (EXAMPLES / name / view.pop("file")).read_text()
    view.pop("expect", None)
    return view


def _read_files(folder: str, source: Spec) -> Spec:
    """Return a source with the same columns that reads JSON files."""
    kept = {key: deepcopy(source[key]) for key in _KEEPS if key in source and key != "expect"}
    kind = next((key for key in source if key in _OWN), "")
    columns = dict(kept.get("schema") or _OWN.get(kind) or _CATALOG)
    columns |= {name: _KEPT[name] for name in source.get("keep", ()) if name in _KEPT}
    limit = {} if kept.get("static") else {"max_files_per_trigger": 1}
    return {**kept, "schema": columns, "json": {"path": f"$IN/{folder}", **limit}, "on_malformed": "drop"}


def make_rows(specs: dict[str, Spec]) -> dict[str, tuple[list[Any], list[Any]]]:
    """Return rows for each folder of sources, in two halves of two files; a static source has all in the first."""
    halves: dict[str, tuple[list[Any], list[Any]]] = {}
    for spec in specs.values():
        words = sorted(set(re.findall(r"'([A-Za-z_]{3,12})'", str(spec["views"])))) or ["a"]
        for source in spec["sources"].values():
            folder = source["json"]["path"].removeprefix("$IN/")
            if folder in halves:
                continue
            draw = random.Random(folder)
            files = [[_row(source, words, draw, part, n) for n in range(8)] for part in range(4)]
            halves[folder] = (files, []) if source.get("static") else (files[:2], files[2:])
    return halves


def _row(source: Spec, words: list[str], draw: random.Random, part: int, number: int) -> dict[str, Any]:
    at = _START + timedelta(minutes=part * 17 + number * 2, seconds=draw.randrange(60))
    return {name: _value(str(kind), name, words, draw, at) for name, kind in source["schema"].items()}


def _value(kind: str, name: str, words: list[str], draw: random.Random, at: datetime) -> Any:
    if kind.startswith("timestamp"):
        return at.strftime("%Y-%m-%d %H:%M:%S")
    if kind == "date":
        return at.strftime("%Y-%m-%d")
    if kind in ("bigint", "int", "long", "smallint", "tinyint"):
        return draw.randrange(1, 7)
    if kind.startswith(("double", "float", "decimal")):
        return draw.randrange(2, 12) / 2
    if kind == "boolean":
        return draw.random() < 0.5
    if kind == "string":
        return f"k{draw.randrange(4)}" if name.lower().endswith(("id", "user", "key")) else draw.choice(words)
    return None
