"""Notes about what a check does not know."""

from __future__ import annotations

import pytest

from millstream.checking.scripts.findings import describe_unknown
from millstream.checking.scripts.interception.columns.assumed_columns import AssumedColumns
from millstream.checking.scripts.interception.recording import Doubt, Recording


@pytest.mark.parametrize(
    ("what", "subject"),
    [("table port.ships", "it"), ("module portlib", "what comes of it"), ("name fares", "what comes of it")],
)
def test_a_note_names_what_has_the_columns_that_a_script_uses(what: str, subject: str) -> None:
    recording = Recording(assumed=AssumedColumns())
    assert recording.assumed is not None
    recording.assumed.add([what], ["imo"])

    finding = describe_unknown(Doubt(what, "a check does not have it", None), recording)

    assert finding.message == (
        f"{what} is not known here: the check assumes that {subject} has the columns that the script uses"
    )
