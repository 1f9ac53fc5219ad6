"""A file of functions that is not Python, or lacks a name that a function needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.analysis.rule_context import Facts
from millstream.analysis.rules import ms108_python_view
from millstream.pipeline.spec_file import load_text

if TYPE_CHECKING:
    from pathlib import Path

SPEC = """name: shop
sources:
  orders: {json: {path: in}, schema: {id: string}}
queries:
  copy: {from: orders, to: {foreach_batch: "deliveries:send"}}
"""


def test_a_file_that_is_not_python_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "deliveries.py").write_text("LIMIT = 1\ndef send(frame, batch_id) return\n")
    loaded = load_text("pipeline.yml", SPEC, tmp_path, {})
    assert loaded.pipeline is not None, loaded.findings

    (finding,) = ms108_python_view.check(Facts(loaded.pipeline, loaded.places))

    assert "deliveries.py is not valid Python: " in finding.message
    assert finding.message.endswith("(line 2)")


def test_a_file_with_a_byte_order_mark_is_python(tmp_path: Path) -> None:
    (tmp_path / "deliveries.py").write_text("\ufeffdef send(frame, batch_id): ...\n")
    loaded = load_text("pipeline.yml", SPEC, tmp_path, {})
    assert loaded.pipeline is not None, loaded.findings

    assert list(ms108_python_view.check(Facts(loaded.pipeline, loaded.places))) == []


@pytest.mark.parametrize(
    ("text", "function", "message", "fix"),
    [
        (
            "def _send(frame, batch_id):\n    pass\n",
            "_send",
            "deliveries.py has '_send' as a private function",
            "name it 'send'",
        ),
        (
            "async def send(frame, batch_id):\n    pass\n",
            "send",
            "deliveries.py defines 'send' with 'async def'",
            "define it with 'def'",
        ),
        (
            "from sinks.mail import post as send\n",
            "send",
            "deliveries.py only imports 'send'",
            "write 'sinks.mail:post'",
        ),
        (
            "if True:\n    def send(frame, batch_id):\n        pass\n",
            "send",
            "deliveries.py defines 'send' inside another statement",
            "define it at the top level of the file",
        ),
    ],
)
def test_a_function_that_the_file_has_is_not_called_missing(
    tmp_path: Path, text: str, function: str, message: str, fix: str
) -> None:
    (tmp_path / "deliveries.py").write_text(text)
    loaded = load_text("pipeline.yml", SPEC.replace(":send", f":{function}"), tmp_path, {})
    assert loaded.pipeline is not None, loaded.findings

    (finding,) = ms108_python_view.check(Facts(loaded.pipeline, loaded.places))

    assert (finding.message, finding.fix) == (f"foreach_batch of query 'copy': {message}", fix)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "def send(frame, batch_id):\n    log.info(batch_id)\n",
            "deliveries.py does not define 'log', which 'send' needs (line 2)",
        ),
        (
            "def send(frame, batch_id):\n    add(frame)\ndef add(frame):\n    frame.write.save(target)\n",
            "deliveries.py does not define 'target', which 'send' needs (line 4)",
        ),
    ],
)
def test_a_name_that_the_function_of_a_sink_needs_must_be_defined(
    tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "deliveries.py").write_text(text)
    loaded = load_text("pipeline.yml", SPEC, tmp_path, {})
    assert loaded.pipeline is not None, loaded.findings

    (finding,) = ms108_python_view.check(Facts(loaded.pipeline, loaded.places))

    assert finding.message == f"foreach_batch of query 'copy': {message}"
