"""The model of a pipeline, built from a YAML file, with the position of every value, or from Python."""
