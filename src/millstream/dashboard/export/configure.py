"""Configure exporters from the environment variables of OpenTelemetry and OpenLineage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.dashboard.export.exporter import ExportQueue

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from millstream.pipeline.model import Pipeline

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
HTTP = "http/protobuf"


def configure_exporters(
    pipeline: Pipeline, run: str, settings: Mapping[str, str], say: Callable[[str], None]
) -> list[ExportQueue]:
    """Start the configured exporters. If one cannot start, call `say` with the reason and continue without it."""
    queues = []
    if endpoint := _endpoint_variable(settings):
        protocol = settings.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or settings.get(
            "OTEL_EXPORTER_OTLP_PROTOCOL", HTTP
        )
        try:
            if protocol != HTTP:
                raise ValueError(f"the protocol is {protocol}, but spans are sent as {HTTP}")
            # Imported only if configured, because its packages are an extra.
            from millstream.dashboard.export.opentelemetry import Spans  # noqa: PLC0415
        except ImportError as missing:
            say(
                f"{endpoint} is set but no spans are sent: {missing.name} is not installed; "
                "pip install 'millstream[otel]'"
            )
        except ValueError as error:
            say(f"{endpoint} is set but no spans are sent: {error}")
        else:
            # No waits, because its exporter retries by itself, for ten seconds at most.
            queues.append(ExportQueue(Spans(pipeline.name, run), waits=()))
    if settings.get("OPENLINEAGE_URL") and not _is_true(settings, "OPENLINEAGE_DISABLED"):
        # Imported only if configured, because the module is not needed otherwise.
        from millstream.dashboard.export.openlineage import Lineage, receiver_from_environment  # noqa: PLC0415

        try:
            target = receiver_from_environment(settings)
        except ValueError as error:
            say(f"no lineage is sent: {error}")
        else:
            namespace = settings.get("OPENLINEAGE_NAMESPACE") or "default"
            queues.append(ExportQueue(Lineage(pipeline, run, target, namespace)))
    return queues


def _endpoint_variable(settings: Mapping[str, str]) -> str:
    """Return the variable that has OpenTelemetry's endpoint; empty if none does or spans are off."""
    off = _is_true(settings, "OTEL_SDK_DISABLED") or settings.get("OTEL_TRACES_EXPORTER", "otlp") != "otlp"
    return "" if off else next((name for name in _ENDPOINTS if settings.get(name)), "")


def _is_true(settings: Mapping[str, str], name: str) -> bool:
    return settings.get(name, "").strip().lower() == "true"
