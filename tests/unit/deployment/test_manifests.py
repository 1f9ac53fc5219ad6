"""The Dockerfile and the manifests of a package, judged by hadolint and by the schemas of the Kubernetes API."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from millstream.dashboard.http.server import PROBES
from millstream.deployment.manifests import HOME, kubernetes_name, write_dockerfile, write_manifests
from millstream.spec.secrets.interpolation import Reference

REFERENCES = (
    Reference("KAFKA", default="localhost:9092"),
    Reference("POSTGRES_URL"),
    Reference("secrets/kafka_password", is_file=True),
    Reference("/run/secrets/token", is_file=True),
)
OLDEST, NEWEST = "1.29", "1.37"


def read_manifests(*references: Reference) -> dict[str, Any]:
    documents = list(yaml.safe_load_all(write_manifests("Shop_orders", references)))
    return {document["kind"]: document for document in documents}


@pytest.mark.parametrize(
    ("version", "references"),
    [(OLDEST, REFERENCES), (NEWEST, REFERENCES), (NEWEST, REFERENCES[:1]), (NEWEST, ())],
)
def test_the_kubernetes_api_has_each_field_of_the_manifests(
    version: str, references: tuple[Reference, ...]
) -> None:
    manifests = read_manifests(*references)

    assert set(manifests) == {"Service", "StatefulSet"}
    for manifest in manifests.values():
        kubernetes_validate.validate(manifest, version, strict=True)


def test_the_schemas_refuse_a_field_that_does_not_exist() -> None:
    manifest = read_manifests()["StatefulSet"]
    manifest["spec"]["template"]["spec"]["terminationGracePeriod"] = 30

    with pytest.raises(kubernetes_validate.ValidationError, match="terminationGracePeriod"):
        kubernetes_validate.validate(manifest, NEWEST, strict=True)


def test_probes_ask_what_the_page_answers_without_a_token() -> None:
    (container,) = read_manifests()["StatefulSet"]["spec"]["template"]["spec"]["containers"]
    paths = [container[f"{kind}Probe"]["httpGet"]["path"] for kind in ("startup", "liveness", "readiness")]

    assert paths == ["/healthz", "/healthz", "/readyz"]
    assert set(paths) == set(PROBES)
    assert container["args"][-2:] != ["--no-page"]
    assert str(container["ports"][0]["containerPort"]) in container["args"]


def test_one_driver_runs_as_a_user_who_is_not_root_and_keeps_its_state_in_a_volume() -> None:
    spec = read_manifests()["StatefulSet"]["spec"]
    pod = spec["template"]["spec"]

    assert spec["replicas"] == 1
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert {"name": "state", "mountPath": f"{HOME}/project/.millstream"} in pod["containers"][0][
        "volumeMounts"
    ]
    assert spec["volumeClaimTemplates"][0]["metadata"]["name"] == "state"
    # The page accepts whoever has the token, so nothing is gained by fewer seconds; a batch may take minutes.
    assert pod["terminationGracePeriodSeconds"] >= 120


def test_each_variable_comes_from_a_secret_and_only_one_with_a_default_may_be_missing() -> None:
    (container,) = read_manifests(*REFERENCES)["StatefulSet"]["spec"]["template"]["spec"]["containers"]

    keys = {item["name"]: item["valueFrom"]["secretKeyRef"] for item in container["env"]}
    assert keys == {
        "KAFKA": {"name": "shop-orders-variables", "key": "KAFKA", "optional": True},
        "POSTGRES_URL": {"name": "shop-orders-variables", "key": "POSTGRES_URL"},
    }


def test_files_of_secrets_are_mounted_where_the_spec_reads_them_and_not_for_every_user() -> None:
    pod = read_manifests(*REFERENCES)["StatefulSet"]["spec"]["template"]["spec"]

    mounts = {item["mountPath"]: item.get("subPath") for item in pod["containers"][0]["volumeMounts"]}
    assert mounts[f"{HOME}/project/secrets/kafka_password"] == "kafka_password"
    assert mounts["/run/secrets/token"] == "token"
    (volume,) = pod["volumes"]
    assert volume["secret"] == {"secretName": "shop-orders-files", "defaultMode": 0o440}


def test_two_files_of_one_name_have_different_keys_in_the_secret() -> None:
    files = ("kafka/eu/token", "kafka.eu/token", "kafka/password", "./postgres/password", "postgres/password")
    pod = read_manifests(*(Reference(file, is_file=True) for file in files))["StatefulSet"]["spec"][
        "template"
    ]

    mounts = {item["mountPath"]: item.get("subPath") for item in pod["spec"]["containers"][0]["volumeMounts"]}
    assert mounts == {
        f"{HOME}/project/.millstream": None,
        f"{HOME}/project/kafka/eu/token": "kafka.eu.token",
        f"{HOME}/project/kafka.eu/token": "kafka.eu.token_",
        f"{HOME}/project/kafka/password": "kafka.password",
        f"{HOME}/project/postgres/password": "postgres.password",
    }
    assert len(pod["spec"]["containers"][0]["volumeMounts"]) == len(mounts)


def test_the_limit_of_cores_is_the_request_because_spark_takes_each_core_that_it_sees() -> None:
    (container,) = read_manifests()["StatefulSet"]["spec"]["template"]["spec"]["containers"]

    assert container["resources"]["limits"]["cpu"] == container["resources"]["requests"]["cpu"]


@pytest.mark.parametrize(
    ("name", "valid"),
    [
        ("shop", "shop"),
        ("Shop_Orders", "shop-orders"),
        ("2024_shop", "pipeline-2024-shop"),
        ("_", "pipeline"),
        ("a" * 80, "a" * 52),
        ("1" * 80, "pipeline-" + "1" * 43),
    ],
)
def test_a_name_is_one_that_kubernetes_accepts(name: str, valid: str) -> None:
    assert kubernetes_name(name) == valid


@pytest.mark.parametrize("arguments", [(), ("-f", "pipeline.py")])
def test_hadolint_finds_nothing_in_the_dockerfile(arguments: tuple[str, ...]) -> None:
    hadolint = Path(sys.executable).with_name("hadolint")

    done = subprocess.run(
        [hadolint, "--format", "json", "--failure-threshold", "style", "-"],
        input=write_dockerfile(arguments),
        capture_output=True,
        text=True,
        check=False,
    )

    assert json.loads(done.stdout) == []
    assert done.returncode == 0


def test_the_image_starts_python_as_its_first_process_which_receives_the_signal() -> None:
    lines = write_dockerfile().splitlines()

    assert 'ENTRYPOINT ["python", "/opt/pipeline/main.py"]' in lines
    assert 'CMD ["run", "--host", "0.0.0.0", "--port", "4711"]' in lines
    assert f"FROM python:{sys.version_info.major}.{sys.version_info.minor}-slim-trixie" in lines
