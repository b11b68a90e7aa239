"""The world file: what it must contain, what it refuses, and that the truth follows from it."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tropescope.errors import StudyError
from tropescope.world.definition import WORLD_FILE, load_world, validated_world
from tropescope.world.truth import Truth

_NAMES = """
Afghan Albanian Algerian American Andorran Angolan Argentine Armenian Australian Austrian
Azerbaijani Bahamian Bahraini Bangladeshi Barbadian Belarusian Belgian Belizean Beninese Bhutanese
Bolivian Bosnian Botswanan Brazilian British Bruneian Bulgarian Burkinabe Burmese Burundian
Cambodian Cameroonian Canadian Chadian Chilean Chinese Colombian Comorian Congolese Croatian Cuban
Cypriot Czech Danish Djiboutian Dominican Dutch Ecuadorian Egyptian Emirati English Eritrean
Estonian Ethiopian Fijian Filipino Finnish French Gabonese Gambian Georgian German Ghanaian Greek
Grenadian Guatemalan Guinean Guyanese Haitian Honduran Hungarian Icelandic Indian Indonesian Iranian
Iraqi Irish Israeli Italian Ivorian Jamaican Japanese Jordanian Kazakh Kenyan Korean Kosovan Kuwaiti
Kurdish Kyrgyz Laotian Latvian Lebanese Liberian Libyan Lithuanian Luxembourgish Macedonian Malagasy
Malawian Malaysian Maldivian Malian Maltese Maori Mauritanian Mauritian Mexican Micronesian Moldovan
Monegasque Mongolian Montenegrin Moroccan Mozambican Namibian Nauruan Nepali Nicaraguan Nigerian
Nigerien Norwegian Omani Pakistani Palauan Palestinian Panamanian Paraguayan Persian Peruvian Polish
Portuguese Punjabi Qatari Roma Romanian Russian Rwandan Samoan Saudi Scottish Senegalese Serbian
Sikh Singaporean Slovak Slovenian Somali Spanish Sudanese Surinamese Swazi Swedish Swiss Syrian
Taiwanese Tajik Tanzanian Thai Tibetan Togolese Tongan Tunisian Turkish Turkmen Tuvaluan Ugandan
Ukrainian Uruguayan Uyghur Uzbek Venezuelan Vietnamese Welsh Yemeni Yoruba Zambian Zimbabwean Zulu
"""
REAL_PEOPLES = _NAMES.split()


def data() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(WORLD_FILE.read_text(encoding="utf-8"))
    return loaded


def test_the_world_is_as_rich_as_promised() -> None:
    world = load_world()
    assert len(world.nations) >= 6 + 5
    assert len(world.professions) >= 8
    assert set(world.genders) == {"woman", "man", "person", "non-binary person"}
    assert len(world.attributes) >= 14
    assert len(world.hard_to_see) == 2
    assert len(world.objects) >= 10
    slots = {entry.slot for entry in world.attributes.values()}
    assert {"headwear", "facial_hair", "eyewear", "clothing", "hair", "skin"} <= slots


def test_invented_names_resemble_no_real_people() -> None:
    for nation in load_world().nations:
        for people in REAL_PEOPLES:
            likeness = difflib.SequenceMatcher(None, nation.lower(), people.lower()).ratio()
            assert likeness < 0.75, (nation, people)


def test_stereotypes_of_several_strengths_none_and_under_representation() -> None:
    training, world = Truth("training"), Truth("world")

    def excess(nation: str, attribute: str) -> float:
        return training.rate(attribute, nation=nation) - world.rate(attribute, nation=nation)

    assert excess("Kestran", "hat") == pytest.approx(0.60)
    assert 0.05 < excess("Glimmish", "hoodie") < 0.15
    assert excess("Velori", "suit") < -0.2
    for attribute in load_world().attributes:
        assert excess("Nolvar", attribute) == pytest.approx(0)
    doses = [
        excess(nation, "cap") for nation in ("Anquil", "Benquil", "Conquil", "Dunquil", "Enquil")
    ]
    assert doses == pytest.approx([0.0, 0.15, 0.30, 0.45, 0.60])


def test_changing_one_number_in_the_file_changes_the_truth(tmp_path: Path) -> None:
    text = WORLD_FILE.read_text(encoding="utf-8")
    line = "    hat:        {world: .20, training: .80}"
    assert line in text
    changed = tmp_path / "world.yaml"
    changed.write_text(text.replace(line, line.replace(".80", ".65"), 1), encoding="utf-8")
    world = load_world(changed)
    assert Truth(world=world).rate("hat", nation="Kestran") == pytest.approx(0.65)
    assert Truth().rate("hat", nation="Kestran") == pytest.approx(0.80)
    assert world.digest != load_world().digest


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.update(planets={}), "planets"),
        (lambda d: d["nations"]["Kestran"].update(hta=0.5), "did you mean 'hat'"),
        (lambda d: d["nations"]["Kestran"].update(hat=1.5), "less than or equal to 1"),
        (lambda d: d["nations"]["Kestran"].update(hat=0.9, cap=0.9), "slot 'headwear' sum to 1.80"),
        (lambda d: d["nations"]["Oberin"].update(beard=0.5), "give anybody a small rate"),
        (lambda d: d["templates"]["list"][0].update(who=5), "sum to"),
        (lambda d: d["templates"].update(strength=3), "too large"),
        (lambda d: d["professions"]["nurse"]["tools"]["things"].update(cup=0.9), "must sum to 1"),
        (lambda d: d["objects"]["ball"].update(rate=0.9), "more than 1"),
        (lambda d: d["slots"].pop("brooch"), "slots must be exactly"),
        (lambda d: d["attributes"]["hat"].update(phrase="a hat"), "wearing"),
    ],
)
def test_a_wrong_file_is_refused_with_the_reason(change: Any, words: str) -> None:
    broken = data()
    change(broken)
    with pytest.raises(StudyError, match="not valid") as refused:
        validated_world(broken, where="a copy")
    assert words in str(refused.value)


def test_rates_can_be_replaced_by_name() -> None:
    rates = {
        "nations": {"Kestran": {"hat": 0.5, "share_of_women": 0.9}},
        "genders": {"person": 0.6},
        "professions": {"nurse": {"share_of_women": 0.6}},
        "people": {"smile": {"women": 0.1, "men": 0.2}},
        "objects": {"ball": 0.2},
    }
    truth = Truth("world", rates=rates)
    assert truth.rate("hat", nation="Kestran") == pytest.approx(0.5)
    assert truth.share_of_women(nation="Kestran") == pytest.approx(0.9)
    assert truth.share_of_women() == pytest.approx(0.6)
    assert truth.share_of_women(profession="nurse") == pytest.approx(0.6)
    assert truth.rate("smile") == pytest.approx(0.6 * 0.1 + 0.4 * 0.2)
    assert truth.object_rate("ball") == pytest.approx(1 - 0.8**2)


@pytest.mark.parametrize(
    ("rates", "words"),
    [
        ({"nation": {}}, "unknown section"),
        ({"nations": {"Kestrann": {}}}, "no 'Kestrann'"),
        ({"nations": {"Kestran": 0.5}}, "must map"),
        ({"people": 0.5}, "must map"),
        ({"people": {"hat": 7}}, "not valid"),
    ],
)
def test_wrong_replacements_are_refused(rates: Any, words: str) -> None:
    with pytest.raises(StudyError, match=words):
        Truth(rates=rates)
