"""Names from metadata never lead out of their folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tropescope.errors import ModelError
from tropescope.safety.paths import safe_join


@pytest.mark.parametrize(
    "name", ["a.png", "images/a.png", "./a.png", "ü/😀.png", "שלום.png", "a..b.png", "-rf", "a b"]
)
def test_ordinary_and_strange_names_are_accepted(tmp_path, name):
    assert safe_join(tmp_path, name) == tmp_path / name


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("", "empty"),
        ("/etc/passwd", "absolute"),
        ("C:\\x.png", "absolute"),
        ("C:x.png", "absolute"),
        ("\\\\server\\share\\x.png", "absolute"),
        ("../x.png", "'..'"),
        ("a/../../x.png", "'..'"),
        ("a\\..\\..\\x.png", "'..'"),
        ("a\0.png", "NUL"),
        ("x" * 256, "255"),
        ("x/" * 600 + "x", "1024"),
        ("\ud800.png", "surrogate"),
    ],
)
def test_dangerous_names_are_refused_and_the_row_is_named(tmp_path, name, says):
    with pytest.raises(ModelError) as caught:
        safe_join(tmp_path, name, where="metadata.csv, row 7")
    assert caught.value.message.startswith("metadata.csv, row 7: ")
    assert says in caught.value.message
    assert "\0" not in caught.value.message
    assert caught.value.fix


def test_links_may_stay_inside_but_not_leave(tmp_path):
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (outside / "x.png").touch()
    (root / "real.png").touch()
    (root / "inside.png").symlink_to("real.png")
    (root / "file.png").symlink_to(outside / "x.png")
    (root / "folder").symlink_to(outside)
    (root / "loop").symlink_to("loop")
    assert safe_join(root, "inside.png").exists()
    for name in ("file.png", "folder/x.png", "folder/new.png"):
        with pytest.raises(ModelError, match="symbolic link"):
            safe_join(root, name)
    with pytest.raises(ModelError, match="refused"):
        safe_join(root, "loop/x.png")


def test_a_root_that_is_itself_a_link_is_fine(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert safe_join(tmp_path / "link", "a.png") == tmp_path / "link" / "a.png"


def test_a_sibling_with_the_same_beginning_is_outside(tmp_path):
    (tmp_path / "root").mkdir()
    (tmp_path / "root2").mkdir()
    (tmp_path / "root" / "out").symlink_to(tmp_path / "root2")
    with pytest.raises(ModelError):
        safe_join(tmp_path / "root", "out/x.png")


@given(st.text(st.sampled_from("./\\ab:\0~é"), max_size=12) | st.text(max_size=12))
def test_whatever_is_accepted_lies_inside(name):
    root = Path("/nonexistent/root")
    try:
        path = safe_join(root, name)
    except ModelError:
        return
    assert path.resolve().is_relative_to(root)
