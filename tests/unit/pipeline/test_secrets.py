"""A canary planted in every secret field of a spec turns up nowhere."""

from __future__ import annotations

from millstream.pipeline.export.dump import resolve_spec
from millstream.pipeline.model import Pipeline
from millstream.spec.secrets.redaction import REDACTOR, redact_deep
from millstream.spec.secrets.secret import redact

CANARY = "S3CR3T-can/ary"
SPEC = {
    "name": "shop",
    "alerts_to": f"https://hooks.example.com/{CANARY}",
    "sources": {
        "clicks": {
            "kafka": {
                "bootstrap_servers": "localhost:9092",
                "subscribe": "clicks",
                "security": {"protocol": "SASL_SSL", "username": "me", "password": CANARY},
            },
            "schema": {"id": "string"},
        }
    },
    "queries": {
        "clicks": {"to": {"postgres": {"url": "postgresql://me:S3CR3T-can%2Fary@host/db", "table": "t"}}}
    },
}


def test_secrets_are_found_wherever_a_spec_has_them_and_however_they_are_written() -> None:
    Pipeline.model_validate(SPEC)

    for output in (CANARY, "S3CR3T-can%2Fary", f"https://hooks.example.com/{CANARY}"):
        assert "S3CR3T" not in redact(f"the login with {output} was refused")


def test_lists_and_mappings_are_hidden_however_deep_and_figures_stay() -> None:
    REDACTOR.protect(CANARY)

    secret = redact_deep({"a": [{"b": f"x {CANARY}"}, 7, None, True], "c": ("postgresql://u:pw@h/d",)})

    assert secret == {"a": [{"b": "x ***"}, 7, None, True], "c": ["postgresql://u:***@h/d"]}


def test_a_secret_of_a_few_letters_does_not_eat_every_word() -> None:
    spec = {**SPEC, "alerts_to": "https://hooks.example.com/x"}
    spec["sources"] = {"ticks": {"rate": {"rows_per_second": 1}}}
    spec["queries"] = {"ticks": {"to": {"postgres": {"url": "postgresql://me:pw@host/db", "table": "t"}}}}

    Pipeline.model_validate(spec)

    assert redact("a power of two") == "a power of two"


def test_a_number_that_is_a_secret_by_its_name_is_hidden() -> None:
    settings = {"spark.ssl.keyPassword": 48151623, "spark.hadoop.fs.s3a.encryption.key": "c4nary=="}
    pipeline = Pipeline.model_validate(
        {**SPEC, "params": {"pin_token": 10842.5, "at_least": 3}, "spark": {**settings, "spark.x": 48151624}}
    )

    spec = resolve_spec(pipeline)

    assert spec["spark"] == {**dict.fromkeys(settings, "***"), "spark.x": 48151624}
    assert spec["params"] == {"pin_token": "***", "at_least": 3}
    assert redact("the password 48151623 and the token 10842.5 are wrong") == (
        "the password *** and the token *** are wrong"
    )


def test_a_switch_is_no_secret_whatever_its_name() -> None:
    setting = {"spark.security.credentials.hive.enabled": False}

    assert resolve_spec(Pipeline.model_validate({**SPEC, "spark": setting}))["spark"] == setting


def test_the_type_of_a_column_is_no_secret_whatever_the_name_of_the_column() -> None:
    columns = {"token": "string", "password_changed": "timestamp"}
    kafka = {"bootstrap_servers": "localhost:9092", "subscribe": "clicks"}

    pipeline = Pipeline.model_validate({**SPEC, "sources": {"clicks": {"kafka": kafka, "schema": columns}}})

    assert resolve_spec(pipeline)["sources"]["clicks"]["schema"] == columns
    assert redact("a string and a timestamp") == "a string and a timestamp"


def test_the_expectation_of_a_view_hides_a_secret_and_has_variables_as_text() -> None:
    REDACTOR.protect(CANARY)
    condition = f"token = '{CANARY}' AND c RLIKE '${{x}}'"
    view = {"sql": "SELECT '${x}' AS c, * FROM clicks", "expect": {"signed": condition}}

    spec = resolve_spec(Pipeline.model_validate({**SPEC, "views": {"seen": view}}))

    assert spec["views"]["seen"] == {
        "sql": "SELECT '${x}' AS c, * FROM clicks",
        "expect": {"signed": {"that": "token = '***' AND c RLIKE '$${x}'", "otherwise": "warn"}},
    }
