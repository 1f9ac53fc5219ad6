"""Settings that connectors and pipelines share: durations, watermarks, triggers, guarantees, secrets."""
