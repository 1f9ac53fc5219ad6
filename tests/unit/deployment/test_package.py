"""What `millstream package` puts into an archive, and what it refuses."""

from __future__ import annotations

import gzip
import json
import re
import sys
import tarfile
from typing import TYPE_CHECKING

import pytest

from millstream.cli.main import run_command
from millstream.deployment.pipeline_package import list_own_files

if TYPE_CHECKING:
    from pathlib import Path


def package(spec: Path, *words: str) -> dict[str, bytes]:
    """The contents of a project's package."""
    archive = (spec if spec.is_dir() else spec.parent).parent / "package.tar.gz"
    assert run_command(["package", "-f", str(spec), "-o", str(archive), *words]) == 0
    with tarfile.open(archive) as opened:
        return {
            member.name: opened.extractfile(member).read()  # type: ignore[union-attr]
            for member in opened.getmembers()
        }


def test_a_package_has_the_spec_its_code_millstream_jars_and_what_is_needed_to_start(project: Path) -> None:
    contents = package(project)

    names = {name for name in contents if not name.startswith("lib/")}
    assert names == {
        "Dockerfile", "kubernetes.yml", "main.py", "package.json", "requirements.lock", "jars/thing-1.0.jar",
        "project/pipeline.yml", "project/orders.avsc", "project/views/priced.sql", "project/transforms.py",
        "project/pricing/__init__.py", "project/pricing/rates.py", "project/certs/ca.pem",
    }  # fmt: skip
    assert {name for name in contents if name.startswith("lib/")} == {"lib/millstream/__init__.py"}


def test_millstream_is_packaged_with_its_data_and_without_what_no_run_needs() -> None:
    names = {name for name, _ in list_own_files()}

    assert {"cli/main.py", "spark/jars/jars.lock", "dashboard/static/index.html"} <= names
    assert not any("__pycache__" in name or name.startswith(("examples/", "site/")) for name in names)


def test_the_same_project_gives_the_same_bytes(project: Path) -> None:
    archive = project.parent / "package.tar.gz"
    package(project)
    before = archive.read_bytes()
    for file in project.rglob("*"):
        file.touch()
    package(project)

    assert archive.read_bytes() == before


def test_variables_stay_open_and_no_value_of_one_is_inside(project: Path) -> None:
    contents = package(project)

    assert b'url: "${POSTGRES_URL}"' in contents["project/pipeline.yml"]
    assert [name for name, text in contents.items() if b"hunter2" in text] == []
    description = json.loads(contents["package.json"])
    assert description["variables"] == [
        {"name": "KAFKA", "required": False},
        {"name": "POSTGRES_URL", "required": True},
    ]
    assert description["secret_files"] == ["secrets/kafka_password"]


def test_what_is_needed_where_it_runs_is_printed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    package(project)

    printed = capsys.readouterr()
    assert printed.err == "needed where it runs: POSTGRES_URL, secrets/kafka_password\n"
    assert re.search(r"MB, 7 files of the project, 1 jars$", printed.out.strip())


def test_more_files_are_included_by_pattern(project: Path) -> None:
    assert "project/data/catalog.csv" in package(project, "--include", "data/*.csv")


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("data/*.json", "matches no file"),
        ("secrets/*", "matches secrets/kafka_password, which is a secret that the spec reads"),
        (".env", "matches .env, which is a file of secrets by its name"),
        ("certs/*", "matches certs/client.pem, which is a private key"),
        ("../*", "does not name files inside of"),
        ("**/metadata", "matches no file"),
        (".", "does not name files inside of"),
        ("**x/*", "is not a pattern" if sys.version_info < (3, 13) else "matches no file"),
    ],
)
def test_a_pattern_that_matches_nothing_or_a_secret_is_refused(
    project: Path, pattern: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "certs/client.pem").write_text("-----BEGIN RSA PRIVATE KEY-----\n")

    assert run_command(["package", "-f", str(project), "--include", pattern]) in (1, 2)

    assert message in capsys.readouterr().err
    assert not (project / "dist").exists()


def test_the_archive_is_named_relative_to_the_working_folder(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)

    assert run_command(["package", "-o", "dist/shop.tar.gz"]) == 0
    assert capsys.readouterr().out.startswith("dist/shop.tar.gz: ")
    assert run_command(["package"]) == 0
    assert capsys.readouterr().out.startswith("dist/")


def test_a_former_archive_is_not_packed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["package", "-f", str(project), "-o", str(project / "dist/former.tar.gz")]) == 0
    archive = (project / "dist/former.tar.gz").read_bytes()
    (project / "dist/.shop.tar.gz.17").write_bytes(archive[: len(archive) // 2])
    (project / "dist/prices.gz").write_bytes(gzip.compress(b"1,2"))

    contents = package(project, "--include", "dist/*")

    assert {name for name in contents if name.startswith("project/dist")} == {"project/dist/prices.gz"}
    (project / "dist/prices.gz").unlink()
    assert run_command(["package", "-f", str(project), "--include", "dist/*"]) == 2
    assert "--include dist/* matches no file" in capsys.readouterr().err


def test_requirements_that_are_not_utf_8_are_one_sentence(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "requirements.txt").write_text("duckdb  # für", encoding="latin-1")

    assert run_command(["package", "-f", str(project)]) == 2

    assert "requirements.txt is not UTF-8 text (byte 11)" in capsys.readouterr().err


def test_a_link_to_a_file_of_secrets_is_refused(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / ".env").write_text("TOKEN=abc\n")
    (project / "settings.txt").symlink_to(".env")

    assert run_command(["package", "-f", str(project), "--include", "settings.txt"]) in (1, 2)

    assert "settings.txt, which is a file of secrets by its name" in capsys.readouterr().err


def test_a_file_that_is_not_an_archive_is_not_written_over(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = project / "pipeline.yml"
    text = spec.read_text()

    assert run_command(["package", "-f", str(project), "-o", str(spec)]) in (1, 2)

    assert "exists and is not a package, so it is not overwritten" in capsys.readouterr().err
    assert spec.read_text() == text


def test_a_private_key_that_the_spec_names_is_left_out_and_said(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "certs/client.pem").write_text("-----BEGIN PRIVATE KEY-----\n")
    spec = project / "pipeline.yml"
    spec.write_text(spec.read_text().replace("ca_file:", "client_pem: certs/client.pem\n        ca_file:"))

    assert "project/certs/client.pem" not in package(project)
    assert "left out: certs/client.pem, a private key" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"${file:secrets/kafka_password}"', "hunter2-written"),
        ('"${file:secrets/kafka_password}"', '"${KAFKA_PASSWORD:-hunter2-default}"'),
        ('"${POSTGRES_URL}"', "postgresql://shop:hunter2-url@db/shop"),
        ('"${POSTGRES_URL}"', '"${POSTGRES_URL:-postgresql://shop:hunter2-url@db/shop}"'),
    ],
)
def test_a_secret_that_is_written_in_the_spec_is_refused_with_its_line(
    project: Path, before: str, after: str, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = project / "pipeline.yml"
    text = spec.read_text()
    spec.write_text(text.replace(before, after))
    line = text[: text.index(before)].count("\n") + 1

    assert run_command(["package", "-f", str(project)]) == 1

    error = capsys.readouterr().err
    assert f"pipeline.yml:{line}: " in error
    assert "contains a secret, which would be copied into the package" in error
    assert "hunter2" not in error


def test_a_spec_with_a_private_key_is_refused(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = project / "pipeline.yml"
    spec.write_text(f"# -----BEGIN PRIVATE KEY-----\n{spec.read_text()}")

    assert run_command(["package", "-f", str(project)]) == 1

    assert "pipeline.yml is or contains a private key" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("orders.avsc", "the Avro schema orders.avsc cannot be read: No such file or directory"),
        ("views/priced.sql", "the file of view 'priced', "),
    ],
)
def test_a_missing_file_is_said_with_its_place_in_the_spec(
    project: Path, name: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = project / "pipeline.yml"
    spec.write_text(spec.read_text() + "views:\n  priced: {file: views/priced.sql}\n")
    (project / name).unlink()

    assert run_command(["package", "-f", str(project)]) == 1

    error = capsys.readouterr().err
    assert message in error
    assert "pipeline.yml:" in error


def test_a_file_outside_of_the_project_is_refused(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project.parent / "shared.avsc").write_text((project / "orders.avsc").read_text())
    spec = project / "pipeline.yml"
    spec.write_text(spec.read_text().replace("orders.avsc", "../shared.avsc"))

    assert run_command(["package", "-f", str(project)]) == 1

    assert "is outside of the project's folder" in capsys.readouterr().err


def test_a_view_with_an_absolute_path_is_refused_and_a_certificate_is_left_to_the_machine(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = project / "pipeline.yml"
    (project.parent / "ca.pem").write_text("-----BEGIN CERTIFICATE-----\n")
    spec.write_text(spec.read_text().replace("certs/ca.pem", str(project.parent / "ca.pem")))
    assert "project/certs/ca.pem" not in package(project)
    view = project.parent / "large.sql"
    view.write_text("SELECT * FROM orders")
    spec.write_text(spec.read_text() + f"views:\n  large: {{file: {view}}}\n")

    assert run_command(["package", "-f", str(project)]) == 1

    error = capsys.readouterr().err
    assert f"{view} is an absolute path, and a package has only files of the project's folder" in error
    assert "name it relative to the folder" in error


@pytest.mark.parametrize("name", ["Dockerfile", "kubernetes.yml", "linked.py"])
@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("../shared", "is outside of the project's folder"),
        ("../absent", "is a link to {folder}/../absent, which does not exist"),
        ("absent", "is a link to {folder}/absent, which does not exist"),
    ],
)
def test_a_link_that_leads_outside_or_nowhere_is_refused(
    project: Path, name: str, target: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (project.parent / "shared").write_text("SELECT * FROM orders")
    (project / name).symlink_to(project / target)

    assert run_command(["package", "-f", str(project)]) == 1

    assert message.format(folder=project) in capsys.readouterr().err


def test_a_dockerfile_that_is_a_link_to_a_secret_is_refused(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "Dockerfile").symlink_to("secrets/kafka_password")

    assert run_command(["package", "-f", str(project)]) == 1

    error = capsys.readouterr().err
    assert "is a link to secrets/kafka_password, which is a secret that the spec reads" in error


@pytest.mark.parametrize(
    "edit",
    [
        ("to: {postgres", "to: {delta: {path: s3a://lake/priced}}\n  other:\n    to: {postgres"),
        ("to: {postgres", 'to: {delta: {path: "${LAKE:-s3a://lake}/priced"}}\n  other:\n    to: {postgres'),
        (
            "name: shop\nsources",
            "name: shop\nspark: {spark.hadoop.fs.s3a.endpoint.region: eu-central-1}\nsources",
        ),
    ],
    ids=["address", "default", "setting"],
)
def test_a_spec_that_uses_s3_gets_its_jars(project: Path, edit: tuple[str, str]) -> None:
    assert "jars/s3-1.0.jar" not in package(project)
    spec = project / "pipeline.yml"
    spec.write_text(spec.read_text().replace(*edit))

    assert {"jars/thing-1.0.jar", "jars/s3-1.0.jar", "jars/compiled.jar"} <= package(project).keys()


def test_a_missing_jar_is_said(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project.parent / "jars/thing-1.0.jar").write_bytes(b"another")

    assert run_command(["package", "-f", str(project)]) == 4

    assert "is refused: its checksum is not the expected one" in capsys.readouterr().err


def test_a_spec_of_another_name_is_found_without_an_option(project: Path) -> None:
    (project / "pipeline.yml").rename(project / "orders.yml")

    contents = package(project / "orders.yml")

    assert "project/pipeline.yml" in contents
    assert "project/orders.yml" not in contents


def test_the_image_compiles_modules_before_it_loses_the_right_to_store_them(project: Path) -> None:
    lines = package(project / "pipeline.yml")["Dockerfile"].decode().splitlines()

    compiled = lines.index("RUN python -m compileall -q /opt/pipeline/lib")
    assert lines.index("COPY lib /opt/pipeline/lib") < compiled < lines.index("USER 10001:10001")


def test_a_pipeline_in_python_is_named_in_the_manifests(project: Path) -> None:
    (project / "pipeline.yml").rename(project.parent / "spec.yml")
    (project / "shop.py").write_text(
        "import millstream as ms\n\n"
        "orders = ms.declare('shop')\n"
        "orders.source('ticks', ms.rate(rows_per_second=1))\n"
        "orders.query('ticks', to=ms.console())\n"
    )

    contents = package(project / "shop.py")

    assert b'"-f", "shop.py"' in contents["Dockerfile"]
    assert b'"-f", "shop.py"' in contents["kubernetes.yml"]


def test_a_dockerfile_and_manifests_of_the_project_are_taken_as_they_are(project: Path) -> None:
    (project / "Dockerfile").write_text("FROM scratch\n")
    (project / "kubernetes.yml").write_text("kind: Pod\n")

    contents = package(project)

    assert contents["Dockerfile"] == b"FROM scratch\n"
    assert contents["kubernetes.yml"] == b"kind: Pod\n"
