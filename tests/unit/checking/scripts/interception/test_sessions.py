"""Settings and listeners of a session that a script asks for in a check."""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest.mock import MagicMock

import pytest
from pyspark import SparkConf
from pyspark.streaming import StreamingContext

from millstream.checking.scripts.interception.absent import Absent
from millstream.checking.scripts.interception.monkeypatch import Patches
from millstream.checking.scripts.interception.recording import Recording
from millstream.checking.scripts.interception.sessions import Sessions

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def recording() -> Iterator[Recording]:
    recording = Recording(conf={"spark.shop.topic": "orders"})
    with Patches() as patches:
        Sessions(MagicMock(), recording, MagicMock()).install(patches)
        yield recording


@pytest.mark.usefixtures("recording")
def test_a_setting_of_spark_submit_is_not_known() -> None:
    conf = SparkConf(loadDefaults=False, _jvm=None).set("spark.shop.user", "u")

    assert conf.get("spark.shop.user") == "u"
    assert conf.get("spark.shop.topic") == "orders"
    assert conf.get("spark.shop.other", defaultValue="x") == "x"
    assert isinstance(conf.get("spark.shop.other"), Absent)


@pytest.mark.usefixtures("recording")
def test_a_script_of_the_former_streaming_api_does_not_start_its_receivers() -> None:
    context = object.__new__(StreamingContext)

    context.start()

    assert context.awaitTerminationOrTimeout(10)
