"""Put together all that a package of a pipeline contains, by name inside the archive."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import millstream
from millstream.deployment import manifests
from millstream.deployment.local_places import find_local_checkpoints, find_local_sinks
from millstream.deployment.project_files import collect_files, read_own_file
from millstream.deployment.python_lock import list_extras, lock_packages
from millstream.diagnostics.failure import InvalidInput, MillstreamError
from millstream.pipeline import buckets
from millstream.pipeline.load.variables import is_sql
from millstream.spark.conditional_writes.compiled_jar import ensure_s3_jars
from millstream.spark.jars import jar_cache
from millstream.spec.location import S3_SCHEME, S3_SETTINGS
from millstream.spec.secrets.interpolation import Reference, list_references
from millstream.spec.secrets.redaction import SECRET_NAME
from millstream.spec.secrets.written_secret import find_written_secret

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from millstream.pipeline.load.document import YamlDocument
    from millstream.pipeline.spec_file import LoadedSpec

    Place = tuple[str | int, ...]

# Files of the installed package that no run needs: the wheel's copies of the examples and of the documentation.
_NOT_RUN = ("__pycache__", "examples", "site")
# What commands look for without -f.
DEFAULT_SPEC = "pipeline.yml"
# A file of the project with one of these names replaces the generated one.
_OWN = ("Dockerfile", "kubernetes.yml")


@dataclass(frozen=True)
class PipelinePackage:
    """The contents of an archive by name, and what a person should know of them."""

    name: str
    contents: Mapping[str, bytes]
    variables: tuple[Reference, ...]
    left_out: Mapping[str, str]
    """Files of the project that are secrets, each with the reason."""
    local_packages: tuple[str, ...]
    """Python packages that were not installed from an index, so that their versions cannot be installed from one."""
    local_checkpoints: tuple[str, ...]
    """Folders of checkpoints that a container loses."""
    local_sinks: tuple[str, ...]
    """Sinks, dead letters and archived files whose data a container loses, by kind and path."""


def build_package(spec: Path, loaded: LoadedSpec, include: Sequence[str] = ()) -> PipelinePackage:
    """Return the package of a spec that was loaded without its variables.

    Raises MillstreamError for a secret that is written in the spec and for a file that cannot be packaged, NotReady
    for a jar or a Python package that is missing here.
    """
    document = loaded.places.document
    scalars = {place: scalar.value for place, scalar in document.scalars.items()} if document else {}
    if document is not None:
        _refuse_secrets(document, scalars)
    project = collect_files(spec.absolute(), scalars, include)
    if spec.name in project.left_out:
        raise MillstreamError(
            f"{spec.name} is or contains {project.left_out[spec.name]}, and would be copied into the package",
            "replace the secret with a variable without a default value: ${NAME}",
        )
    # `main.py run` finds a spec of this name by itself.
    packaged = DEFAULT_SPEC if document is not None and spec.suffix != ".py" else spec.name
    project.files[packaged] = project.files.pop(spec.name)
    references = _list_variables(scalars)
    name = _find_name(loaded, spec.absolute().parent)
    code = {path: text for path, text in project.files.items() if path.endswith(".py")}
    arguments = [] if packaged == DEFAULT_SPEC else ["-f", packaged]
    lock = lock_packages(
        _find_extras(document.data if document else None), code, _read_requirements(spec.parent)
    )
    s3_jars = ensure_s3_jars() if _uses_s3(loaded, scalars) else []
    jars = [*jar_cache.ensure_jars("spark"), *s3_jars]
    contents = {
        **{f"project/{path}": text for path, text in project.files.items()},
        **{f"lib/millstream/{path}": text for path, text in list_own_files()},
        **{f"jars/{path.name}": path.read_bytes() for path in jars},
        "requirements.lock": lock.format().encode(),
        "main.py": (manifests.TEMPLATES / "main.py").read_bytes(),
        "Dockerfile": manifests.write_dockerfile(arguments).encode(),
        "kubernetes.yml": manifests.write_manifests(name, references, arguments).encode(),
    }
    for file in _OWN:
        if (own := read_own_file(spec.absolute().parent / file, scalars)) is not None:
            contents[file] = own
    contents["package.json"] = _describe(name, packaged, references, contents)
    return PipelinePackage(
        name,
        contents,
        references,
        project.left_out,
        tuple(sorted(lock.local)),
        find_local_checkpoints(loaded, spec.absolute().parent),
        find_local_sinks(loaded, spec.absolute().parent),
    )


def list_own_files() -> Iterator[tuple[str, bytes]]:
    """Yield the files of the installed Millstream that a run may need."""
    folder = Path(millstream.__file__).parent
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_file() and not set(name.parts[:-1]) & set(_NOT_RUN):
            yield name.as_posix(), path.read_bytes()


def _refuse_secrets(document: YamlDocument, scalars: Mapping[Place, str]) -> None:
    """Raise MillstreamError for the first secret that is written in the spec, also as the default of a variable."""
    for place, text in scalars.items():
        if is_sql(place) or not place:
            continue
        is_default = any(
            reference.default and SECRET_NAME.search(reference.name) for reference in list_references(text)
        )
        if not is_default and find_written_secret(str(place[-1]), text) is None:
            continue
        span = document.values.get(place)
        where = f"{span.file}:{span.line}" if span else document.file
        raise MillstreamError(
            f"{where}: '{place[-1]}' contains a secret, which would be copied into the package",
            "replace the secret with a variable without a default value: ${NAME}",
        )


def _list_variables(scalars: Mapping[Place, str]) -> tuple[Reference, ...]:
    """Return the variables of a spec by name. One is optional if it has a default wherever it occurs."""
    references: dict[tuple[str, bool], Reference] = {}
    for place, text in scalars.items():
        for reference in () if is_sql(place) else list_references(text):
            key = (reference.name, reference.is_file)
            if key not in references or reference.default is None:
                references[key] = reference
    return tuple(references[key] for key in sorted(references))


def _read_requirements(folder: Path) -> str:
    file = folder / "requirements.txt"
    try:
        return file.read_text(encoding="utf-8-sig") if file.is_file() else ""
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{file} is not UTF-8 text (byte {error.start})", "save it as UTF-8") from error
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror}", "make it readable") from error


def _uses_s3(loaded: LoadedSpec, scalars: Mapping[Place, str]) -> bool:
    """Return whether the spec needs the jars of S3, as far as it can be known while its variables are open."""
    if loaded.pipeline is not None and buckets.uses_s3(loaded.pipeline):
        return True
    return any(
        S3_SCHEME in text or (place and str(place[-1]).startswith(S3_SETTINGS))
        for place, text in scalars.items()
    )


def _find_name(loaded: LoadedSpec, folder: Path) -> str:
    if loaded.pipeline is not None:
        return loaded.pipeline.name
    data = loaded.places.document.data if loaded.places.document else None
    name = data.get("name") if isinstance(data, dict) else None
    return name if isinstance(name, str) and re.fullmatch(r"[\w-]+", name) else folder.name


def _find_extras(data: object) -> set[str]:
    """Return the extras that have the name of a kind that the spec uses."""
    return {extra for extra in list_extras() if extra in set(_list_keys(data))}


def _list_keys(data: object) -> Iterator[str]:
    if isinstance(data, dict):
        for key, value in data.items():
            yield str(key)
            yield from _list_keys(value)
    elif isinstance(data, list):
        for value in data:
            yield from _list_keys(value)


def _describe(name: str, spec: str, references: Sequence[Reference], contents: Mapping[str, bytes]) -> bytes:
    """Return what is in the package, for programs."""
    description = {
        "name": name,
        "spec": f"project/{spec}",
        "millstream": millstream.__version__,
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "variables": [
            {"name": reference.name, "required": reference.default is None}
            for reference in references
            if not reference.is_file
        ],
        "secret_files": [reference.name for reference in references if reference.is_file],
        "sha256": {path: hashlib.sha256(contents[path]).hexdigest() for path in sorted(contents)},
    }
    return (json.dumps(description, indent=1) + "\n").encode()
