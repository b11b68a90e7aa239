"""The study's entry for an API model: what is refused before anything is sent."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pydantic import ValidationError

from tropescope.models.entry import plugin as find_plugin
from tropescope.models.openai_entry import OpenAIEntry, is_loopback, plugin

HOSTED = {"adapter": "openai", "id": "m", "base_url": "https://api.example.com/v1"}


def entry(**changes):
    return OpenAIEntry.model_validate({**HOSTED, **changes})


def test_defaults():
    made = entry()
    assert made.api_key_env == "OPENAI_API_KEY"
    assert (made.size, made.send_seed, made.concurrency) == ("1024x1024", False, 4)
    assert (made.timeout_s, made.retries, made.batch_size) == (120, 5, 16)
    assert made.price_per_image is None


def test_it_is_found_by_its_name():
    assert find_plugin("openai") is plugin
    assert plugin.entry is OpenAIEntry


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8000/v1", "http://localhost/v1", "http://[::1]:9/v1", "https://a.b/"]
)
def test_acceptable_addresses(url):
    assert entry(base_url=url).base_url == url.rstrip("/")


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://api.example.com/v1", "https"),
        ("http://192.168.1.5/v1", "https"),
        ("http://127.0.0.1.evil.com/v1", "https"),
        ("http://localhost.evil.com/v1", "https"),
        ("ftp://api.example.com", "address"),
        ("api.example.com/v1", "address"),
        ("https://exa mple.com/v1", "address"),
        ("https://", "address"),
        ("https://a:99999999/v1", "address"),
        ("https://me:pass@api.example.com/v1", "password"),
        ("https://api.example.com/v1?key=1", "?"),
    ],
)
def test_unacceptable_addresses(url, says):
    with pytest.raises(ValidationError) as caught:
        entry(base_url=url)
    assert says in str(caught.value)


@pytest.mark.parametrize("pasted", ["sk-proj-abc123", "sk_live_abc123", "abc123def456"])
def test_a_pasted_key_is_refused_and_not_repeated(pasted):
    with pytest.raises(ValidationError) as caught:
        entry(api_key_env=pasted)
    assert pasted not in str(caught.value)
    assert "NAME of an environment variable" in str(caught.value)


@pytest.mark.parametrize("name", ["model", "prompt", "n", "size", "seed", "stream"])
def test_reserved_fields_cannot_be_overridden(name):
    with pytest.raises(ValidationError, match=f"'{name}' cannot stand in `call`"):
        entry(call={name: "x"})


@pytest.mark.parametrize(
    "wrong",
    [
        {"spend_cap": 5},
        {"spend_cap": 5, "price_per_image": 0},
        {"price_per_image": -1},
        {"price_per_image": float("nan")},
        {"currency": "dollars"},
        {"size": "large"},
        {"concurrency": 0},
        {"max_image_bytes": 10**9},
        {"unknown": 1},
    ],
)
def test_wrong_settings(wrong):
    with pytest.raises(ValidationError):
        entry(**wrong)


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("localhost", True),
        ("LOCALHOST.", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("10.0.0.1", False),
        ("localhost.com", False),
        ("127.0.0.1.nip.io", False),
        ("0.0.0.0", False),
    ],
)
def test_loopback(host, local):
    assert is_loopback(host) is local


def test_the_entry_module_is_light():
    code = (
        "import sys, tropescope.models.openai_entry; "
        "print([m for m in ('httpx', 'PIL', 'torch') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
