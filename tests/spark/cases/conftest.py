"""The cases here are played by `tests/spark/testing/test_ported_cases.py`, and not once more by the plugin."""

collect_ignore_glob = ["*.yml"]
