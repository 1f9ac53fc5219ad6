"""A small project, and one locked jar in place of those of Spark and of those of S3."""

from __future__ import annotations

import functools
import hashlib
from importlib import metadata
from typing import TYPE_CHECKING

import pytest

from millstream.deployment import pipeline_package, python_lock
from millstream.spark.conditional_writes import compiled_jar
from millstream.spark.jars import jar_cache

if TYPE_CHECKING:
    from pathlib import Path

BYTES = b"the bytes of a jar"
JAR, S3_JAR = (
    jar_cache.Jar(f"org.example:{name}:1.0", len(BYTES), hashlib.sha256(BYTES).hexdigest())
    for name in ("thing", "s3")
)

SPEC = """\
name: shop
sources:
  orders:
    kafka:
      bootstrap_servers: ${KAFKA:-localhost:9092}
      subscribe: orders
      security:
        protocol: SASL_SSL
        username: shop
        password: "${file:secrets/kafka_password}"
        ca_file: certs/ca.pem
    format: avro
    avro_value: {schema: orders.avsc}
queries:
  priced:
    to: {postgres: {url: "${POSTGRES_URL}", table: priced}}
"""
# Reading the names of all installed packages takes a fifth of a second.
packages_distributions = functools.cache(metadata.packages_distributions)
SCHEMA = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a project: a spec, a view in SQL, modules, a schema, and secrets that no package may have."""
    folder = tmp_path / "shop"
    for name, text in {
        "pipeline.yml": SPEC,
        "orders.avsc": SCHEMA,
        "views/priced.sql": "SELECT *, rate() AS rate FROM orders",
        "transforms.py": "from pricing.rates import RATES\nimport pyarrow\n",
        "pricing/__init__.py": "",
        "pricing/rates.py": "RATES = {}\n",
        "certs/ca.pem": "-----BEGIN CERTIFICATE-----\n",
        "secrets/kafka_password": "hunter2-kafka",
        ".env": "POSTGRES_URL=postgresql://shop:hunter2-postgres@db/shop\n",
        ".millstream/checkpoints/priced/metadata": "{}",
        "data/catalog.csv": "1,2\n",
        "venv/pyvenv.cfg": "",
        "venv/lib/other.py": "",
    }.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    jars = tmp_path / "jars"
    jars.mkdir()
    for jar in (JAR, S3_JAR):
        (jars / jar.file).write_bytes(BYTES)
    monkeypatch.setattr(jar_cache, "locked_jars", lambda: {"spark": (JAR,), "s3": (S3_JAR,)})
    monkeypatch.setenv("MILLSTREAM_JARS", str(jars))
    compiled = jars / "compiled.jar"
    compiled.write_bytes(BYTES)
    monkeypatch.setattr(compiled_jar, "ensure_compiled_jar", lambda: compiled)
    # Compressing all of Millstream for each test takes a third of a second.
    monkeypatch.setattr(pipeline_package, "list_own_files", lambda: [("__init__.py", b"")])
    monkeypatch.setattr(python_lock.metadata, "packages_distributions", packages_distributions)
    monkeypatch.setenv("POSTGRES_URL", "postgresql://shop:hunter2-environment@db/shop")
    return folder
