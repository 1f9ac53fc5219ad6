"""Write the Dockerfile and the Kubernetes manifests of a package from their templates."""

from __future__ import annotations

import json
import posixpath
import re
import sys
import textwrap
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from millstream.spec.secrets.interpolation import Reference

TEMPLATES = Path(__file__).parent / "templates"
HOME = "/opt/pipeline"
"""The folder of a package in its image."""

# Other machines probe the page, so it does not listen on loopback alone.
_RUN = ("run", "--host", "0.0.0.0", "--port", "4711")  # noqa: S104 - the page asks for its token

# A StatefulSet's name is part of labels of at most 63 characters, to which Kubernetes appends a number and a hash.
_LONGEST = 52


def write_dockerfile(arguments: Sequence[str] = ()) -> str:
    """Return the Dockerfile of a package, with the Python of this process. `arguments` are appended to `run`."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return _fill("Dockerfile", {"python": python, "run": json.dumps([*_RUN, *arguments])})


def write_manifests(name: str, references: Sequence[Reference], arguments: Sequence[str] = ()) -> str:
    """Return the manifests of a pipeline of this name whose spec has these variables. `arguments` are as above.

    Variables come from the Secret NAME-variables, the files of `${file:…}` from the Secret NAME-files. Each file is
    mounted alone, which leaves the other files of its folder in place.
    """
    label = kubernetes_name(name)
    variables = [_variable(label, reference) for reference in references if not reference.is_file]
    files = _name_files(reference.name for reference in references if reference.is_file)
    mounts = [
        {"name": "files", "mountPath": path, "subPath": key, "readOnly": True} for path, key in files.items()
    ]
    # 288 is 0440: Millstream refuses a file that every user may read, which is the default.
    volumes = [{"name": "files", "secret": {"secretName": f"{label}-files", "defaultMode": 288}}]
    values = {
        "name": label,
        "run": json.dumps([*_RUN, "--json", *arguments]),
        "env": _block(10, {"env": variables}) if variables else "",
        "mounts": _block(12, mounts) if mounts else "",
        "volumes": _block(6, {"volumes": volumes}) if mounts else "",
    }
    return _fill("kubernetes.yml", values)


def kubernetes_name(name: str) -> str:
    """Return a name that Kubernetes accepts for its objects."""
    plain = re.sub(r"[^a-z0-9-]+", "-", name.lower()).strip("-")
    if not plain[:1].isalpha():
        plain = f"pipeline-{plain}"
    return plain[:_LONGEST].rstrip("-")


def _variable(label: str, variable: Reference) -> dict[str, object]:
    key: dict[str, object] = {"name": f"{label}-variables", "key": variable.name}
    if variable.default is not None:
        key["optional"] = True
    return {"name": variable.name, "valueFrom": {"secretKeyRef": key}}


def _name_files(files: Iterable[str]) -> dict[str, str]:
    """Return the keys of files in their Secret, by the path where each is mounted.

    The key is the name of the file, or its whole path with dots for slashes if another file has that name. A key
    that another file has already ends in one more underscore.
    """
    by_path = {posixpath.normpath(posixpath.join(HOME, "project", file)): file for file in files}
    names = Counter(posixpath.basename(path) for path in by_path)
    keys: dict[str, str] = {}
    for path, file in by_path.items():
        name = posixpath.basename(path)
        key = re.sub(r"[^A-Za-z0-9._-]+", ".", name if names[name] == 1 else file.lstrip("./"))
        while key in keys.values():
            key += "_"
        keys[path] = key
    return keys


def _block(indent: int, value: Any) -> str:
    return textwrap.indent(yaml.safe_dump(value, sort_keys=False), " " * indent)


def _fill(template: str, values: Mapping[str, str]) -> str:
    text = (TEMPLATES / template).read_text(encoding="utf-8")
    for name, value in values.items():
        place = f"{{{{{name}}}}}"
        # A block, also an empty one, replaces the whole line of its place.
        is_block = not value or value.endswith("\n")
        text = text.replace(f"{place}\n" if is_block else place, value)
    return text
