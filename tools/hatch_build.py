"""Put the documentation site into the wheel, if `make site` has built it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# Source maps, and copies that only a web server or a search engine needs.
_LEFT_OUT = (".map", ".gz", "sitemap.xml")


class SiteHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the files of build/site to a wheel as millstream/site."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files, unless this is an editable installation, which finds them in the checkout."""
        site = Path(self.root, "build", "site")
        if self.target_name != "wheel" or version == "editable":
            return
        for file in site.rglob("*"):
            if file.is_file() and not file.name.endswith(_LEFT_OUT):
                build_data["force_include"][str(file)] = f"millstream/site/{file.relative_to(site)}"
