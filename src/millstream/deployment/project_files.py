"""Choose the files of a project that a package contains: those that its spec and its code need, and no secret."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.deployment.archive import is_archive
from millstream.diagnostics.failure import InvalidInput, MillstreamError
from millstream.spark.cluster.code_archive import list_modules
from millstream.spec.secrets.interpolation import list_references

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

# `path` is where a source or a sink has its data, which is not part of a pipeline.
_DATA_KEYS = ("path", "archive_to", "checkpoint", "checkpoints")
# Files of views and Avro schemas. Another absolute path, such as a certificate's, may be one of each machine.
_CODE_KEYS = ("file", "schema")
# No file has a longer name, and looking for one may raise an error.
_LONGEST = 255
_PRIVATE_KEY = re.compile(rb"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----")
# Keys in binary form, files of variables, and what tools store as credentials.
_SECRET_FILE = re.compile(
    r"\.env(?:\..*)?|.*\.(?:env|key|p12|pfx|jks|keystore|keytab|kdbx)|id_(?:rsa|dsa|ecdsa|ed25519)"
    r"|\.pgpass|\.netrc|credentials(?:\.json)?",
    re.IGNORECASE,
)


@dataclass
class PackagedFiles:
    """The files of a project by their path in its folder, and why others are left out."""

    files: dict[str, bytes] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)


def collect_files(
    spec: Path, scalars: Mapping[tuple[str | int, ...], str], include: Sequence[str] = ()
) -> PackagedFiles:
    """Read the files of the project of a spec: the spec, views, modules, files that it names, and those of `include`.

    `scalars` has each text of the spec by its path there. `include` has patterns in the folder, such as `data/*.csv`.
    Raises InvalidInput for a pattern that matches nothing, and MillstreamError for a file outside of the folder, one
    that cannot be read, and a secret that a pattern matches. Former archives are left out.
    """
    folder = spec.parent
    collected = PackagedFiles()
    secrets = _find_secret_files(folder, scalars)
    needed = [spec, *sorted((folder / "views").glob("*.sql")), *sorted(list_modules(folder))]
    for path in (*needed, *_list_named_files(folder, scalars)):
        name = _name_inside(folder, path)
        reason = _find_secret_reason(path, secrets)
        if reason:
            collected.left_out[name] = reason
        else:
            collected.files[name] = _read(path)
    for pattern in include:
        for path in _match(folder, pattern):
            name = _name_inside(folder, path)
            reason = _find_secret_reason(path, secrets)
            if reason:
                raise MillstreamError(
                    f"--include {pattern} matches {name}, which is {reason}",
                    "leave it out, and pass it to the run as a variable or as a mounted file",
                )
            collected.files[name] = _read(path)
    return collected


def read_own_file(path: Path, scalars: Mapping[tuple[str | int, ...], str]) -> bytes | None:
    """Return a file next to the spec, which replaces a generated one. None if there is none.

    Raises MillstreamError if it is a secret, or a link that leads outside of the folder or nowhere.
    """
    if path.is_symlink():
        _name_inside(path.parent, path)
        reason = _find_secret_reason(path, _find_secret_files(path.parent, scalars))
        if reason:
            raise MillstreamError(
                f"{path} is a link to {path.readlink()}, which is {reason}", "replace the link with a file"
            )
    return _read(path) if path.is_file() else None


def _find_secret_files(folder: Path, scalars: Mapping[tuple[str | int, ...], str]) -> set[Path]:
    """Return the files of `${file:PATH}`."""
    references = (reference for text in scalars.values() for reference in list_references(text))
    return {(folder / reference.name).resolve() for reference in references if reference.is_file}


def _list_named_files(folder: Path, scalars: Mapping[tuple[str | int, ...], str]) -> Iterator[Path]:
    """Yield the existing files that values of the spec name: schemas, certificates, SQL."""
    for place, text in sorted(scalars.items(), key=lambda item: str(item[0])):
        is_name = 0 < len(text) <= _LONGEST and "\n" not in text and "\0" not in text and "$" not in text
        if not is_name or text.startswith("~") or (place and place[-1] in _DATA_KEYS):
            continue
        if not (folder / text).is_file():
            continue
        if not text.startswith("/"):
            yield folder / text
        elif place and place[-1] in _CODE_KEYS:
            raise MillstreamError(
                f"{text} is an absolute path, and a package has only files of the project's folder {folder}",
                "move the file into the folder, and name it relative to the folder",
            )


def _match(folder: Path, pattern: str) -> list[Path]:
    parts = Path(pattern).parts
    if not parts or pattern.startswith(("/", "~")) or ".." in parts:
        raise InvalidInput(
            f"--include {pattern!r} does not name files inside of {folder}",
            "write a pattern relative to this folder, such as data/*.csv",
        )
    try:
        paths = sorted(folder.glob(pattern))
    except ValueError as error:
        raise InvalidInput(f"--include {pattern!r} is not a pattern: {error}", "write data/*.csv") from error
    matches = [
        path
        for path in paths
        if path.is_file() and ".millstream" not in path.relative_to(folder).parts and not is_archive(path)
    ]
    if not matches:
        raise InvalidInput(f"--include {pattern} matches no file in {folder}", "correct the pattern")
    return matches


def _name_inside(folder: Path, path: Path) -> str:
    """Return the path of a file in its project. Raises MillstreamError if it is, or leads, outside or nowhere."""
    if path.is_symlink() and not path.exists():
        raise MillstreamError(
            f"{path} is a link to {path.readlink()}, which does not exist", "correct the link, or remove it"
        )
    try:
        path.resolve().relative_to(folder.resolve())
        return str(Path(*_normalise(path.relative_to(folder).parts)))
    except ValueError:
        raise MillstreamError(
            f"{path} is outside of the project's folder {folder}, and a package has only files from there",
            "move it into the folder, and name it there",
        ) from None


def _normalise(parts: Sequence[str]) -> list[str]:
    names: list[str] = []
    for part in parts:
        if part == "..":
            names.pop()
        else:
            names.append(part)
    return names


def _find_secret_reason(path: Path, secrets: set[Path]) -> str:
    """Return what makes a file a secret, or an empty text."""
    if path.resolve() in secrets:
        return "a secret that the spec reads with ${file:…}"
    if any(_SECRET_FILE.fullmatch(file.name) for file in (path, path.resolve())):
        return "a file of secrets by its name"
    return "a private key" if _PRIVATE_KEY.search(_read(path)) and path.suffix != ".py" else ""


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise MillstreamError(
            f"{path} cannot be read: {error.strerror}", "make it readable, or remove it"
        ) from error
