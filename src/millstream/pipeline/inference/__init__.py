"""Infer a spec from real records: columns, event time, watermark."""
