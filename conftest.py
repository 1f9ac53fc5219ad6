"""Plugins of the whole repository: the pages of codes lie beside the code and are tests as well."""

import pytest
from hypothesis import settings

# How long an example takes says how busy the machine is, and nothing of the code.
settings.register_profile("millstream", deadline=None)
settings.load_profile("millstream")

pytest.register_assert_rewrite("rule_pages")
pytest_plugins = ["collect_md", "sweep"]
