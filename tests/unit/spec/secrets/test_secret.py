"""A secret is hidden by its value however it is written, and an address by its shape."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

import pytest

from millstream.spec.secrets.interpolation import interpolate
from millstream.spec.secrets.redaction import SECRET_NAME
from millstream.spec.secrets.secret import Secret, SecretUrl, redact

if TYPE_CHECKING:
    from pathlib import Path

# All that is special in an address, in JSON, in a shell, in SQL and in Python.
CANARY = "c4n @ry/%:'\"#?&\\z9"
PIECES = ("c4n", "ry/", "ry%2", "z9")


def test_the_password_of_an_address_ends_at_the_last_sign_before_the_host() -> None:
    assert redact("postgresql://shop:p@ss-word@db:5432/x") == "postgresql://shop:***@db:5432/x"
    assert redact("cannot reach postgresql://shop:p ss%:@db/x, twice") == (
        "cannot reach postgresql://shop:***@db/x, twice"
    )
    assert redact("'https://u:a/b@h/d'") == "'https://u:***@h/d'"


@pytest.mark.parametrize(
    "text",
    [
        "http://127.0.0.1:4711/ is open; write to me@example.com",
        "s3a://bucket/folder@2026/part",
        "postgresql://shop:${PASSWORD}@db/x",
        '{"a": "http://host:80", "b": "x@y"}',
        "the token of the page is missing",
    ],
)
def test_what_holds_no_password_stays_as_it_is(text: str) -> None:
    assert redact(text) == text


def test_the_value_of_a_parameter_is_hidden_with_its_quotes() -> None:
    assert redact('required username="u" password="x \\" y";') == 'required username="u" password=***;'
    assert redact("sasl.password=a'b c&d") == "sasl.password=*** c&d"
    assert redact('{"sasl.password": "x y", "n": 1}') == '{"sasl.password": "***", "n": 1}'


@pytest.mark.parametrize(
    "written",
    [
        CANARY,
        quote(CANARY),
        quote(CANARY, safe=""),
        quote(CANARY, safe="").lower(),
        quote_plus(CANARY),
        json.dumps(CANARY),
        json.dumps(json.dumps(CANARY)),
        repr(CANARY),
        CANARY.replace("'", "''"),
    ],
)
def test_a_secret_is_hidden_however_it_is_written(written: str) -> None:
    secret = Secret(CANARY)

    text = redact(f"login with {written} was refused")

    assert secret.reveal() == CANARY
    assert "***" in text
    assert [piece for piece in PIECES if piece in text] == []


@pytest.mark.parametrize("password", [CANARY, quote(CANARY, safe=""), "12/c4n@ry?x#z9"])
def test_the_password_of_an_address_is_hidden_where_it_stands_alone(password: str) -> None:
    url = SecretUrl(f"postgresql://shop:{password}@db:5432/x")

    for output in (password, f"Postgres at shop:{password}@db:5432/x", url.redacted(), redact(url.reveal())):
        assert [piece for piece in (*PIECES, "c4n") if piece in redact(output)] == []
    assert redact("Postgres at db:5432/x") == "Postgres at db:5432/x"


def test_each_line_of_a_secret_of_several_lines_is_hidden() -> None:
    key = Secret("-----BEGIN KEY-----\nMIIabcdefgh\n-----END KEY-----\n")

    assert "MIIabcdefgh" not in redact(f"bad line: MIIabcdefgh of {key}")


def test_a_word_that_is_no_secret_at_all_stays() -> None:
    SecretUrl("postgresql://postgres:postgres@db/orders")
    Secret("pw")
    Secret("***")

    assert redact("sink postgres:purchases of a power of two *** x") == (
        "sink postgres:purchases of a power of two *** x"
    )


def test_the_text_of_a_secrets_file_is_hidden_wherever_the_spec_puts_it(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("f1le-canary\n")
    file.chmod(0o600)

    interpolate(
        "x ${file:key} ${KAFKA_TOKEN} ${HOST} ${KEY_FILE}",
        {"KAFKA_TOKEN": "v4r-canary", "HOST": "broker-1", "KEY_FILE": "/run/key"},
        tmp_path,
    )

    assert redact("f1le-canary v4r-canary broker-1 /run/key") == "*** *** broker-1 /run/key"


SIGNED = "https://shop.blob.core.windows.net/lake?sv=2025&sig=c4n%2Bary%3D"


@pytest.mark.parametrize(
    ("text", "env"),
    [
        ("${file:address}", {}),
        ("${LAKE_SAS}", {"LAKE_SAS": SIGNED}),
        ("${ALERT_WEBHOOK_URL}", {"ALERT_WEBHOOK_URL": SIGNED}),
    ],
)
def test_an_address_that_is_a_secret_is_hidden_whole(tmp_path: Path, text: str, env: dict[str, str]) -> None:
    file = tmp_path / "address"
    file.write_text(SIGNED)
    file.chmod(0o600)

    interpolate(text, env, tmp_path)

    assert redact(f"no answer from {SIGNED} in time") == "no answer from *** in time"
    assert redact("sig c4n+ary= is too old") == "sig *** is too old"


def test_of_an_address_that_is_no_secret_only_the_signature_is_hidden(tmp_path: Path) -> None:
    interpolate("${LAKE}", {"LAKE": SIGNED}, tmp_path)
    interpolate("${TOKEN_ENDPOINT_URL}", {"TOKEN_ENDPOINT_URL": "https://login.example.com/t"}, tmp_path)

    assert redact(SIGNED) == "https://shop.blob.core.windows.net/lake?sv=2025&sig=***"
    assert redact("https://login.example.com/t") == "https://login.example.com/t"


@pytest.mark.parametrize(
    "name",
    [
        "spark.hadoop.fs.s3a.encryption.key",
        "spark.hadoop.fs.s3a.server-side-encryption.key",
        "spark.hadoop.fs.azure.account.key.shop.dfs.core.windows.net",
        "spark.hadoop.fs.azure.sas.lake.shop.blob.core.windows.net",
        "ssl.key.passphrase",
        "AccountKey",
        "LAKE_SAS",
    ],
)
def test_a_name_says_that_its_value_is_a_secret(name: str) -> None:
    assert SECRET_NAME.search(name)


@pytest.mark.parametrize(
    "name",
    ["spark.io.encryption.keySizeBits", "sasl.mechanism", "fs.azure.account.keyprovider.shop", "sassy"],
)
def test_a_name_with_a_similar_word_does_not(name: str) -> None:
    assert not SECRET_NAME.search(name)


def test_the_key_of_a_connection_string_is_hidden() -> None:
    assert redact("AccountName=shop;AccountKey=c4nary==;EndpointSuffix=x") == (
        "AccountName=shop;AccountKey=***;EndpointSuffix=x"
    )
