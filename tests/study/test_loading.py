"""A wrong study is refused before any image is made, with the line and the fix."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tropescope.errors import StudyError
from tropescope.study import load_study, load_study_text

GOOD = """\
study: Hats
seed: 7
models:
  drawn: {adapter: folder, path: pictures}
concepts:
  kestran: Kestran person
prompts:
  templates:
    - a photo of a {concept}
images_per_prompt: 4
attributes:
  hat:
    present: a photo of a person wearing a hat
    absent: a photo of a person wearing no hat
references:
  - {concept: kestran, attribute: hat, value: .3, source: world file, kind: census}
judge: {kind: labels}
"""


def refusal(text: str) -> str:
    with pytest.raises(StudyError) as caught:
        load_study_text(text, name="s.yaml")
    return str(caught.value)


def changed(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new)


def test_a_good_study_loads() -> None:
    study = load_study_text(GOOD)
    assert study.concepts["kestran"].phrase == "Kestran person"
    assert study.reference("kestran", "hat").value == 0.3  # type: ignore[union-attr]
    assert study.prompts.settled_estimand == "fixed"
    assert study.zeta == 0.10


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("seed: 7", "sede: 7", "line 2: sede: unknown key 'sede', did you mean 'seed'?"),
        ("seed: 7", "seed: seven", "line 2: seed: "),
        ("seed: 7", "seed: -1", "line 2: seed: "),
        ("seed: 7\n", "", "'seed' is missing"),
        ("  drawn:", "  true:", "line 4: the key `true` is not a word to YAML"),
        ("  drawn:", "  2:", "line 4: the key `2` is not a word"),
        ("adapter: folder", "adapter: foldr", "did you mean 'folder'?"),
        ("adapter: folder, path", "adapter: folder, pth", "line 4: models › drawn › pth: unknown"),
        ("{concept}", "person", "line 9: prompts › templates › 0: "),
        ("{concept}", "{concept} {x}", "braces other than"),
        ("value: .3", "value: 1.3", "line 16: references › 0 › value: "),
        ("value: .3", "value: .3, low: .4, high: .5", "lies outside 0.4–0.5"),
        ("value: .3", "value: .3, low: .2", "give both 'low' and 'high'"),
        ("kind: census", "kind: guess", "line 16: references › 0 › kind: "),
        ("attribute: hat", "attribute: hut", "line 16: unknown attribute 'hut', did you mean 'hat'?"),
        ("{concept: kestran,", "{concept: kestrn,", "unknown concept 'kestrn', did you mean 'kestran'?"),
        ("wearing no hat", "wearing a hat", "are the same text"),
        ("  kestran: Kestran person", "  kestran: Kestran person\n  k2: kestran  person", "same phrase"),
        ("  kestran: Kestran person", "  kestran: A\n  kestran: B", "line 7: 'kestran' stands twice"),
        ("images_per_prompt: 4", "images_per_prompt: 0", "line 10: images_per_prompt"),
        ("judge: {kind: labels}", "judge: {kind: clop}", "line 17: judge"),
        ("seed: 7", "seed: " + "9" * 5000, "line 2: '999"),
        ("seed: 7", "seed: !!int 7", "line 2: YAML tags are not allowed"),
        ("    - a photo of a {concept}", "    - a photo of a {concept}\n    - a photo  of an {concept}", "a template stands twice"),
        ("judge: {kind: labels}", "judge: {kind: labels}\nestimators: [mean, mean]", "a name stands twice"),
        ("  kestran: Kestran person", "  kestran: {phrase: Kestran person, attributes: [hat, hat]}", "an attribute stands twice"),
        ("judge: {kind: labels}", "judge: {kind: labels, sens: 1}", "unknown key 'sens'"),
        ("  templates:\n    - a photo of a {concept}", "  estimand: sample\n  templates: ['a {concept}']",
         "one template cannot stand for a sample"),
    ],
)  # fmt: skip
def test_wrong_studies_are_refused_with_line_and_fix(old: str, new: str, expected: str) -> None:
    assert expected in refusal(changed(old, new))


def test_a_missing_reference_names_the_pair_and_three_ways_out() -> None:
    text = changed(
        "references:\n  - {concept: kestran, attribute: hat, value: .3, source: world file, kind: census}\n",
        "",
    )
    message = refusal(text)
    assert "missing: kestran × hat" in message
    assert "measures: [attribute_rate]" in message
    load_study_text(text + "measures: [attribute_rate]\n")


@pytest.mark.parametrize("word", ["no", "No", "on", "off", "yes", "YES"])
def test_yaml_truth_traps_are_refused_by_name(word: str) -> None:
    message = refusal(changed("kestran: Kestran person", f"kestran: {word}"))
    assert "line 6" in message
    assert f"`{word}`" in message
    quoted = load_study_text(changed("kestran: Kestran person", f'kestran: "{word}"'))
    assert quoted.concepts["kestran"].phrase == word


@pytest.mark.parametrize("value", ["1:30", "010", "0x1F", "1_000", "2020-01-01", "0o7"])
def test_yaml_1_1_number_traps_stay_words(value: str) -> None:
    study = load_study_text(changed("study: Hats", f"study: {value}"))
    assert study.study == value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "must be a block"),
        ("- a\n- b", "must be a block"),
        ("a: [1, 2", "not readable as YAML"),
        ("a: &x 1\nb: *x", "anchors and aliases"),
        ("a: !!python/object/apply:os.system [true]", "tag"),
        ("study: !!binary aGk=", "tag"),
        ("a: " + "[" * 5000, "s.yaml"),
        ("\t a: 1", "not readable as YAML"),
    ],
)
def test_hostile_yaml_is_refused(text: str, expected: str) -> None:
    assert expected in refusal(text)


def test_all_problems_are_reported_at_once() -> None:
    message = refusal(changed("seed: 7", "sede: 7").replace("value: .3", "value: 3"))
    assert "sede" in message
    assert "value" in message


def test_files(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="no study file"):
        load_study(tmp_path / "none.yaml")
    path = tmp_path / "latin.yaml"
    path.write_bytes("study: Zürich\n".encode("latin-1"))
    with pytest.raises(StudyError, match="not UTF-8"):
        load_study(path)
    path.write_bytes(b"#" * 5_000_000)
    with pytest.raises(StudyError, match="larger than"):
        load_study(path)


@given(st.text(max_size=300))
def test_any_text_is_loaded_or_refused(text: str) -> None:
    try:
        load_study_text(text)
    except StudyError as error:
        assert str(error)


@given(
    st.text(
        st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=80
    ).filter(lambda s: s.strip())
)
def test_any_phrase_survives_the_way_through_yaml(phrase: str) -> None:
    escaped = phrase.replace("\\", "\\\\").replace('"', '\\"')
    escaped = "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in escaped)
    study = load_study_text(changed("kestran: Kestran person", f'kestran: "{escaped}"'))
    assert study.concepts["kestran"].phrase == phrase


def test_the_same_weights_may_appear_twice() -> None:
    text = textwrap.dedent("""\
      weak: {adapter: diffusers, id: some/model, guidance: 1}
      strong: {adapter: diffusers, id: some/model, guidance: 2.5, call: {eta: 0.5}}
    """)
    twice = changed("  drawn: {adapter: folder, path: pictures}\n", textwrap.indent(text, "  "))
    assert "images of 'weak' come without labels" in refusal(twice)
    study = load_study_text(twice.replace("{kind: labels}", "{kind: clip, id: some/judge}"))
    assert list(study.models) == ["weak", "strong"]
    message = refusal(
        changed("{adapter: folder, path: pictures}",
                "{adapter: diffusers, id: x/y, call: {num_inference_steps: 3}}")
    )  # fmt: skip
    assert "it comes from steps" in message
