"""What a server's answer to an image request means. Pure: bytes in, meaning out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tropescope.errors import ModelError

#: Statuses after which the same request may succeed.
PASSING = frozenset({408, 409, 425, 429})

# Codes are written by the server's authors and can be trusted to mean refusal …
_REFUSAL_CODE = re.compile(
    r"content_?policy|content_?filter|content_?moderation|moderation_blocked|moderation_failed|"
    r"safety|responsible_?ai|policy_?violation|nsfw|sensitive|(prompt|content|request)_?blocked|"
    r"prohibited_?content",
    re.IGNORECASE,
)
# … texts are weaker evidence, and used only where the code says nothing.
_REFUSAL_TEXT = re.compile(
    r"safety (system|filter|checker)|content[ _-](management )?policy|content filter|nsfw|"
    r"moderation system",
    re.IGNORECASE,
)
#: Statuses by which servers refuse a prompt.
_REFUSING = frozenset({400, 403, 406, 422, 451})
_EMPTY_CODES = frozenset({"", "none", "400", "bad_request", "invalid_request_error"})
_OUT_OF_MONEY = frozenset(
    {
        "insufficient_quota",
        "billing_hard_limit_reached",
        "billing_not_active",
        "account_deactivated",
    }
)
_REASON_FIELDS = ("refusal", "refusal_reason", "block_reason", "blocked_reason", "reason")


@dataclass(frozen=True, slots=True)
class Picture:
    """An image as base64 text or as a link to fetch."""

    base64: str = ""
    url: str = ""
    revised_prompt: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    reason: str
    revised_prompt: str = ""


@dataclass(frozen=True, slots=True)
class TryAgain:
    reason: str


@dataclass(frozen=True, slots=True)
class GiveUp:
    """This request cannot succeed as it is, another might."""

    reason: str


@dataclass(frozen=True, slots=True)
class UnknownResponseFormat:
    """The server does not know `response_format`: ask again without it."""


Meaning = Picture | Refused | TryAgain | GiveUp | UnknownResponseFormat


def read_answer(
    status: int,
    body: bytes,
    *,
    model: str,
    key_variable: str | None,
    clean: Callable[[str], str],
) -> Meaning:
    """The meaning of an answer. Raises `ModelError` where no request can succeed.

    `clean` makes a server's text fit to be shown: without the key, short, on one line.
    """
    answer = _json_object(body)
    error = _error_of(answer)
    said = clean(error.message or _beginning(body))
    shown = f"HTTP {status}" + (f": {said}" if said else "")
    if 300 <= status < 400:
        raise ModelError(
            f"the server redirects image requests elsewhere ({shown})",
            fix="write the final address as `base_url`",
        )
    if status in _REFUSING and error.is_refusal(trust_text=status != 403):
        return Refused(said or error.code)
    if status == 402 or {error.code, error.kind} & _OUT_OF_MONEY:
        raise ModelError(
            f"the provider stopped the account ({shown})",
            fix="check billing and limits with the provider, then run the same command again",
        )
    if status in (401, 403):
        raise ModelError(
            f"the server did not accept the API key ({shown})", fix=_key_fix(key_variable)
        )
    if status in (404, 405):
        raise ModelError(
            f"the server has no model {model!r} for images, or base_url is wrong ({shown})",
            fix="check `id` and `base_url` of this model in the study",
        )
    if status in PASSING or status >= 500:
        return TryAgain(shown)
    if status >= 300:
        if "response_format" in (error.parameter, *re.findall(r"response_format", error.message)):
            return UnknownResponseFormat()
        return GiveUp(shown)
    if answer is None:
        return TryAgain(f"the answer is not JSON: {said!r}" if said else "the answer is empty")
    return _read_success(answer, error, clean)


def _read_success(
    answer: Mapping[str, Any], error: _ServerError, clean: Callable[[str], str]
) -> Meaning:
    data = answer.get("data")
    first = data[0] if isinstance(data, list) and data and isinstance(data[0], dict) else {}
    revised = _as_text(first.get("revised_prompt"))
    if image := _as_text(first.get("b64_json")):
        return Picture(base64=image, revised_prompt=revised)
    if url := _as_text(first.get("url")):
        return Picture(url=url, revised_prompt=revised)
    for part in (first, answer):
        for field in _REASON_FIELDS:
            if reason := _as_text(part.get(field)):
                return Refused(clean(reason), revised)
        finish = _as_text(part.get("finish_reason"))
        if _REFUSAL_CODE.search(finish):
            return Refused(clean(finish), revised)
    if error.is_refusal(trust_text=True):
        return Refused(clean(error.message or error.code), revised)
    why = clean(error.message)
    return TryAgain("the answer holds no image" + (f": {why}" if why else ""))


@dataclass(frozen=True, slots=True)
class _ServerError:
    message: str = ""
    code: str = ""
    kind: str = ""
    parameter: str = ""

    def is_refusal(self, *, trust_text: bool) -> bool:
        if _REFUSAL_CODE.search(self.code) or _REFUSAL_CODE.search(self.kind):
            return True
        silent = self.code.lower() in _EMPTY_CODES and not self.parameter
        return trust_text and silent and bool(_REFUSAL_TEXT.search(self.message))


def _error_of(answer: Mapping[str, Any] | None) -> _ServerError:
    """The error object in its common shapes: OpenAI, Azure (inner error), FastAPI (`detail`)."""
    if answer is None:
        return _ServerError()
    error = answer.get("error") or answer.get("detail") or answer.get("message")
    if isinstance(error, list):
        return _ServerError(message=json.dumps(error)[:5000])
    if not isinstance(error, dict):
        return _ServerError(message=_as_text(error), code=_as_text(answer.get("code")))
    inner = error.get("inner_error") or error.get("innererror")
    inner_code = _as_text(inner.get("code")) if isinstance(inner, dict) else ""
    return _ServerError(
        message=_as_text(error.get("message")),
        code=inner_code or _as_text(error.get("code")),
        kind=_as_text(error.get("type")),
        parameter=_as_text(error.get("param")),
    )


def _as_text(value: object) -> str:
    """A string or number as text; anything else, which servers send at times, as nothing."""
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def _json_object(body: bytes) -> dict[str, Any] | None:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return answer if isinstance(answer, dict) else None


def _beginning(body: bytes) -> str:
    return body[:5000].decode("utf-8", "replace")


def _key_fix(variable: str | None) -> str:
    if variable is None:
        return "this server wants a key: name its environment variable as `api_key_env`"
    return f"check the key in the environment variable {variable}, and what it may be used for"
