"""Commands about changed pipelines and their checkpoints."""
