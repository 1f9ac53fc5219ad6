"""Who else hears of a run: receivers that OpenTelemetry's and OpenLineage's own variables name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.dashboard.outward import Outward

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from millstream.pipeline.model import Pipeline

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
HTTP = "http/protobuf"


def receivers(
    pipeline: Pipeline, run: str, settings: Mapping[str, str], say: Callable[[str], None]
) -> list[Outward]:
    """What is configured, begun. Where one cannot be, `say` gets one sentence, and the run goes on without it."""
    found = []
    if endpoint := _wanted(settings):
        protocol = settings.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or settings.get(
            "OTEL_EXPORTER_OTLP_PROTOCOL", HTTP
        )
        try:
            if protocol != HTTP:
                raise ValueError(f"the protocol is {protocol}, and spans are sent as {HTTP}")
            # An extra: imported where it is configured alone.
            from millstream.dashboard.spans import Spans  # noqa: PLC0415
        except ImportError as missing:
            say(
                f"{endpoint} is set and no span is sent: {missing.name} is not installed; "
                "pip install 'millstream[otel]'"
            )
        except ValueError as wrong:
            say(f"{endpoint} is set and no span is sent: {wrong}")
        else:
            # Its exporter tries again by itself, for ten seconds at most.
            found.append(Outward(Spans(pipeline.name, run), waits=()))
    if settings.get("OPENLINEAGE_URL") and not _true(settings, "OPENLINEAGE_DISABLED"):
        # urllib and json are loaded by the page already; the module is not needed without the variable.
        from millstream.dashboard.lineage import Lineage, receiver  # noqa: PLC0415

        try:
            to = receiver(settings)
        except ValueError as wrong:
            say(f"no lineage is sent: {wrong}")
        else:
            namespace = settings.get("OPENLINEAGE_NAMESPACE") or "default"
            found.append(Outward(Lineage(pipeline, run, to, namespace)))
    return found


def _wanted(settings: Mapping[str, str]) -> str:
    """The variable that names OpenTelemetry's endpoint; empty where none does, or spans are switched off."""
    off = _true(settings, "OTEL_SDK_DISABLED") or settings.get("OTEL_TRACES_EXPORTER", "otlp") != "otlp"
    return "" if off else next((name for name in _ENDPOINTS if settings.get(name)), "")


def _true(settings: Mapping[str, str], name: str) -> bool:
    return settings.get(name, "").strip().lower() == "true"
