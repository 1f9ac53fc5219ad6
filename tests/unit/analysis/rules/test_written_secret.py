"""Secrets in a spec: which are reported, that no output format shows one, and the edit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from millstream.analysis.rule_context import Facts
from millstream.analysis.rules import ms109_written_secret
from millstream.diagnostics.render import render
from millstream.diagnostics.text_patch import apply_edits
from millstream.pipeline.spec_file import load_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.diagnostics.finding import Finding
    from millstream.pipeline.spec_file import LoadedSpec

CANARIES = [
    "canary",
    "can@ary",
    "can/ary",
    "can%40ary",
    "can:ary",
    "can ary",
    "can'ary",
    "can$ary",
    "can,ary",
]

SPEC = """name: shop
sources:
  orders:
    kafka:
      bootstrap_servers: broker:9093
      subscribe: orders
      security: {{protocol: SASL_SSL, username: shop, password: {password}}}
    schema: {{id: string}}
    on_malformed: drop
queries:
  orders:
    to:
      postgres:
        url: {url}
        table: orders
"""


def spec(password: str = '"${PW:-}"', url: str = "postgresql://localhost/shop", **env: str) -> LoadedSpec:
    return load_text("pipeline.yml", SPEC.format(password=password, url=url), Path(), env, [])


def judged(loaded: LoadedSpec) -> list[Finding]:
    assert loaded.pipeline is not None, loaded.findings
    return list(ms109_written_secret.check(Facts(loaded.pipeline, loaded.places)))


def render_findings(found: list[Finding], texts: Mapping[str, str]) -> str:
    forms: Any = ("text", "concise", "json", "github", "sarif", "junit")
    return "\n".join(render(found, texts, form) for form in forms)


@pytest.mark.parametrize("canary", CANARIES)
def test_a_written_password_is_told_of_and_shown_in_no_form(canary: str) -> None:
    quoted = canary.replace("'", "''").replace("$", "$$")
    loaded = spec(f"'{quoted}'", f"'postgresql://shop:{quoted}@localhost/shop'")

    findings = judged(loaded)

    assert [finding.span.line for finding in findings if finding.span] == [7, 14]
    for part in (quoted, canary, "ary"):
        assert part not in render_findings(findings, loaded.texts)


def test_the_address_of_a_webhook_is_not_shown() -> None:
    text = SPEC.format(password='"${PW:-}"', url="postgresql://localhost/shop")
    loaded = load_text(
        "pipeline.yml",
        f"alerts_to: https://hooks.example.com/services/T1/0canary1canary2canary\n{text}",
        Path(),
        {},
        [],
    )

    (finding,) = judged(loaded)

    assert "canary" not in render_findings([finding], loaded.texts)
    assert finding.edit is not None
    assert finding.edit.insert == ("alerts_to: https://hooks.example.com/services/T1/${ALERTS_TO_TOKEN}",)


@pytest.mark.parametrize(
    "password", ["canary", "'canary'", '"canary"', "'{canary}'", "can$$ary", "'it''s'", '"a \\" quote"']
)
def test_after_its_edits_a_spec_reads_its_secrets_from_variables(password: str) -> None:
    loaded = spec(password, "postgresql://shop:canary@localhost/shop?sslmode=require")

    text, edits = apply_edits(
        loaded.texts["pipeline.yml"], [finding.edit for finding in judged(loaded) if finding.edit]
    )

    assert len(edits) == 2
    env = {"KAFKA_PASSWORD": "one", "POSTGRES_PASSWORD": "two"}
    changed = load_text("pipeline.yml", text, Path(), env, [])
    assert changed.pipeline is not None
    source: Any = changed.pipeline.sources["orders"].source
    sink: Any = changed.pipeline.queries["orders"].to[0].sink
    assert source.security.password.reveal() == "one"
    assert sink.url.reveal() == "postgresql://shop:two@localhost/shop?sslmode=require"
    assert judged(changed) == []


@pytest.mark.parametrize(
    ("password", "url"),
    [
        ("${PW}", "postgresql://shop:${PW}@localhost/shop"),
        ("${file:secret}", "${PW}"),
        ("${PW:-}", "postgresql://shop@localhost/shop"),
        ("${PW:-}", "postgresql://localhost:5432/shop?options=-csearch_path%3Dshop"),
    ],
)
def test_a_secret_from_elsewhere_is_not_told_of(tmp_path: Path, password: str, url: str) -> None:
    (tmp_path / "secret").write_text("canary")
    (tmp_path / "secret").chmod(0o600)
    text = SPEC.format(password=f'"{password}"', url=url)

    loaded = load_text("pipeline.yml", text, tmp_path, {"PW": "postgresql://u:canary@localhost/d"}, [])

    assert judged(loaded) == []


def test_a_password_among_refused_options_is_told_of_once() -> None:
    text = SPEC.format(password='"${PW:-}"', url="postgresql://localhost/shop").replace(
        "      subscribe: orders\n",
        "      subscribe: orders\n      options: {kafka.ssl.key.password: canary}\n",
    )

    loaded = load_text("pipeline.yml", text, Path(), {}, [])

    assert judged(loaded) == []


def test_settings_of_spark_are_looked_at_by_name() -> None:
    text = SPEC.format(password='"${PW:-}"', url="postgresql://localhost/shop")
    loaded = load_text(
        "pipeline.yml", f"spark:\n  spark.hadoop.fs.s3a.secret.key: canary\n{text}", Path(), {}, []
    )

    (findings,) = judged(loaded)

    assert "canary" not in render_findings([findings], loaded.texts)
