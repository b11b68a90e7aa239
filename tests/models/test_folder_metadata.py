"""Metadata as spreadsheets, scripts and strangers write it: read, or refused with the place."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tropescope.errors import ModelError
from tropescope.models.folder import FolderColumns, FolderEntry
from tropescope.models.folder_metadata import read_metadata

from loopback import image_bytes

GOOD = "file,prompt\na.png,p\n"


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "a.png").write_bytes(image_bytes())
    (tmp_path / "b.png").write_bytes(image_bytes(level=7))
    return tmp_path


def read(folder, content=None, *, name="metadata.csv", **columns):
    if content is not None:
        data = content if isinstance(content, bytes) else content.encode()
        (folder / name).write_bytes(data)
    return read_metadata(folder, name=None, columns=FolderColumns(**columns))


def refusal(folder, content=None, **options) -> ModelError:
    with pytest.raises(ModelError) as caught:
        read(folder, content, **options)
    return caught.value


# -- what is understood ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        GOOD,
        "\ufeff" + GOOD,
        GOOD.replace("\n", "\r\n"),
        GOOD.replace(",", ";"),
        GOOD.replace(",", "\t"),
        "sep=;\r\nfile;prompt\r\na.png;p\r\n",
        '"file","prompt"\n"a.png","p"\n',
        "prompt , file \np,a.png\n",
        "file,prompt\n\na.png,p\n,\n\n",
        "file;prompt,with comma\na.png;x\n".replace("prompt,with comma", "prompt"),
        "file,prompt,note\na.png,p\n",
    ],
)
def test_tables_as_people_save_them(folder, content):
    metadata = read(folder, content)
    assert metadata.rows == 1
    ((_, (row,)),) = metadata.by_prompt.items()
    assert (row.file, row.outcome) == ("a.png", "generated")


def test_the_delimiter_is_found_by_the_header_not_by_the_texts(folder):
    metadata = read(folder, "file;prompt\na.png;a man, a hat, and a dog\n")
    assert list(metadata.by_prompt) == ["a man, a hat, and a dog"]


def test_renamed_columns(folder):
    metadata = read(
        folder, "Bild,Text,is_hat\na.png,p,1\n", file="Bild", prompt="Text", labels_prefix="is_"
    )
    assert metadata.by_prompt["p"][0].labels == (("hat", True),)


def test_the_first_table_there_is(folder):
    (folder / "metadata.jsonl").write_text('{"file": "b.png", "prompt": "q"}')
    assert list(read(folder).by_prompt) == ["q"]
    assert list(read(folder, GOOD).by_prompt) == ["p"]


# -- what is refused -------------------------------------------------------------------------------


def test_no_folder_no_metadata(tmp_path):
    with pytest.raises(ModelError, match="no folder"):
        read(tmp_path / "nowhere")
    problem = refusal(tmp_path)
    assert "metadata.csv, metadata.jsonl" in problem.message
    assert "write a metadata.csv" in problem.fix
    (tmp_path / "labels.csv").write_text(GOOD)
    assert "labels.csv" in refusal(tmp_path).fix
    (tmp_path / "labels.csv").rename(tmp_path / "metadata.xlsx")
    assert "metadata.xlsx" in refusal(tmp_path).fix


@pytest.mark.parametrize("name", ["other.csv", "../x.csv", "/etc/passwd"])
def test_a_metadata_file_that_is_not_there_or_outside(folder, name):
    with pytest.raises(ModelError):
        read_metadata(folder, name=name, columns=FolderColumns())


def spreadsheet() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "says", "fix"),
    [
        (spreadsheet(), "spreadsheet", "CSV UTF-8"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "spreadsheet", "CSV UTF-8"),
        (GOOD.encode("utf-16"), "UTF-16", "UTF-8"),
        (b"file,prompt\na.png,caf\xe9\n", "line 2: not UTF-8", "UTF-8"),
        (b"\x1f\x8b\x08\x00", "compressed", "unpack"),
        (b"", "empty", "header"),
        (b"\n\n", "empty", "header"),
        (b"file,prompt\n", "no rows", "one row"),
        (b'file,prompt\na.png,"p\n', "row 2", "quotes"),
        (b'file,prompt\na.png,"p"x\n', "row 2", "quotes"),
        (b"file,prompt\na.png,a man, a hat\n", "row 2: 3 cells", "quotes"),
        (b"file,prompt,file\na.png,p,b.png\n", "'file' stands there twice", "rename"),
        (b"file,prompt\na.png," + b"x" * 140_000, "row 2: field larger", "quotes"),
        (b"x" * 1_100_000, "line 1: longer than", "line breaks"),
        (b"file,prompt\ra.png,p\r", "", ""),
        (b"file,prompt,label_\na.png,p,1", "names no attribute", "label_<attribute>"),
    ],
)
def test_broken_tables(folder, content, says, fix):
    problem = refusal(folder, content)
    assert "metadata.csv" in problem.message
    assert says in problem.message
    assert fix in problem.fix


@pytest.mark.parametrize(
    ("header", "says", "fix"),
    [
        ("file_name,text", "no column 'file'; it has 'file_name', 'text'", "{file: file_name}"),
        ("File,prompt", "no column 'file'", "{file: File}"),
        ("fiel,prompt", "no column 'file'", "{file: fiel}"),
        ("file,text", "no column 'prompt' or 'concept'", "{prompt: text}"),
        ("file,xyz", "no column 'prompt' or 'concept'", "`columns:`"),
        ("q,w", "no column 'file'; it has 'q', 'w'", "`columns:`"),
    ],
)
def test_missing_columns(folder, header, says, fix):
    problem = refusal(folder, header + "\na.png,p\n")
    assert says in problem.message
    assert fix in problem.fix


def test_a_column_that_was_named_must_be_there(folder):
    assert "no column 'status'" in refusal(folder, GOOD, outcome="status").message


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("c.png,p,,", "no image file 'c.png'"),
        (".,p,,", "no image file"),
        (",p,,", "no file is named"),
        (",p,generated,", "no file is named"),
        ("a.png,,,", "neither a prompt nor a concept"),
        ("/etc/passwd,p,,", "absolute"),
        ("../a.png,p,,", "'..'"),
        ("a\0.png,p,,", "NUL"),
        ("link.png,p,,", "symbolic link"),
        ("linked/x.png,p,,", "symbolic link"),
        ("pipe.png,p,,", "no image file"),
        ("b.png,p,,", "'b.png' stands already in row 2"),
        ("./b.png,q,,", "stands already in row 2"),
        ("a.png,p,refuse,", "did you mean 'refused'?"),
        ("a.png,p,good,", "known are generated"),
        ("a.png,p,,maybe", "'label_x' is 'maybe'"),
        ("a.png,p,,2", "write 1, 0 or nothing"),
    ],
)
def test_wrong_rows_are_named(folder, row, says, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "x.png").write_bytes(image_bytes())
    (folder / "link.png").symlink_to(outside / "x.png")
    (folder / "linked").symlink_to(outside)
    os.mkfifo(folder / "pipe.png")
    problem = refusal(folder, f"file,prompt,outcome,label_x\nb.png,p,,\n{row}\n")
    assert problem.message.startswith("metadata.csv, row 3: ")
    assert says in problem.message


def test_all_wrong_rows_are_named_at_once_but_not_endlessly(folder):
    rows = "".join(f"{i}.png,p\n" for i in range(500))
    problem = refusal(folder, "file,prompt\n" + rows)
    assert problem.message.count("no image file") == 10
    assert "and 490 more" in problem.message


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"file": "a.png"', "line 2: not JSON"),
        ("[1]", "line 2: not a JSON object"),
        ("[" * 100_000, "line 2: not JSON"),
        ('{"file": 7, "prompt": "p"}', "line 2: 'file' must be text, not int"),
        ('{"file": "a.png", "prompt": ["p"]}', "line 2: 'prompt' must be text"),
        ('{"prompt": "p"}', "line 2: no file is named"),
        ('{"file": "\\ud800.png", "prompt": "p"}', "line 2"),
        ('{"file": "a.png", "prompt": "\\ud800"}', "surrogate"),
        ('{"file": "a.png", "prompt": "p", "label_x": {}}', "'label_x' is '{}'"),
    ],
)
def test_wrong_lines_of_jsonl(folder, line, says):
    content = '{"file": "b.png", "prompt": "p"}\n' + line
    assert says in refusal(folder, content, name="metadata.jsonl").message


def test_an_empty_jsonl(folder):
    assert "empty" in refusal(folder, "\n", name="metadata.jsonl").message


@pytest.mark.parametrize("content", [b"", b"hello", b"PAR1", b"PAR1" + bytes(50) + b"PAR1"])
def test_broken_parquet(folder, content):
    assert "Parquet" in refusal(folder, content, name="metadata.parquet").message


def test_wrong_rows_of_parquet(folder):
    path = folder / "metadata.parquet"
    pq.write_table(pa.table({"file": ["a.png", "c.png"], "prompt": ["p", "p"]}), path)
    assert "metadata.parquet, row 2: there is no image file" in refusal(folder).message
    pq.write_table(pa.table({"file": [1], "prompt": ["p"]}), path)
    assert "must be text, not int" in refusal(folder).message
    pq.write_table(pa.table({"image": ["a.png"], "prompt": ["p"]}), path)
    assert "{file: image}" in refusal(folder).fix


def test_one_long_text_shared_by_many_rows_costs_little(folder):
    """A few kilobytes of Parquet can promise gigabytes of text."""
    long = pa.array(["x" * 1_000_000])
    many = pa.DictionaryArray.from_arrays(pa.array([0] * 5000), long)
    table = pa.table({"file": ["a.png"] * 5000, "prompt": many})
    pq.write_table(table, folder / "metadata.parquet", compression="zstd")
    assert (folder / "metadata.parquet").stat().st_size < 100_000
    before = pa.default_memory_pool().max_memory()
    assert "longer than" in refusal(folder).message
    assert pa.default_memory_pool().max_memory() - before < 100_000_000


def test_a_table_of_another_kind(folder):
    (folder / "list.html").write_text("<table>")
    with pytest.raises(ModelError, match="not a kind of table"):
        read_metadata(folder, name="list.html", columns=FolderColumns())


def test_reading_does_not_hold_the_table(folder, monkeypatch):
    monkeypatch.setattr("tropescope.models.folder_tables.MOST_ROWS", 100)
    rows = "".join(",p,refused\n" for _ in range(200))
    assert "more than 100 rows" in refusal(folder, "file,prompt,outcome\n" + rows).message


@settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.sampled_from(["metadata.csv", "metadata.jsonl", "metadata.parquet"]),
    st.sampled_from([b"", b"file,prompt\n", b'{"file": "a.png", "prompt": "p"}\n', b"PAR1"]),
    st.binary(max_size=60) | st.text(st.sampled_from('a.png,;"\n\r\t{}[]:\0é'), max_size=60),
)
def test_whatever_the_table_holds_it_is_read_or_refused(folder, name, start, rest):
    for path in folder.glob("metadata.*"):
        path.unlink()
    content = start + (rest if isinstance(rest, bytes) else rest.encode())
    try:
        read(folder, content, name=name)
    except ModelError as problem:
        assert str(problem)


# -- the entry -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"path": ""},
        {"columns": {"image": "x"}},
        {"columns": {"file": "x", "prompt": "x"}},
        {"columns": {"file": ""}},
        {"unknown": 1},
    ],
)
def test_wrong_entries(wrong):
    with pytest.raises(ValidationError):
        FolderEntry.model_validate({"adapter": "folder", "path": "images", **wrong})
