"""Phones and tables: what is read, and errors that name file and line."""

import re
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sounds import tone

from orbitpool.speech import CLASSES, FOLD, PHONES, read_phn, read_table

# Lee & Hon's folding as it is published, line by line: what becomes what, apart from what stays itself.
PUBLISHED = """
ao aa, ax ah, ax-h ah, axr er, hv hh, ix ih, el l, em m, en n, nx n, eng ng, zh sh, ux uw,
pcl sil, tcl sil, kcl sil, bcl sil, dcl sil, gcl sil, h# sil, pau sil, epi sil
"""
STAY = "iy ih eh ae ah uw uh aa ey ay oy aw ow l r y w er m n ng ch jh dh b d dx g p t k z v f th s sh hh"


def test_every_symbol_is_folded_as_published():
    published = dict(pair.split() for pair in PUBLISHED.replace("\n", " ").split(","))
    assert published | {phone: phone for phone in STAY.split()} == FOLD
    assert len(PHONES) == 61
    assert set(PHONES) - set(FOLD) == {"q"}
    assert len(CLASSES) == 39
    assert set(CLASSES) == set(STAY.split()) | {"sil"}


def test_the_sample_uses_the_61_symbols_and_no_other(sample):
    spoken = Counter(span.label for path in sample.glob("*/*.phn") for span in read_phn(path))
    assert set(spoken) == set(PHONES)
    assert spoken["q"] == 100
    assert sum(spoken.values()) == sum(len(path.read_text().splitlines()) for path in sample.glob("*/*.phn"))


def test_phones_are_read_in_seconds(tmp_path):
    path = tmp_path / "a.phn"
    path.write_text("0 1600 h#\r\n1600 3200 AX-H\n\n4000 4800 q\n")  # any line ends, any case, gaps
    assert read_phn(path) == [
        (0.0, 0.1, "h#", f"{path}, line 1"),
        (0.1, 0.2, "ax-h", f"{path}, line 2"),
        (0.25, 0.3, "q", f"{path}, line 4"),
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("0 10 h#\n10 10 aa\n", "line 2: the phone goes from sample 10 to 10; it must end after its start"),
        ("0 10 h#\n10 5 aa\n", "line 2: the phone goes from sample 10 to 5"),
        ("0 10 h#\n9 20 aa\n", "line 2: the phone starts at sample 9, before the one above ends at 10"),
        ("0 10 xx\n", "line 1: 'xx' is not one of TIMIT's 61 phones; choose from aa ae"),
        ("0 10\n", "line 1: '0 10' is not a first sample, an end and a symbol"),
        ("-1 10 aa\n", "line 1: '-1 10 aa' is not a first sample"),
        ("0 1e3 aa\n", "line 1: '0 1e3 aa' is not"),
        ("\n", "names no phones"),
    ],
)
def test_bad_phones_are_refused_by_file_and_line(text, says, tmp_path):
    path = tmp_path / "a.phn"
    path.write_text(text)
    with pytest.raises(ValueError, match=re.escape(says)) as error:
        read_phn(path)
    assert str(path) in str(error.value)


@given(st.binary(max_size=60) | st.text("0123456789 haq#-\n", max_size=60).map(str.encode))
def test_any_bytes_are_phones_or_a_named_error(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("phn") / "a.phn"
    path.write_bytes(content)
    try:
        spans = read_phn(path)
    except ValueError as error:
        spans = []
        assert str(path) in str(error)  # noqa: PT017
    assert all(a.end <= b.start for a, b in pairwise(spans))
    assert all(0 <= span.start < span.end and span.label in PHONES for span in spans)


def test_tables_name_segments_of_recordings(write, tmp_path):
    write("sounds/a.wav", tone(1, 200, 900, 0))
    write("b.wav", tone(0.5, 200, 900, 0))
    table = tmp_path / "table.csv"
    table.write_text(
        "file,start,end,label,speaker\n"
        'sounds/a.wav,0.1,0.4,hum,anna\nb.wav,,,"a, b",\nsounds/a.wav,0.3,1.005,hum,anna\n'
    )
    (first, whole, last), labels = read_table(table)
    assert labels == ["hum", "a, b", "hum"]
    assert first.recording is last.recording  # overlapping segments are allowed in a table
    assert (first.start, first.end, first.recording.speaker) == (0.1, 0.4, "anna")
    assert (whole.start, whole.end) == (0, 0.5)
    assert last.end == 1  # up to a frame past the end is cut
    table.write_text("file,start,end\nb.wav,0,0.1\n")
    assert read_table(table).labels == [""]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("file,begin,end\n", "line 1: the header is 'file,begin,end' and lacks start"),
        ("", "line 1: the header is '' and lacks file, start, end"),
        ("file,start,end,label\n", "has no rows below its header"),
        ("file,start,end,label\na.wav,0,0.1,x\na.wav,0.2,0.2,x\n", "line 3: the segment goes from 0.2 s to 0.2 s"),
        ("file,start,end,label\na.wav,-1,0.2,x\n", "line 2: the segment goes from -1 s to 0.2 s"),
        ("file,start,end,label\na.wav,0,nan,x\n", "line 2: the segment goes from 0 s to nan s"),
        ("file,start,end,label\na.wav,0,0.52,x\n", "line 2: the segment goes from 0 s to 0.52 s, but"),
        ("file,start,end,label\na.wav,0,soon,x\n", "line 2: end is 'soon'; give seconds"),
        ("file,start,end,label\nnone.wav,0,1,x\n", "line 2: there is no"),
        ("file,start,end\na.wav,0,1,x\n", "the row has not 3 fields as the header; quote what holds commas"),
        ("file,start,end,label\na.wav,0,0.1\n", "line 2: the row has not 4 fields as the header"),
        ("file,start,end,label\na.wav,0,0.1,x\na.wav,0.1,0.2,\n", "segment 2 has no label although others have"),
        ("file,start,end,label\n.,0,0.1,x\n", "line 2: "),
        ("file,start,end\na.wav,0,1,\xe9\n", "is not a table of comma-separated fields in UTF-8"),
    ],
)
def test_bad_tables_are_refused_by_file_and_line(text, says, write, tmp_path):
    write("a.wav", np.zeros(8000))
    table = tmp_path / "table.csv"
    table.write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=re.escape(says)) as error:
        read_table(table)
    assert str(table) in str(error.value)
