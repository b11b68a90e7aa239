from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tropescope.errors import Corruption
from tropescope.store.ledger import Ledger, read_ledger

records = st.lists(
    st.dictionaries(st.text(max_size=8), st.one_of(st.integers(), st.text(max_size=20))), max_size=6
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(records, st.integers(0, 10_000))
def test_a_torn_tail_loses_at_most_the_last_line(
    tmp_path: Path, written: list[dict[str, object]], cut: int
) -> None:
    path = tmp_path / "ledger.jsonl"
    path.unlink(missing_ok=True)
    with Ledger(path) as ledger:
        ledger.append(written)
    whole = path.read_bytes()
    cut = min(cut, len(whole))
    path.write_bytes(whole[:cut])
    kept = list(read_ledger(path))
    assert kept == written[: len(kept)]
    assert len(kept) == whole[:cut].count(b"\n")
    with Ledger(path) as ledger:
        ledger.append([{"after": 1}])
    assert list(read_ledger(path)) == [*kept, {"after": 1}]


def test_a_changed_line_is_detected_and_located(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with Ledger(path) as ledger:
        ledger.append([{"n": 1}, {"n": 2}, {"n": 3}])
    path.write_bytes(path.read_bytes().replace(b'"n":2', b'"n":7'))
    with pytest.raises(Corruption, match="line 2"):
        list(read_ledger(path))
    with pytest.raises(Corruption, match="line 2"), Ledger(path):
        pass


def test_a_missing_ledger_is_empty(tmp_path: Path) -> None:
    assert list(read_ledger(tmp_path / "none")) == []
