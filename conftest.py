"""Plugins of the whole repository: the pages of codes lie beside the code and are tests as well."""

import os
import sys

import pytest
from hypothesis import settings

# Where this is set, each process that a test starts compiles every module that it imports, and each worker compiles
# every test: uv installs sources alone.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# How long an example takes says how busy the machine is, and nothing of the code.
settings.register_profile("millstream", deadline=None)
settings.load_profile("millstream")

pytest.register_assert_rewrite("rule_pages")
pytest_plugins = ["collect_md", "sweep"]
