"""What makes a benchmark fail; nothing is timed here."""

from benchmarks import record
from benchmarks.record import held
from benchmarks.timing import Row

BEFORE = {"a": 0.4, "b": 0.4}


def test_a_ratio_fails_beyond_the_margin_or_its_limit():
    count, failures = held([Row("a", 0.49), Row("b", 0.51), Row("new", 0.7, 0.6), Row("fine", 0.5, 0.6)], BEFORE)
    assert count == 4
    assert [line.split(":")[0] for line in failures] == ["b", "new"]
    assert failures[0].endswith("0.51, over 1.25 times the recorded 0.40")
    assert failures[1].endswith("0.70, and it must reach 0.60")


def test_what_is_noisy_not_timed_or_without_measure_is_not_held():
    rows = [Row("a", 9.0, noisy=True), Row("b", 9.0, timed=False), Row("other", 9.0)]
    assert held(rows, BEFORE) == (0, [])


def test_each_kind_of_machine_has_its_own_record(tmp_path, monkeypatch):
    def on(processor, compiled=True):
        monkeypatch.setattr(record, "machine", lambda: {"processor": processor, "compiled": compiled})

    monkeypatch.setattr(record, "RECORDED", tmp_path / "ratios.json")
    for machine, value in ((("one",), 0.4), (("other",), 0.2), (("one", False), 0.5), (("one",), 0.3)):
        on(*machine)
        record.record([Row("a", value), Row(f"at {value}", value)])
    assert record.recorded() == {"a": 0.3, "at 0.4": 0.4, "at 0.3": 0.3}
    on("one", compiled=False)
    assert record.recorded() == {"a": 0.5, "at 0.5": 0.5}
    on("other")
    assert record.recorded() == {"a": 0.2, "at 0.2": 0.2}
    on("new")
    assert record.recorded() == {}
