"""TIMIT: trees in both layouts, the published speakers, and errors that name files and lines."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import soundfile
from numpy.testing import assert_array_equal

from orbitpool.datasets import DataCorrupt, DataMissing, timit
from orbitpool.datasets.timit import CORE_TEST, DEVELOPMENT

NOTES = "0 3000 h#\n3000 5000 q\n5000 7000 ix\n7000 8000 ao\n"


def utterance(folder, name, notes=NOTES, suffixes=("wav", "phn"), **options):
    """Half a second of noise and its phones in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    sound = 0.1 * np.random.default_rng(len(str(folder))).normal(size=8000)
    soundfile.write(folder / f"{name}.{suffixes[0]}", sound, 16_000, **options)
    (folder / f"{name}.{suffixes[1]}").write_text(notes)


def test_the_published_speakers():
    assert (len(CORE_TEST), len(DEVELOPMENT), CORE_TEST & DEVELOPMENT) == (24, 50, set())
    assert sum(name.startswith("m") for name in CORE_TEST) == 16  # two men and a woman of each of eight regions
    assert all(name[0] in "fm" and len(name) == 5 for name in CORE_TEST | DEVELOPMENT)


def test_an_official_tree_is_split_as_published(tmp_path):
    sphere = {"suffixes": ("WAV", "PHN"), "format": "NIST", "subtype": "PCM_16"}
    places = {
        "TRAIN/DR1/FCJF0": "train",
        "TEST/DR1/MDAB0": "test",
        "TEST/DR1/FAKS0": "development",
        "TEST/DR1/MJSW9": "",
    }
    for place in places:
        for name in ("SA1", "SI648", "SX27"):
            utterance(tmp_path / "TIMIT" / place, name, **sphere)
    data = timit(tmp_path)
    assert len(data.segments) == 4 * 2 * 3  # no SA sentences, no glottal stops
    assert list(data.labels[:3]) == ["sil", "ih", "aa"]
    assert dict(zip(data.speakers, data.parts, strict=True)) == {p[-5:].lower(): part for p, part in places.items()}
    ((train, test),) = data.splits()
    assert (set(data.speakers[train]), set(data.speakers[test])) == ({"fcjf0"}, {"mdab0"})
    assert (data.provenance, data.protocol) == ("stand-in", "published training and core test speakers")
    assert "8 utterances of 4 speakers" in data.source


def test_speakers_are_never_on_both_sides(tmp_path):
    for i in range(13):
        utterance(tmp_path / "timit_sample" / f"dr1-fab{i:02}", "sx1")
    data = timit(tmp_path)
    splits = data.splits()
    assert (len(splits), data.protocol) == (6, "speaker-disjoint cross-validation, 6 folds")
    assert_array_equal(np.sort(np.concatenate([test for _, test in splits])), np.arange(len(data.segments)))
    for train, test in splits:
        assert not set(data.speakers[train]) & set(data.speakers[test])
        assert len(train) + len(test) == len(data.segments)


@pytest.mark.parametrize(
    ("notes", "says"),
    [
        ("0 3000 h#\n3000 8161 ix\n", r"sx1\.phn, line 2: the segment goes .* but .*sx1\.wav ends at 0\.5 s"),
        ("0 3000 h#\n2999 8000 ix\n", r"sx1\.phn, line 2: the phone starts at sample 2999"),
        ("0 3000 h#\n3000 8000 ii\n", r"sx1\.phn, line 2: 'ii' is not one of TIMIT's 61 phones"),
    ],
)
def test_bad_annotations_are_refused_by_file_and_line(notes, says, tmp_path):
    utterance(tmp_path / "timit" / "dr1-fab00", "sx1", notes)
    with pytest.raises(ValueError, match=says):
        timit(tmp_path)


def test_a_boundary_up_to_a_frame_past_the_end_is_cut(tmp_path):
    utterance(tmp_path / "timit" / "dr1-fab00", "sx1", "0 3000 h#\n3000 8160 ix\n")
    assert timit(tmp_path).segments[1].end == 0.5


def test_sound_without_its_phones_is_named(tmp_path):
    utterance(tmp_path / "timit" / "dr1-fab00", "sx1")
    utterance(tmp_path / "timit" / "dr1-fab00", "sx2")
    (tmp_path / "timit" / "dr1-fab00" / "sx2.phn").unlink()
    with pytest.raises(DataCorrupt, match=r"sx2.wav has no .phn beside it"):
        timit(tmp_path)


def test_too_few_speakers_are_refused(tmp_path):
    for i in range(2):
        utterance(tmp_path / "timit" / f"dr1-fab{i:02}", "sx1")
    with pytest.raises(DataMissing, match="needs 3 of them; add speakers"):
        timit(tmp_path).splits()


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(DataMissing, match="timit needs TRAIN and TEST of LDC93S1, or the sample"):
        timit(tmp_path)
    utterance(tmp_path / "timit" / "dr1-fab00", "sx1")
    (tmp_path / "timit" / "dr1-fab00" / "sx1.wav").unlink()
    with pytest.raises(DataCorrupt, match=r"sx1\.phn has no sound beside it"):
        timit(tmp_path)


@pytest.fixture(scope="module")
def sample():
    folder = Path(os.environ.get("ORBITPOOL_DATA", "nowhere"))
    if not (folder / "timit_sample").is_dir():
        pytest.skip("needs timit_sample in $ORBITPOOL_DATA")
    return folder / "timit_sample"


def test_the_sample_is_read_identically_under_official_names(sample, tmp_path):
    """The same files as TRAIN/DR1/FVMH0/SX206.WAV, and in lower case: same frames, boundaries, labels and folds."""
    plain = timit(sample.parent)
    assert (len(plain.segments), len(set(plain.labels)), len(set(plain.speakers))) == (3632, 39, 12)
    for case in (str.upper, str.lower):
        for path in sample.glob("*/*.[wp][ah][vn]"):
            region, speaker = path.parent.name.split("-")
            place = tmp_path / "timit" / case("train") / case(region) / case(speaker)
            place.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, place / case(path.name))
        official = timit(tmp_path)
        for column in ("labels", "speakers"):
            assert_array_equal(getattr(official, column), getattr(plain, column))
        assert [s[1:] for s in official.segments] == [s[1:] for s in plain.segments]
        for one, other in zip(official.segments, plain.segments, strict=True):
            assert_array_equal(one.recording.frames, other.recording.frames)
        for one, other in zip(official.splits(), plain.splits(), strict=True):
            assert_array_equal(one[1], other[1])
        shutil.rmtree(tmp_path / "timit")
