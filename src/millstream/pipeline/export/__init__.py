"""Export a pipeline as a diagram, as JSON schema, and as a spec with every default filled in."""
