"""What executors lack, from what their tasks report."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from millstream.spark.cluster import executors
from millstream.spark.cluster.executors import (
    _clock_lacks,
    _explain,
    _find_user,
    _lacks,
    _look,
    _put_marker,
    _Surroundings,
)


def test_a_folder_is_seen_by_the_file_that_the_driver_has_put_into_it(tmp_path: Path) -> None:
    shared, other = tmp_path / "shared", tmp_path / "other"
    shared.mkdir()
    with _put_marker(shared) as marker:
        (report,) = _look(None, (), {"shared": str(marker), "other": str(other / marker.name)})

    assert report.unseen == ("other",)
    assert list(shared.iterdir()) == []


def test_a_folder_that_does_not_exist_yet_is_looked_for_in_the_nearest_one_above(tmp_path: Path) -> None:
    with _put_marker(tmp_path / "checkpoints" / "orders") as marker:
        assert marker.parent == tmp_path


def test_a_folder_that_is_closed_to_the_user_of_the_worker_is_one_that_it_may_not_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> bool:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "exists", refuse)

    (report,) = _look(None, (), {"closed": str(tmp_path / "marker")})

    assert (report.unseen, report.readonly, report.user) == ((), ("closed",), _find_user())


def test_missing_packages_other_versions_and_folders_are_one_sentence_each() -> None:
    report = _Surroundings(
        "worker-2", (("pandas", None), ("pyarrow", "17.0"), ("pgpq", "1")), ("/a",), ("/b",), user="spark"
    )

    lacks = list(_lacks(report, {"pandas": "2.3", "pyarrow": "18.0", "pgpq": "1"}))
    sentences = [lack.what for lack in lacks]

    assert sentences == [
        "the Python of the executor on worker-2 has no package pandas",
        "the executor on worker-2 has pyarrow 17.0, and this machine 18.0",
        "the executor on worker-2 does not see /a of this machine",
        "the executor on worker-2, which runs as user 'spark', may not write /b",
    ]
    assert lacks[-1].fix.startswith(
        f"run the workers as user '{_find_user()}', since a run closes its checkpoints"
    )


def test_a_clock_is_wrong_if_it_is_outside_the_time_in_which_all_tasks_ran() -> None:
    clocks = [("right", 130.0), ("ahead", 152.0), ("ahead", 160.4), ("behind", 90.0), ("nearly", 155.0)]
    reports = [_Surroundings(host, (), (), (), clock) for host, clock in clocks]

    lacks = list(_clock_lacks(reports, 100.0, 150.0))

    assert [lack.what for lack in lacks] == [
        "the clock of the executor on ahead is at least 10 s ahead of this machine's",
        "the clock of the executor on behind is at least 10 s behind this machine's",
    ]
    assert not any(lack.is_fatal for lack in lacks)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            "pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has "
            "different version: 3.10 than that in driver: 3.11.\n\tat org.apache",
            "executors have another Python than this machine: Python in worker has different version: 3.10 than "
            "that in driver: 3.11.",
        ),
        (
            'java.io.IOException: Cannot run program "/opt/python": error=2, No such file or directory',
            "executors cannot start the Python /opt/python",
        ),
    ],
)
def test_a_job_that_failed_for_its_python_is_explained(error: str, sentence: str) -> None:
    lack = _explain(error)

    assert lack is not None
    assert lack.what == sentence


def test_a_job_that_failed_for_another_reason_is_not(tmp_path: Path) -> None:
    assert _explain(f"java.lang.OutOfMemoryError at {tmp_path}") is None
    assert executors.PATIENCE > 30
