"""Keys and addresses of S3 buckets, for libraries that read a table without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.spec.location import S3_SCHEME, S3_SETTINGS

if TYPE_CHECKING:
    from collections.abc import Mapping

# Names of Hadoop's client of S3, and those of delta-rs.
_NAMES = {
    "access.key": "AWS_ACCESS_KEY_ID",
    "secret.key": "AWS_SECRET_ACCESS_KEY",
    "session.token": "AWS_SESSION_TOKEN",
    "endpoint": "AWS_ENDPOINT_URL",
    "endpoint.region": "AWS_REGION",
}

_settings: dict[str, str] = {}


def set_bucket_settings(conf: Mapping[str, object]) -> None:
    """Use the S3 settings among these settings of Spark in this process."""
    _settings.clear()
    _settings.update({name: str(value) for name, value in conf.items() if name.startswith(S3_SETTINGS)})


def storage_options(place: str) -> dict[str, str] | None:
    """Return the options with which delta-rs opens a place on S3, those of its bucket first. None for another place.

    What is not set is for the library to find in its environment, as with a role of the machine.
    """
    if not place.startswith(S3_SCHEME):
        return None
    bucket = place.split("/")[2]
    options = {}
    for name, option in _NAMES.items():
        value = _settings.get(f"{S3_SETTINGS}bucket.{bucket}.{name}", _settings.get(f"{S3_SETTINGS}{name}"))
        if value is not None:
            options[option] = value
    if options.get("AWS_ENDPOINT_URL", "").startswith("http://"):
        options["AWS_ALLOW_HTTP"] = "true"
    return options
