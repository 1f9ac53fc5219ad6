"""A pipeline as a model, in two spellings: the YAML file with a place for every value, and Python."""
