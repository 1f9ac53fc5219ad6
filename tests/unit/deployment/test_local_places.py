"""The places whose data a container loses, as `millstream package` names them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from millstream.cli.main import run_command

if TYPE_CHECKING:
    from pathlib import Path


def test_sinks_that_a_container_would_lose_are_named_once(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = project / "pipeline.yml"
    sinks = """
      - postgres: {url: "${POSTGRES_URL}", table: priced}
      - delta: lake/priced
      - parquet: {path: "${FILES:-/srv/files}"}
      - duckdb: {path: .millstream/shop.duckdb, table: priced}
      - json: s3a://shop/priced
      - csv: {path: "${OUT}/priced"}
  again:
    from: orders
    to: {delta: {path: ./lake/priced}}
"""
    spec.write_text(spec.read_text().replace('{postgres: {url: "${POSTGRES_URL}", table: priced}}', sinks))

    assert run_command(["package", "-f", str(project)]) == 0

    warnings = [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning: ")]
    assert warnings == [
        "warning: a container loses the data of delta lake/priced, parquet /srv/files, outside of its volume; "
        "mount another volume there, or write to an object store"
    ]


@pytest.mark.parametrize(
    ("spec", "checkpoints", "sinks"),
    [
        ("defaults: {checkpoints: checkpoints}", ["checkpoints"], []),
        (
            "defaults: {checkpoints: 'file:/srv/ck'}\ndead_letters: lake/dead",
            ["/srv/ck"],
            ["dead letters lake/dead"],
        ),
        ("defaults: {checkpoints: '${CK:-/srv/ck}'}", ["/srv/ck"], []),
        ("defaults: {checkpoints: 's3a://shop/ck'}\ndead_letters: {delta: {path: s3a://shop/dead}}", [], []),
        ("defaults: {checkpoints: '${CK}'}\ndead_letters: '${DEAD}'", [], []),
        ("defaults: {checkpoints: .millstream/others}", [], []),
    ],
)
def test_checkpoints_and_dead_letters_that_a_container_would_lose_are_named(
    project: Path, capsys: pytest.CaptureFixture[str], spec: str, checkpoints: list[str], sinks: list[str]
) -> None:
    file = project / "pipeline.yml"
    file.write_text(f"{spec}\n{file.read_text()}")

    assert run_command(["package", "-f", str(project), "--json"]) == 0

    description = json.loads(capsys.readouterr().out)
    assert (description["local_checkpoints"], description["local_sinks"]) == (checkpoints, sinks)


def test_a_query_and_a_source_with_a_folder_of_their_own_are_named(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = project / "pipeline.yml"
    more = "  files: {json: {path: in, clean_source: archive, archive_to: done}, schema: {id: bigint}}\nqueries:\n"
    text = (
        spec.read_text()
        .replace("queries:\n", more)
        .replace("priced:\n", "priced:\n    checkpoint: /srv/v2\n")
    )
    spec.write_text(text)

    assert run_command(["package", "-f", str(project)]) == 0

    warnings = [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning: ")]
    assert [line.partition(", outside of its volume")[0] for line in warnings] == [
        "warning: a container loses the checkpoints in /srv/v2",
        "warning: a container loses the data of archived files done",
    ]


def test_a_local_sink_of_a_pipeline_in_python_is_named(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "shop.py").write_text(
        "import millstream as ms\n\n"
        "orders = ms.declare('shop', defaults={'checkpoints': 'ck'}, dead_letters='lake/dead')\n"
        "orders.source('ticks', ms.rate(rows_per_second=1))\n"
        "orders.query('ticks', to=ms.delta('lake/ticks'), checkpoint='/srv/v2')\n"
    )

    assert run_command(["package", "-f", str(project / "shop.py"), "--json"]) == 0

    description = json.loads(capsys.readouterr().out)
    assert description["local_sinks"] == ["delta lake/ticks", "dead letters lake/dead"]
    assert description["local_checkpoints"] == ["ck", "/srv/v2"]
