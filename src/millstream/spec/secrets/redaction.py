"""Redact secrets in texts: known values of this process, and anything that looks like a password."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

HIDDEN = "***"
# A shorter text occurs in many words; redacting it would only mangle messages.
SHORTEST = 4
# A line of a multi-line secret, such as a key, is redacted by itself if it is at least this long.
_LINE = 8

# Words of everyday messages. Redacting such a password would reveal which word it is.
_EVERYDAY = frozenset(
    {
        "admin",
        "delta",
        "false",
        "files",
        "kafka",
        "localhost",
        "login",
        "millstream",
        "none",
        "null",
        "password",
    }
    | {"postgres", "postgresql", "secret", "spark", "token", "true", "user", "username"}
)

# `encryption.keySizeBits` and `account.keyprovider` are no keys; `sasl` is no shared access signature (SAS).
SECRET_NAME = re.compile(
    r"passw|passphrase|pwd|secret|token|credential|jaas|webhook|(?:api|access|private)[._-]?key"
    r"|(?:account|encryption)[._-]?key(?![a-z])|(?<![a-z])sas(?![a-z])",
    re.IGNORECASE,
)
"""The names of settings and variables whose values are secrets. Java understands the pattern too."""

_WORDS = r"(?:password|passwd|passphrase|secret|token|jaas\.config|(?:account|encryption)[._-]?key)"
# A port is not a password: `http://host:80/…@…`. Nor is a variable of a spec.
_NO_PASSWORD = r"(?!\d{1,5}(?:[/?#\s,;)]|$))(?!\$\{[^{}]*\}@)"  # noqa: S105 - a pattern
# user:password@ up to the last @ before the host. A password with / ? or # ends at the last @ of its word.
_IN_ADDRESS = re.compile(rf"(?<=://)([^/?#\"'\s:@]*):{_NO_PASSWORD}(?:[^/?#\"'\n]*|[^\"'\s]*)@(?=[^\s\"']|$)")
# password=… as a parameter, quoted or not; "password": "…" in JSON.
_PARAMETER = re.compile(
    rf"({_WORDS}\s*=\s*)(?!\$\{{)(\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|[^&;\s\"]+)", re.IGNORECASE
)
_FIELD = re.compile(rf"(\"[\w.]*{_WORDS}[\w.]*\"\s*:\s*\")(?:\\.|[^\"\\])*(?=\")", re.IGNORECASE)


class Redactor:
    """The values that must be redacted, and the public words that are shown even if they are such a value."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: set[str] = set()
        self._public: set[str] = set(_EVERYDAY)
        self._pattern: re.Pattern[str] | None = None

    def protect(self, *values: str) -> None:
        """Redact these values, in every encoding, until this process ends."""
        secrets = {secret.strip() for value in values for secret in (value, *_lines(value))}
        secrets = {secret for secret in secrets if len(secret) >= SHORTEST and secret != HIDDEN}
        with self._lock:
            if not secrets <= self._values:
                self._values |= secrets
                self._pattern = self._compile_pattern()

    def publish(self, *words: str) -> None:
        """Never redact these words, because messages need them as names."""
        with self._lock:
            if not self._public.issuperset(words):
                self._public.update(words)
                self._pattern = self._compile_pattern()

    def clear(self) -> None:
        """Remove all values and names."""
        with self._lock:
            self._values.clear()
            self._public = set(_EVERYDAY)
            self._pattern = None

    def hide(self, text: str) -> str:
        """Return the text with the values redacted."""
        pattern = self._pattern
        return text if pattern is None or len(text) < SHORTEST else pattern.sub(HIDDEN, text)

    def hash_values(self, text: str, salt: str) -> str:
        """Return the text with each value replaced by its hash, so that texts with different values differ."""
        pattern = self._pattern
        if pattern is None or len(text) < SHORTEST:
            return text
        return pattern.sub(lambda match: hash_secret(match[0], salt), text)

    def _compile_pattern(self) -> re.Pattern[str] | None:
        # Longest first, because one value may be a part of another.
        values = sorted(self._values - self._public, key=len, reverse=True)
        if not values:
            return None
        return re.compile("|".join(pattern for value in values for pattern in _patterns(value)))


REDACTOR = Redactor()
"""The redactor of this process; a `Secret` registers itself with it."""


def hash_secret(value: str, salt: str) -> str:
    """Return `***` and a hash that is too short to guess the value from: one of 65,536 values has the same."""
    return HIDDEN + hashlib.sha256(f"{salt}/{value}".encode()).hexdigest()[:4]


def redact_values(text: str) -> str:
    """Redact known secrets and the passwords of URLs; for texts that quote the user's SQL."""
    return _IN_ADDRESS.sub(rf"\1:{HIDDEN}@", REDACTOR.hide(text))


def redact(text: str) -> str:
    """Redact known secrets, passwords of URLs, and values of parameters such as `password=`."""
    redacted = _PARAMETER.sub(rf"\1{HIDDEN}", redact_values(text))
    return _FIELD.sub(rf"\1{HIDDEN}", redacted)


def redact_deep(value: Any) -> Any:
    """Redact every text inside lists and mappings; tuples become lists."""
    match value:
        case str():
            return redact(value)
        case Mapping():
            return {key: redact_deep(item) for key, item in value.items()}
        case list() | tuple():
            return [redact_deep(item) for item in value]
    return value


def _lines(value: str) -> Iterable[str]:
    return (line for line in value.splitlines() if len(line.strip()) >= _LINE)


def _patterns(value: str) -> Iterable[str]:
    """Yield patterns of all encodings of a value."""
    yield "".join(_letter_pattern(letter) for letter in value)
    # Base64, as in the header of HTTP basic authentication.
    yield re.escape(base64.b64encode(value.encode()).decode())


def _letter_pattern(letter: str) -> str:
    """Return a letter's pattern: plain, percent-encoded once or twice, or escaped for JSON, Python, Java or SQL."""
    if letter.isascii() and letter.isalnum():
        return letter
    patterns = []
    if letter in "\"'\\/":
        patterns.append(rf"\\*{re.escape(letter)}")
    if letter in "'\\":
        patterns.append(rf"\\*{re.escape(letter)}{{2}}")
    if letter == "\\":
        # Each level of escaping doubles it.
        patterns.append(r"\\+")
    if letter == " ":
        patterns.append(r"\+")
    # `quote` does not encode some characters that other encoders do.
    encoded = "".join(f"%{byte:02X}" for byte in letter.encode())
    assert quote(letter, safe="") in (encoded, letter)
    patterns += [f"(?i:{re.escape(encoded)})", f"(?i:{re.escape(encoded.replace('%', '%25'))})"]
    escape = json.dumps(letter)[1:-1]
    if escape.startswith("\\u") or letter in "\n\r\t":
        patterns.append(rf"\\*(?i:{re.escape(escape)})")
    return f"(?:{'|'.join([*patterns, re.escape(letter)])})"
