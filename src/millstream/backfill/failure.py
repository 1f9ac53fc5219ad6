"""Explain the error that ended a backfill."""

from __future__ import annotations

from millstream.diagnostics.failure import MillstreamError, NotReady
from millstream.engine.failure_classifier import FailureKind, classify


def explain_failure(query: str, error: Exception, fix: str) -> MillstreamError:
    """Describe an error of Spark or of the user's functions in one sentence; `fix` is the default fix."""
    failure = classify(None, error)
    kind = NotReady if failure.cause is FailureKind.OUTAGE else MillstreamError
    return kind(f"the backfill of query '{query}' failed: {failure.message}", failure.fix or fix)
