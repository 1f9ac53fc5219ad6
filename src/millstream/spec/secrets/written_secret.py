"""Recognise a secret that is written in a setting, by the name of the setting and the form of its text."""

from __future__ import annotations

import re

from millstream.spec.secrets.redaction import SECRET_NAME

NOT_SECRET_NAME = re.compile(
    r"(?:provider|class|file|path|location|enabled|type|endpoint|ur[li]|lifetime|expiry|interval|length)s?\Z",
    re.IGNORECASE,
)
"""The names of settings that say where or how to find a secret, and contain none."""
# A password may contain characters that an address must not; a port is not a password.
_IN_ADDRESS = re.compile(r"://[^/?#@:\s]*:(?!\d+/)(?P<secret>.+)@")
_PARAMETER = re.compile(
    r"[?&;][\w.-]*(?:password|passwd|secret|token|signature|sig|api_?key)=(?P<secret>[^&;\s]+)", re.IGNORECASE
)
# A random-looking part of a web address: the token of a webhook.
_RANDOM_PART = re.compile(
    r"https?://\S*?/(?P<secret>(?=[^/\s]*\d)(?=[^/\s]*[A-Za-z])[A-Za-z0-9_-]{20,})(?=/|\?|\Z)"
)


def find_written_secret(key: str, text: str, *, is_secret: bool = False) -> tuple[str, int, int] | None:
    """Return the kind of secret and its character range in the text, or None if there is none or it is a variable.

    `key` is the name of the setting. `is_secret` says that the setting is one for secrets, whatever its name.
    """
    has_secret_name = SECRET_NAME.search(key) and not NOT_SECRET_NAME.search(key)
    if text.strip() and has_secret_name and "${" not in text:
        return (
            "token" if "token" in key.lower() else "secret" if "key" in key.lower() else "password",
            0,
            len(text),
        )
    if not is_secret and "://" not in text:
        return None
    for secret_kind, pattern in (
        ("password", _IN_ADDRESS),
        ("password", _PARAMETER),
        ("token", _RANDOM_PART),
    ):
        match = pattern.search(text)
        if match and "${" not in match["secret"]:
            return secret_kind, *match.span("secret")
    return None
