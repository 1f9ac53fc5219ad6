"""An action needs the token, the page's own origin and its header; then it is carried out and noted."""

from __future__ import annotations

import http.client
import json
from typing import TYPE_CHECKING, Any

import pytest

from millstream.dashboard.http import app
from millstream.dashboard.http.auth import AccessGuard
from millstream.dashboard.live_run import LivePage, PageOptions
from millstream.dashboard.replay_server import GeneratedPreviews
from millstream.dashboard.run_actions import NAMES, RunActions, resend_dead_letters
from millstream.diagnostics.failure import InvalidInput
from millstream.engine.events.event_bus import Event
from millstream.pipeline.model import Pipeline
from unit.dashboard.conftest import at

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from millstream.dashboard.http.event_stream import EventStream

TOKEN = "t0ken-of-this-run"


class Run:
    """Notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def restart(self, query: str) -> None:
        if query != "funnel":
            raise InvalidInput(f"there is no query '{query}'", "the queries are funnel")
        self.asked.append(f"restart {query}")

    def end(self) -> None:
        self.asked.append("stop")


@pytest.fixture
def run() -> Run:
    return Run()


@pytest.fixture
def served(feed: EventStream, run: Run, tmp_path: Path) -> Iterator[app.Page]:
    pipeline = Pipeline.model_validate(
        {
            "name": "shop",
            "folder": tmp_path,
            "sources": {"clicks": {"rate": {"rows_per_second": 1}}},
            "queries": {"funnel": {"from": "clicks", "to": {"console": {}}}},
        }
    )
    feed.actions = RunActions(pipeline, run.end, run.restart, run.asked.append)
    feed.folded.actions = NAMES
    made = app.serve(feed, GeneratedPreviews(), port=0, static=tmp_path)
    made.server.guard = AccessGuard(made.server.server_address[1], TOKEN, is_local=True)
    yield made
    made.close()


def post(where: app.Page, path: str, **headers: str) -> tuple[int, dict[str, Any]]:
    connection = http.client.HTTPConnection("127.0.0.1", where.server.server_address[1], timeout=60)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items() if value}
        connection.request("POST", path, headers=named)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def allowed(where: app.Page) -> dict[str, str]:
    """The headers that the page itself sends."""
    port = where.server.server_address[1]
    cookie = f"{where.server.guard.cookie}={TOKEN}"
    return {"Cookie": cookie, "Origin": f"http://127.0.0.1:{port}", "X_Millstream": "1"}


def test_the_page_with_its_token_stops_the_run(served: app.Page, run: Run) -> None:
    status, answer = post(served, "/api/actions/stop", **allowed(served))

    assert (status, answer["done"]) == (200, "The batches in progress finish, then the run ends.")
    assert run.asked == ["asked on the page: stop the run", "stop"]


def test_a_program_with_the_token_needs_no_origin(served: app.Page, run: Run) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "X_Millstream": "1"}

    assert post(served, "/api/actions/restart?query=funnel", **headers)[0] == 200
    assert run.asked[0] == "restart funnel"


@pytest.mark.parametrize(
    ("missing", "value", "status"),
    [
        ("Cookie", "", 401),
        ("Cookie", "millstream-1=wrong", 401),
        ("Origin", "", 403),
        ("Origin", "https://evil.example", 403),
        ("X_Millstream", "", 403),
    ],
)
def test_without_token_origin_or_header_nothing_happens(
    served: app.Page, run: Run, missing: str, value: str, status: int
) -> None:
    # The tests run as the user of the server, who may read without the token.
    assert post(served, "/api/actions/stop", **{**allowed(served), missing: value})[0] == status
    assert run.asked == []


def test_another_path_takes_no_post_and_an_action_no_get(served: app.Page, run: Run) -> None:
    assert post(served, "/api/state", **allowed(served))[0] == 405
    connection = http.client.HTTPConnection("127.0.0.1", served.server.server_address[1], timeout=60)
    connection.request("GET", "/api/actions/stop", headers={"Authorization": f"Bearer {TOKEN}"})
    assert connection.getresponse().status == 404
    connection.close()
    assert run.asked == []


def test_what_is_not_possible_is_said_with_a_fix(served: app.Page, run: Run) -> None:
    status, answer = post(served, "/api/actions/restart?query=carts", **allowed(served))

    assert (status, answer) == (409, {"error": "there is no query 'carts'", "fix": "the queries are funnel"})
    assert post(served, "/api/actions/format", **allowed(served))[0] == 404
    assert run.asked == []


FAILED = {"cause": "defect", "reason": "division by zero", "fix": ""}


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(Event("stopping", "", {"queries": ["funnel"]}, at(58)), id="asked to"),
        pytest.param(Event("query_failed", "funnel", FAILED, at(58)), id="a query failed"),
    ],
)
def test_a_run_that_ends_offers_no_action(served: app.Page, feed: EventStream, run: Run, end: Event) -> None:
    feed.fold(end)

    assert feed.document()["actions"] == []
    assert post(served, "/api/actions/stop", **allowed(served))[0] == 404
    assert run.asked == []


def test_a_page_over_a_run_that_offers_nothing_has_no_actions(tmp_path: Path) -> None:
    spec = {
        "name": "shop",
        "folder": tmp_path,
        "sources": {"clicks": {"rate": {"rows_per_second": 1}}},
        "queries": {"funnel": {"from": "clicks", "to": {"console": {}}}},
    }

    with LivePage(Pipeline.model_validate(spec), ["funnel"], PageOptions(is_served=False)) as page:
        assert page.feed.document()["actions"] == []


def test_sources_without_a_topic_have_nothing_to_deliver_again(served: app.Page) -> None:
    assert served.server.answers.feed.actions is not None
    assert resend_dead_letters(served.server.answers.feed.actions.pipeline) == (0, 0)
