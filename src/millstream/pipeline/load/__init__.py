"""Load a spec: the YAML document with the position of every value, variables, overrides, errors."""
