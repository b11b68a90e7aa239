"""A key is never shown."""

from __future__ import annotations

import copy
import pickle

import pytest

from tropescope.errors import ModelError
from tropescope.safety.secrets import Secret, read_secret

KEY = "sk-abc/def+123=="


def test_a_secret_does_not_show_itself():
    secret = Secret(KEY, variable="MY_KEY")
    assert secret.reveal() == KEY
    for text in (repr(secret), str(secret), f"{secret}", f"{secret!r:>40}"):
        assert KEY not in text
        assert "MY_KEY" in text
    for leak in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError):
            leak(secret)
    assert not hasattr(secret, "__dict__")


def test_redaction_removes_every_form():
    secret = Secret(KEY, variable="MY_KEY")
    text = f"bad key {KEY}; see https://x/?k=sk-abc%2Fdef%2B123%3D%3D"
    assert secret.redact(text) == "bad key [MY_KEY]; see https://x/?k=[MY_KEY]"


def test_the_key_comes_from_the_environment(monkeypatch):
    monkeypatch.setenv("MY_KEY", f" {KEY}\n")
    assert read_secret("MY_KEY").reveal() == KEY
    assert read_secret("OTHER", environment={"OTHER": "x"}).variable == "OTHER"


@pytest.mark.parametrize("value", [None, "", "  \n"])
def test_a_missing_key_names_the_variable(value):
    environment = {} if value is None else {"MY_KEY": value}
    with pytest.raises(ModelError, match="MY_KEY is not set") as caught:
        read_secret("MY_KEY", environment=environment)
    assert "export MY_KEY" in caught.value.fix


@pytest.mark.parametrize("value", ["sk-a\r\nX-Evil: 1", "schlüssel", "two words"])
def test_what_cannot_be_a_key_is_refused_without_showing_it(value):
    with pytest.raises(ModelError) as caught:
        read_secret("MY_KEY", environment={"MY_KEY": value})
    assert value not in str(caught.value)
