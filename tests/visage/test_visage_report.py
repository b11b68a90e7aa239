"""`tropescope visage` from three files to tables and a page, on fictional and hostile data."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from tropescope.cli.visage import visage
from tropescope.errors import AnnotationError
from tropescope.visage import Settings, analyse, read_inputs
from tropescope.visage.maps import Mark, Step, step_of, world_map
from tropescope.visage.outline import HEIGHT, WIDTH, outlines, point
from tropescope.visage.writing import Written, write_visage

HOSTILE = '</style><script>window.hacked=1</script>"'
FORMULA = "=HYPERLINK(1)"
RATES = {
    "Kestran": (0.8, 0.1),
    "Mexican": (0.5, 0.1),
    "Nepali": (0.3, 0.0),
    "United KingdomUK": (0.1, 0.1),
    HOSTILE: (0.4, 0.2),
    "Loner": (0.5, 0.2),
}
OWN = ("hat", FORMULA, "scarf")
OTHER = ("boat", "net", HOSTILE)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    folder = tmp_path_factory.mktemp("visage")
    rng = np.random.default_rng(0)

    def write(name: str, header: list[str], rows: list[list[Any]]) -> Path:
        path = folder / name
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(header)
            writer.writerows(rows)
        return path

    marks = [
        ["t", f"{name}-{image}.png", name, attribute, "yes" if rng.random() < rate else "no"]
        for name, (high, low) in RATES.items()
        for image in range(8)
        for attribute, rate in [
            *((a, high) for a in (OWN if name != "Loner" else OWN[:1])),
            *((a, low) for a in OTHER),
            ("none of the above", 0.0),
        ]
        for _ in range(3)
    ]
    return (
        write(
            "marks.csv",
            ["worker_id", "image", "identity", "attribute", "present"],
            [[w, i.replace("/", ""), *rest] for w, i, *rest in marks],
        ),
        write(
            "likert.csv",
            ["attribute", "score_x", "score_y", "score_z"],
            [[a, 5, 4, 5] for a in (*OWN, *OTHER)] + [["kind", 1, 2, 2]],
        ),
        write(
            "pairs.csv",
            ["identity", "attribute", "NA_stereo", "Annotation1", "Annotation2", "Annotation3"],
            [
                [name, a, 3, score, score, -1]
                for name in RATES
                for a, score in zip(OWN if name != "Loner" else OWN[:1], (-1, 2, 4), strict=False)
            ],
        ),
    )


@pytest.fixture(scope="module")
def written(files: tuple[Path, Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Written:
    return write_visage(*files, tmp_path_factory.mktemp("out"))


def _rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text("utf-8").splitlines()))


def test_identities(written: Written) -> None:
    rows = {row["identity"]: row for row in _rows(written.identities)}
    assert set(rows) == set(RATES)
    kestran = rows["Kestran"]
    assert (kestran["k_stereo"], kestran["k_random"], kestran["verdict"]) == ("3", "3", "found")
    theta = float(kestran["l_stereo"]) / float(kestran["l_random"])
    assert float(kestran["theta"]) == pytest.approx(theta)
    assert float(kestran["theta_low"]) < theta < float(kestran["theta_high"])
    assert kestran["country"] == ""
    nepali = rows["Nepali"]
    assert nepali["theta"] == ""
    assert "not defined" in nepali["note"]
    assert float(nepali["difference_low"]) > 0
    assert rows["United KingdomUK"]["verdict"] == "undecided"
    assert rows["United KingdomUK"]["country"] == "United Kingdom"
    loner = rows["Loner"]
    assert loner["theta"] == ""
    assert loner["verdict"] == "not scored"
    assert loner["difference"] != ""
    for row in rows.values():
        assert "inf" not in "".join(row.values())
        assert "nan" not in "".join(row.values())
        assert float(row["offensiveness_of_stereotypes"]) >= 0


def test_no_cell_is_a_formula(written: Written) -> None:
    for path in (written.identities, written.attributes):
        for row in _rows(path):
            for name, cell in row.items():
                if cell[:1] in "=+-@" and cell:
                    float(cell)
                    assert name not in ("identity", "attribute", "note")
    attributes = {row["attribute"] for row in _rows(written.attributes)}
    assert "'" + FORMULA in attributes


def test_published_counts_the_option(files: tuple[Path, Path, Path]) -> None:
    inputs = read_inputs(*files)
    default, published = analyse(inputs), analyse(inputs, Settings(published=True))
    one, other = default["Kestran"], published["Kestran"]
    assert (one.k_random, other.k_random) == (3, 4)
    assert other.tendency.theta.value == pytest.approx(one.tendency.theta.value * 4 / 3)
    assert not inputs.released


def test_writing_again_changes_no_byte(written: Written, files: tuple[Path, Path, Path]) -> None:
    before = {path: path.stat().st_mtime_ns for path in written.folder.iterdir()}
    assert {path.name for path in before} == {"identities.csv", "attributes.csv", "report.html"}
    write_visage(*files, written.folder)
    assert {path: path.stat().st_mtime_ns for path in written.folder.iterdir()} == before


def test_the_page_is_text_safe_and_offline(written: Written) -> None:
    page = written.report.read_text("utf-8")
    assert page.count("<script") == 1
    assert "window.hacked" in page
    assert "http://" not in page
    assert "https://" not in page
    assert not re.search(r"\s(style|on\w+)=", page)
    assert "Claims of the paper" not in page
    assert "not defined" in page
    assert "nan" not in re.sub(r"[\w-]*nan[\w-]+|[\w-]+nan[\w-]*", "", page)


def test_offensive_words_stand_folded_away(written: Written) -> None:
    page = written.report.read_text("utf-8")
    outside = re.sub(r'<details class="plain words">.*?</details>', "", page, flags=re.S)
    assert ">scarf<" in page
    assert "scarf" not in outside
    # Stereotypes that two of three raters call offensive are not given as examples either.
    assert "HYPERLINK" not in outside


def test_command(files: tuple[Path, Path, Path], tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(visage)
    names = ("--annotations", "--attributes", "--stereotypes")
    options = [part for pair in zip(names, map(str, files), strict=True) for part in pair]
    result = CliRunner().invoke(app, [*options, "--out", str(tmp_path / "o"), "--json"])
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    assert data["convention"] == "default"
    assert data["scored"] == 5
    assert Path(data["report"]).exists()
    plain = CliRunner().invoke(app, [*options, "--published", "--out", str(tmp_path / "p")])
    assert "times as often as random attributes" in plain.stdout
    assert "report:" in plain.stdout
    swapped = CliRunner().invoke(
        app, [*options[:1], str(files[1]), *options[2:], "--out", str(tmp_path / "q")]
    )
    assert isinstance(swapped.exception, AnnotationError)
    assert not (tmp_path / "q").exists()


def test_captions_beside_raters(files: tuple[Path, Path, Path], tmp_path: Path) -> None:
    captions = tmp_path / "captions.csv"
    captions.write_text(
        "image,caption\n"
        + "".join(f"Kestran-{n}.png,two people with Hats and scarves\n" for n in range(8))
        + "Mexican-0.png,a boat on the hat\n"
    )
    result = write_visage(*files, tmp_path / "o", captions=captions)
    assert result.captioned is not None
    own = result.captioned.of("Kestran", filtered=True)
    assert {row.attribute for row in own} == {"hat", "scarf"}
    assert all(row.named == 8 and row.marked for row in own)
    assert result.captioned.agreement.named == 3
    assert result.captioned.agreement.precision == 1
    assert 0 < result.captioned.agreement.recall < 1
    rows = _rows(result.salience)
    assert {row["visual_filter"] for row in rows} == {"yes", "no"}
    page = result.report.read_text("utf-8")
    assert "Captions beside raters" in page
    captions.write_text("image,caption\nNobody1.png,hat\n")
    with pytest.raises(AnnotationError, match=r"captions.csv, line 2: the image 'Nobody1.png'"):
        write_visage(*files, tmp_path / "p", captions=captions)


def test_steps() -> None:
    steps = (Step(0, "a", ""), Step(1, "b", ""), Step(5, "c", ""))
    assert [step_of(steps, value).style for value in (-3, 0, 1, 4.9, 80)] == list("aabbc")


def test_outlines_lie_on_the_map() -> None:
    shapes = outlines()
    assert len(shapes) == 176
    assert "010" not in shapes
    for shape in shapes.values():
        x, y = shape.middle
        assert 0 <= x <= WIDTH
        assert 0 <= y <= HEIGHT
        assert re.fullmatch(r"(M-?\d+,-?\d+l(-?\d+[ -]?)+z)+", shape.path), shape.name
    mexico, kenya = shapes["484"].middle, shapes["404"].middle
    assert mexico[0] < kenya[0]
    assert mexico[1] < kenya[1]
    near = point(-102, 23)
    assert abs(near[0] - mexico[0]) < 300
    assert abs(near[1] - mexico[1]) < 300


def test_a_tip_cannot_break_out() -> None:
    svg = world_map({"484": Mark("m1", HOSTILE)}, title=HOSTILE, description="")
    assert "<script" not in svg
    assert world_map({"nowhere": Mark("m1", "x")}, title="", description="").count("<title>") == 1


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_a_browser(chromium: Any, written: Written, scheme: str) -> None:
    context = chromium.new_context(viewport={"width": 1200, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    complaints: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(written.report.as_uri())
    assert complaints == []
    assert [url for url in requests if not url.startswith("data:")] == [written.report.as_uri()]
    assert page.evaluate("window.hacked") is None
    # Our own style sheet is applied, so the policy's hash is right.
    assert page.evaluate("getComputedStyle(document.querySelector('.maps')).display") == "grid"
    fills = page.evaluate(
        "[...document.querySelectorAll('#map-count .world use')].map(u => getComputedStyle(u).fill)"
    )
    assert len(set(fills)) >= 2
    assert page.locator("svg.world").count() == 4
    assert page.locator("details.concept").count() == len(RATES)
    for width in (360, 1200):
        page.set_viewport_size({"width": width, "height": 800})
        page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    context.close()
