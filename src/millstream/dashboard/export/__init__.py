"""Export metrics, spans, lineage and alerts to other systems."""
