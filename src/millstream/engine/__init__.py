"""Run a pipeline: start, supervise and recover its queries, and deliver their batches to sinks."""
