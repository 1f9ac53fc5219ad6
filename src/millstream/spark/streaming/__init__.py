"""Settings of running queries: how their batches are executed, and how often they ask their sources."""
