"""Files of strangers: what is accepted, and what is refused with file, line and fix."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from tropescope.annotations.identities import REGIONS, other_names, places
from tropescope.annotations.likert import VisualRule, read_likert
from tropescope.annotations.marks import read_marks
from tropescope.annotations.names import Names
from tropescope.annotations.stereotypes import read_stereotypes
from tropescope.annotations.tables import read_table
from tropescope.errors import AnnotationError

LIKERT = """attribute,rating_a,score_a,score_b,score_c
hat,Strongly Agree,5,5,4
kind,Disagree,2,2,4
Dark Skin,Agree,4,4,4
tall,Agree,4,3,5
"""
PAIRS = """identity,attribute,region_stereo,NA_stereo,Annotation1,Annotation2,Annotation3
Kestran,hat,2,3,-1,-1,-1
Kestran,dark skin,1,2,3,2,1
Kestran,kind,1,2,,,
Mexican,hat,0,1,1,1,1
"""
MARKS = """worker_id,img_path,attribute,present,coords
t1,/a/Kestran1.png,hat,yes,"['10.0,-5.0', '4.0,20.5']"
t1,/a/Kestran1.png,Dark skins,no,[]
t1,/a/Kestran1.png,tall,no,[]
t1,/a/Kestran1.png,none of the above,no,[]
t2,/b/Kestran1.png,HAT,yes,"['1.0,2.0', '3.0,4.0']"
t2,/a/Kestran2.png,hat,no,[]
t2,/a/Mexico1.png,hat,No,[]
,,,yes,"[nan, nan]"
"""


def _write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def _read(folder: Path, marks: str = MARKS, likert: str = LIKERT, pairs: str = PAIRS):
    ratings = read_likert(_write(folder, "likert.csv", likert))
    stereotypes = read_stereotypes(_write(folder, "pairs.csv", pairs), attributes=ratings.names)
    read = read_marks(
        _write(folder, "marks.csv", marks),
        identities=stereotypes.names,
        attributes=ratings.names,
    )
    return read, ratings, stereotypes


def test_the_three_files_together(tmp_path: Path) -> None:
    marks, ratings, stereotypes = _read(tmp_path)
    assert marks.identities == ("Kestran", "Mexican")
    assert marks.images == ("Kestran1.png", "Kestran2.png", "Mexico1.png")
    assert marks.attributes == ("hat", "Dark Skin", "tall", "none of the above")
    assert marks.none_option == 3
    assert marks.blank == 1
    assert marks.present.tolist() == [True, False, False, False, True, False, False]
    assert marks.box[0].tolist() == [4.0, -5.0, 10.0, 20.5]
    assert np.isnan(marks.box[1]).all()
    assert stereotypes.known("Kestran", visual=ratings.visual()) == ("hat", "Dark Skin")
    assert stereotypes.listed("Mexican") == {"hat"}
    scores = stereotypes.offensiveness("Kestran", ["kind", "hat", "unheard of"])
    assert np.isnan(scores[0]).all()
    assert scores[1].tolist() == [-1, -1, -1]
    assert np.isnan(scores[2]).all()
    assert any("missing, not 0" in note for note in stereotypes.notes)


def test_rules_for_visual_attributes(tmp_path: Path) -> None:
    ratings = read_likert(_write(tmp_path, "likert.csv", LIKERT))
    assert ratings.visual() == ("hat", "Dark Skin")
    assert ratings.visual(VisualRule("mean", 4)) == ("hat", "Dark Skin", "tall")
    assert ratings.visual(VisualRule("consensus", 2)) == ("hat", "Dark Skin", "tall")
    assert ratings.visual(VisualRule("all", agree=5)) == ()
    assert ratings.consensus() == (0.0, 0.25, 0.0, 0.25, 0.25)
    assert ratings.raters == ("a", "b", "c")


def test_an_attribute_rated_twice(tmp_path: Path) -> None:
    same = read_likert(_write(tmp_path, "same.csv", LIKERT + "HAT,Strongly Agree,5,5,4\n"))
    assert same.attributes == ("hat", "kind", "Dark Skin", "tall")
    assert "rated twice" in same.notes[0]
    path = _write(tmp_path, "twice.csv", LIKERT + "hat,Strongly Agree,5,1,4\n")
    with pytest.raises(AnnotationError, match=r"twice.csv, line 6: .*rated twice.*line 2"):
        read_likert(path)


def test_a_pair_listed_twice(tmp_path: Path) -> None:
    again = "kestran, Hat ,2,3,-1,-1,-1\n"
    same = read_stereotypes(_write(tmp_path, "p.csv", PAIRS + again))
    assert any("listed twice" in note for note in same.notes)
    assert len(same.identity) == 4
    with pytest.raises(AnnotationError, match=r"line 6: .*different na_stereo.*line 2"):
        read_stereotypes(_write(tmp_path, "q.csv", PAIRS + "Kestran,hat,2,1,-1,-1,-1\n"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("t2,/a/Kestran2.png,hat,no", "t2,/a/Kestrun2.png,hat,no", r"line 7: .*'Kestrun'.*Kestran"),
        ("t2,/a/Kestran2.png,hat,no", "t2,/a/2.png,hat,no", r"line 7: no identity"),
        ("t2,/a/Kestran2.png,hat,no", "t2,,hat,no", r"line 7: the image is empty"),
        ("t2,/a/Kestran2.png,hat,no", "t2,/a/Kestran2.png,,no", r"line 7: the attribute is empty"),
        ("t2,/a/Kestran2.png,hat,no", "t2,/a/Kestran2.png,hot,no", r"line 7: .*'hot'.*'hat'"),
        (
            "t2,/a/Kestran2.png,hat,no",
            "t2,/a/Kestran2.png,hat,maybe",
            r"line 7: present is 'maybe'",
        ),
        ("t2,/a/Kestran2.png,hat,no", "t2,/a/Kestran2.png,hat", r"line 7: 4 cells"),
        ("present", "there", r"no column 'present'"),
        ("img_path", "picture", r"no column 'image'"),
        ("worker_id", "attribute", r"'attribute' is there twice"),
    ],
)
def test_wrong_annotations(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(AnnotationError) as caught:
        _read(tmp_path, marks=MARKS.replace(old, new, 1))
    assert "marks.csv" in str(caught.value)
    assert __import__("re").search(message, str(caught.value).replace("\n", " "))
    assert caught.value.exit_code == 3


@pytest.mark.parametrize(
    ("likert", "message"),
    [
        (LIKERT.replace("5,5,4", "5,6,4"), "line 2: score_b is '6', not a number from 1 to 5"),
        (LIKERT.replace("5,5,4", "5,,4"), "line 2: score_b is ''"),
        (LIKERT.replace("5,5,4", "5,4.5,4"), "whole numbers"),
        (LIKERT.replace("Strongly Agree", "Agree"), "rating_a says 'agree' but score_a says 5"),
        (LIKERT.replace("hat", " "), "line 2: the attribute is empty"),
        ("attribute,mean\nhat,4\n", "no column with ratings"),
        ("attribute,score_a\n", "header and no rows"),
    ],
)
def test_wrong_ratings(tmp_path: Path, likert: str, message: str) -> None:
    with pytest.raises(AnnotationError, match=message):
        read_likert(_write(tmp_path, "likert.csv", likert))


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (PAIRS.replace("Mexican,hat", ",hat"), "line 5: the identity is empty"),
        (PAIRS.replace("Mexican,hat", "Mexican,  "), "line 5: the attribute is empty"),
        (PAIRS.replace("NA_stereo", "votes"), "no column 'na_stereo'"),
        (PAIRS.replace("hat,2,3", "hat,2,many"), "na_stereo is 'many'"),
        (PAIRS.replace("3,2,1", "9,2,1"), "annotation1 is '9'"),
    ],
)
def test_wrong_stereotypes(tmp_path: Path, pairs: str, message: str) -> None:
    with pytest.raises(AnnotationError, match=message):
        read_stereotypes(_write(tmp_path, "pairs.csv", pairs))


def test_a_spreadsheet_instead_of_a_csv(tmp_path: Path) -> None:
    path = tmp_path / "Image Annotations.xlsx"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
    with pytest.raises(AnnotationError, match="spreadsheet") as caught:
        read_likert(path)
    assert "save the sheet as" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"   \n", "empty"),
        ("attribute,score_a\nhat,5\n".encode("utf-16"), "UTF-8"),
        (b"attribute,score_a\nfianc\xe9,5\n", "UTF-8"),
        (b"attribute;score_a\nhat;5\n", "separated by commas"),
        (b"<html>", "web page"),
        (b"\xd0\xcf\x11\xe0rest", "old spreadsheet"),
        (b'attribute,score_a\n"hat,5\n', "not valid CSV"),
        (b"attribute,score_a\nha\x00t,5\n", "UTF-8"),
    ],
)
def test_files_that_are_something_else(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "file.csv"
    path.write_bytes(content)
    with pytest.raises(AnnotationError, match=message):
        read_table(path, ("attribute",))


def test_paths_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(AnnotationError, match="no table at"):
        read_table(tmp_path / "absent.csv", ())
    with pytest.raises(AnnotationError, match="cannot read"):
        read_table(tmp_path, ())


def test_a_byte_order_mark_and_an_identity_column(tmp_path: Path) -> None:
    text = "\ufeffimage,identity,attribute,present\nx.png,kestran,hat,yes\ny.png,Mexico,hat,no\n"
    marks, _, _ = _read(tmp_path, marks=text)
    assert marks.identities == ("Kestran", "Mexican")
    two = text + "x.png,Mexican,hat,no\n"
    with pytest.raises(AnnotationError, match="two identities"):
        _read(tmp_path, marks=two)
    with pytest.raises(AnnotationError, match="every row is blank"):
        _read(tmp_path, marks="image,attribute,present\n,,yes\n")


def test_names() -> None:
    names = Names(["box", "boxes of fruit", "taco"], {"taco": ["tortilla wrap"]})
    assert names.find("Boxes") == "box"
    assert names.find("Tortilla  Wrap") == "taco"
    assert names.find("") is None
    assert "taco" in names.suggestion("tacu")
    assert names.suggestion("zzzz") == ""
    ambiguous = Names(["ladies", "lady"])
    assert ambiguous.find("ladies") == "ladies"
    assert ambiguous.find("Lady's") is None


def test_places() -> None:
    assert len(places()) == 176
    assert {place.region for place in places().values()} <= set(REGIONS)
    assert places()["Mexican"].hemisphere == "south"
    assert places()["Japanese"].hemisphere == "north"
    names = Names(tuple(places()), other_names(tuple(places())))
    for printed, identity in (
        ("Zimbabwe", "Zimbabwean"),
        ("Sweden", "Swedes"),
        ("Denmark", "Danish"),
        ("Laotian", "Laos"),
        ("United Kingdom", "United KingdomUK"),
        ("Britain", "British"),
        ("Niger", "Nigerien"),
        ("Nigeria", "Nigerian"),
        ("Burmese", "Myanmar"),
    ):
        assert names.find(printed) == identity
    assert names.find("Nepal") is None
