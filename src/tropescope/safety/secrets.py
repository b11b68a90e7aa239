"""API keys: read from the environment by name, never shown, removed from texts that quote them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import NoReturn
from urllib.parse import quote

from tropescope.errors import ModelError


class Secret:
    """A key that only `reveal` gives out. Printing, formatting or pickling it never does."""

    __slots__ = ("_value", "variable")

    def __init__(self, value: str, *, variable: str) -> None:
        self._value = value
        self.variable = variable

    def reveal(self) -> str:
        return self._value

    def redact(self, text: str) -> str:
        """`text` without the key, in whatever encoding the key is quoted."""
        forms = {self._value, quote(self._value, safe=""), json.dumps(self._value)[1:-1]}
        for form in sorted(forms, key=len, reverse=True):
            text = text.replace(form, f"[{self.variable}]")
        return text

    def __repr__(self) -> str:
        return f"Secret({self.variable})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret cannot be pickled or copied")


def read_secret(variable: str, *, environment: Mapping[str, str] | None = None) -> Secret:
    """The key in the environment variable of that name; a `ModelError` says how to set it."""
    value = (os.environ if environment is None else environment).get(variable, "").strip()
    if not value:
        raise ModelError(
            f"the environment variable {variable} is not set, so there is no API key to send",
            fix=f"export {variable}=… in the shell, or name another variable as `api_key_env`",
        )
    if not value.isascii() or not value.isprintable() or " " in value:
        raise ModelError(
            f"the environment variable {variable} does not hold an API key: it contains spaces, "
            "line breaks or characters that no key has",
            fix=f"set {variable} again; copy the key without quotes or line breaks",
        )
    return Secret(value, variable=variable)
