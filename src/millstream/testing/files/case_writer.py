"""Write tests as YAML for a test file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml

# Text that every YAML parser reads as a string. All other text is quoted.
_UNQUOTED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_RESERVED_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf"})


class _InlineMapping(dict[str, Any]):
    """A mapping that is written on one line in YAML."""


class _Dumper(yaml.SafeDumper):
    """Writes each row on one line, and quotes text that a YAML parser could read as another type."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    is_unquoted = _UNQUOTED.match(text) and text.lower() not in _RESERVED_WORDS
    # JSON is easier to read between single quotes.
    quote = "'" if '"' in text and "'" not in text and text.isprintable() else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if is_unquoted else quote)


_Dumper.add_representer(str, _represent_text)
_Dumper.add_representer(
    _InlineMapping,
    lambda dumper, mapping: dumper.represent_mapping("tag:yaml.org,2002:map", mapping, flow_style=True),
)


def format_tests(tests: Mapping[str, Any]) -> str:
    """Return the YAML of tests by their names: each row on one line."""
    return yaml.dump(_prepare(tests, 0), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1_000_000)


def _prepare(value: Any, depth: int) -> Any:
    """Mark rows as inline mappings, and double dollar signs, because a test file reads `$$` as one."""
    if isinstance(value, str):
        return value.replace("$", "$$") if depth > 1 else value
    if isinstance(value, Mapping):
        # Rows are nested below steps and static tables, whose own keys are names.
        return {name: _prepare(item, depth + 1) for name, item in value.items()}
    if isinstance(value, list) and all(isinstance(item, Mapping) and "feed" not in item for item in value):
        return [_InlineMapping(_prepare(item, depth + 1)) for item in value]
    return [_prepare(item, depth + 1) for item in value] if isinstance(value, list) else value
