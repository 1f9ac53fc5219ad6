"""One folder a system: its sources, its sinks, their writers and their facts. Nothing outside names a kind."""
