"""What `make fire` makes of what it has seen; the parts themselves are run in slices elsewhere."""

from fire.blows import Blow
from fire.kills import Record, _count_lost
from fire.small import INTERVAL
from fire.summary import Part, verdict


def part(**found):
    return Part("a part", "", "", "", found.pop("wrong", []), 10.0, **found)


def test_what_was_not_tried_for_lack_of_time_fails_and_what_cannot_be_tried_here_does_not():
    assert verdict([part(), part()]) == (0, "passed in 20 s: nothing wrong")
    code, last = verdict([part(), part(left_out=["2 kills"])])
    assert (code, last) == (1, "FAILED in 20 s: nothing wrong, 1 LEFT OUT for lack of time: give more SECONDS")
    assert verdict([part(not_here=["mounting"])]) == (
        0,
        "passed in 10 s: nothing wrong, 1 not possible on this machine",
    )
    assert verdict([part(wrong=["half a file", "a traceback"])])[0] == 1


def test_an_orderly_end_may_lose_no_update_and_a_kill_those_since_the_checkpoint(tmp_path):
    counted = tmp_path / "updates"
    counted.write_text("00000100")
    for orderly, kept, wrong in ((True, 100, 0), (True, 99, 1), (False, 100 - INTERVAL, 0), (False, 79 - INTERVAL, 1)):
        record = Record()
        _count_lost(kept, counted, Blow("a blow", lambda _: True, orderly), record)
        assert len(record.wrong) == wrong
        assert record.lost == [(100 - kept, "a blow of fit")]
