"""A study's entry for a model behind an OpenAI-compatible images API. Light: nothing is sent."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Literal
from urllib.parse import SplitResult, urlsplit

from pydantic import ConfigDict, Field, JsonValue, field_validator, model_validator

from tropescope.models.entry import ModelEntry, ModelPlugin, OpenContext
from tropescope.models.protocol import TextToImage

_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*\Z")
_HOST = re.compile(r"[a-z0-9:]([a-z0-9._:-]*[a-z0-9:.])?\Z")
_RESERVED = {
    "model": "write it as `id`",
    "prompt": "prompts come from the study's templates",
    "n": "every request asks for one image",
    "size": "write it as `size`",
    "seed": "write `send_seed: true`",
    "stream": "answers are read whole",
    "response_format": "it is negotiated with the server",
}


class OpenAIEntry(ModelEntry):
    """One model of a hosted or local server that speaks OpenAI's `/images/generations`."""

    # A key pasted into a study by mistake must not come back in the message about it.
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    adapter: Literal["openai"]
    batch_size: Annotated[int, Field(ge=1, le=4096)] = 16
    """Requests handed over at once; `concurrency` decides how many are in flight."""
    id: Annotated[str, Field(min_length=1, max_length=300)]
    base_url: str
    """Such as https://api.openai.com/v1; plain http only for this machine."""
    api_key_env: str | None = "OPENAI_API_KEY"
    """The environment variable that holds the key; null sends none."""
    size: Annotated[str, Field(pattern=r"^(auto|[1-9]\d{1,4}x[1-9]\d{1,4})$")] = "1024x1024"
    call: dict[str, JsonValue] = {}
    """Further fields of the request, such as quality or style."""
    send_seed: bool = False
    """OpenAI refuses seeds; many local servers honour them."""
    price_per_image: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] = "USD"
    spend_cap: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    concurrency: Annotated[int, Field(ge=1, le=64)] = 4
    timeout_s: Annotated[float, Field(gt=0, le=3600)] = 120.0
    retries: Annotated[int, Field(ge=0, le=20)] = 5
    max_image_bytes: Annotated[int, Field(ge=1, le=64_000_000)] = 32_000_000

    @field_validator("base_url")
    @classmethod
    def _address_is_acceptable(cls, value: str) -> str:
        try:
            parts = urlsplit(value)
            _ = parts.port
        except ValueError:
            raise ValueError("base_url is not a web address") from None
        host = parts.hostname or ""
        if parts.scheme not in ("http", "https") or not _HOST.match(host):
            raise ValueError("base_url must be an address such as https://api.openai.com/v1")
        if parts.username or parts.password:
            raise ValueError("base_url must not contain a password; name it in `api_key_env`")
        if parts.query or parts.fragment:
            raise ValueError("base_url must not contain `?` or `#`")
        if parts.scheme == "http" and not is_loopback(host):
            raise ValueError(
                "base_url must begin with https:// unless the server runs on this machine; "
                "prompts and the key would be readable on the way"
            )
        return value.rstrip("/")

    @field_validator("api_key_env")
    @classmethod
    def _names_a_variable(cls, value: str | None) -> str | None:
        if value is not None and not _VARIABLE.match(value):
            raise ValueError(
                "api_key_env must be the NAME of an environment variable in capitals, such as "
                "OPENAI_API_KEY; if you wrote the key itself, replace it and revoke the key"
            )
        return value

    @field_validator("call")
    @classmethod
    def _leaves_reserved_fields_alone(cls, value: dict[str, JsonValue]) -> dict[str, JsonValue]:
        for name in value:
            if name in _RESERVED:
                raise ValueError(f"'{name}' cannot stand in `call`: {_RESERVED[name]}")
        return value

    @model_validator(mode="after")
    def _cap_needs_a_price(self) -> OpenAIEntry:
        if self.spend_cap is not None and not self.price_per_image:
            raise ValueError("spend_cap needs price_per_image, or nobody can count")
        return self

    @property
    def address(self) -> SplitResult:
        return urlsplit(self.base_url)


def is_loopback(host: str) -> bool:
    """Whether a host name can only mean this machine."""
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _open(entry: OpenAIEntry, context: OpenContext) -> TextToImage:
    from tropescope.models.openai_images import OpenAIImages

    return OpenAIImages(entry, offline=context.offline)


plugin = ModelPlugin(entry=OpenAIEntry, open=_open)
