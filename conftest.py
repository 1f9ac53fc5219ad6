"""Plugins of the whole repository: the pages of codes lie beside the code and are tests as well."""

import pytest

pytest.register_assert_rewrite("rule_pages")
pytest_plugins = ["collect_md"]
