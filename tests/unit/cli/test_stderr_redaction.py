"""Passwords planted in a project are searched for in all that its commands print and keep."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path  # noqa: TC003 - read by pytest
from urllib.parse import quote

import pytest

from millstream.cli.main import run_command

# What an address, JSON, a shell, SQL and Python write in a way of their own.
CANARY = "c4n @ry/x1:x2%x3'x4\"x5"
PIECES = ("c4n", "x1", "x2", "x3", "x4", "x5")
# As a person writes it who does not know that a password is encoded in an address; `/` and quotes end one.
RAW = "c4n @ry:x2%x3"
HOOK = "T0ken/of-the-h00k x"

KAFKA = """    kafka:
      bootstrap_servers: "127.0.0.1:1"
      subscribe: clicks
      security: {protocol: SASL_PLAINTEXT, username: shopper, password: "${file:login}"}
    schema: {id: string}
"""
SPEC = f"""name: shop
sources:
  clicks:
{KAFKA}spark:
  spark.hadoop.fs.s3a.secret.key: ${{S3_SECRET}}
queries:
  clicks:
    to: {{postgres: {{url: "${{DB}}", table: t}}}}
alerts: [lag > 5]
alerts_to: http://127.0.0.1:1/${{HOOK}}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pipeline.yml").write_text(SPEC)
    (tmp_path / "login").write_text(CANARY)
    (tmp_path / "login").chmod(0o600)
    monkeypatch.setenv("S3_SECRET", CANARY)
    monkeypatch.setenv("HOOK", HOOK)
    monkeypatch.setenv("DB", f"postgresql://shopper:{quote(CANARY, safe='')}@127.0.0.1:1/orders")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def leaked(text: str) -> list[str]:
    return [piece for piece in (*PIECES, "T0ken", "h00k") if piece in text]


def printed(captured: pytest.CaptureFixture[str]) -> str:
    out, err = captured.readouterr()
    return out + err


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("password", [quote(CANARY, safe=""), RAW], ids=["encoded", "raw"])
@pytest.mark.parametrize(
    "words", [["config"], ["config", "--json"], ["check", "--fast"], ["check", "--fast", "--json"]]
)
def test_what_a_spec_gets_from_elsewhere_is_not_printed(
    words: list[str], password: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DB", f"postgresql://shopper:{password}@127.0.0.1:1/orders")

    run_command(words)

    text = printed(capfd)
    assert "clicks" in text or "no findings" in text
    assert leaked(text) == []


def test_a_run_that_fails_to_connect_prints_and_keeps_no_secret(
    project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    # A broker that is away is waited for; the database refuses at once.
    (project / "pipeline.yml").write_text(SPEC.replace(KAFKA, "    rate: 1\n"))
    monkeypatch.setenv("DB", f"postgresql://shopper:{RAW}@127.0.0.1:1/orders")

    code = run_command(["run", "--json", "--no-page"])

    text = printed(capfd)
    remaining = "".join(
        file.read_text() for file in (project / ".millstream/runs").rglob("*") if file.suffix == ".jsonl"
    )
    assert code == 4
    assert "127.0.0.1:1" in text
    assert '"described"' in remaining
    assert leaked(text + remaining) == []


@pytest.mark.usefixtures("project")
def test_a_check_that_reaches_nobody_prints_no_secret(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_command(["check", "--fast", "--connect"]) == 4

    text = printed(capfd)
    assert "127.0.0.1:1" in text
    assert leaked(text) == []


def test_tracebacks_and_log_records_of_a_process_hold_no_secret() -> None:
    program = f"""
import logging, threading
from millstream.cli import stderr_redaction
from millstream.spec.secrets.secret import Secret
stderr_redaction.install()
word = Secret({CANARY!r}).reveal()
def fail(): raise ValueError("thread " + word)
thread = threading.Thread(target=fail, name="a thread"); thread.start(); thread.join()
class Gone:
    def __del__(self): raise KeyError("unraisable " + word)
Gone()
logging.getLogger("psycopg").warning("record %s", word)
logging.getLogger("psycopg").warning("too many arguments", word)
try: fail()
except ValueError: logging.getLogger("millstream").exception("caught %s", word)
raise OSError("main " + word)
"""

    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    for what in ("ValueError: thread ***", "unraisable ***", "record ***", "caught ***", "main ***"):
        assert what in result.stderr
    assert "not all arguments converted" in result.stderr
    assert "Exception in thread a thread" in result.stderr
    assert leaked(result.stderr.replace(repr(CANARY), "")) == []
