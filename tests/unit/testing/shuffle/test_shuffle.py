from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from millstream.testing.model import Advance, Case, Crash, Expected, Outcome, Restart, Row, Step
from millstream.testing.shuffle.shuffle import ShuffleResult, find_split_obstacle, shuffle
from unit.testing.shuffle.simulated import World, batchwise, case, right


def shuffled(world: World, many: int = 20, seed: int = 1) -> ShuffleResult:
    baseline: Any = world
    return shuffle(baseline, world.play, many, seed)


def test_a_right_pipeline_passes_in_all_splits() -> None:
    actual = shuffled(World(case(1, 2, 3, 11, 12), right))

    assert actual.has_passed
    assert actual.splits == 20
    assert actual.dropped == ()


def test_a_count_that_starts_anew_with_each_batch_is_caught_and_shrunk_to_two_batches_of_one_row() -> None:
    actual = shuffled(World(case(1, 2, 11, 3, 12, 21), batchwise))

    assert actual.failure is not None
    assert [len(part.items) for part in actual.failure.trial.split] == [1, 1]
    assert not actual.failure.fails_in_one_batch
    ((reading, gap),) = actual.failure.trial.gaps
    assert reading.sink == "delta counts"
    assert gap.changed == (({"begin": 0, "n": 2}, {"begin": 0, "n": 1}),)


def test_a_row_that_the_watermark_drops_is_told_and_is_not_wrong() -> None:
    actual = shuffled(World(case(1, 30, 2), right))

    assert actual.has_passed
    assert [item.late.item for item in actual.dropped] == [2]
    late = actual.dropped[0].late
    assert (late.time // 60_000_000, late.watermark // 60_000_000, late.moved_by) == (2, 29, 1)


def test_a_late_row_does_not_excuse_another_mistake() -> None:
    assert shuffled(World(case(1, 30, 2, 31, 32), batchwise)).failure is not None


def test_what_differs_though_nothing_was_dropped_is_wrong_even_where_a_row_was_late() -> None:
    def forgets(world: World, counts: Counter[int], touched: set[int]) -> list[Row]:
        # The late row's window is still open, and its row is lost without Spark having dropped it.
        return [row for row in right(world, counts, touched) if row["begin"] != 0 or row["n"] == 1]

    assert shuffled(World(case(1, 9, 2), forgets)).failure is not None


def test_what_differs_in_one_batch_too_is_said() -> None:
    def dice(world: World, counts: Counter[int], touched: set[int]) -> list[Row]:
        return [{"begin": row["begin"], "n": -1} for row in right(world, counts, touched)]

    actual = shuffled(World(case(1, 2, 3), dice))

    assert actual.failure is not None
    assert actual.failure.fails_in_one_batch
    assert len(actual.failure.trial.split) == 2


def test_a_split_in_which_the_query_fails_is_wrong() -> None:
    def play(given: Case) -> Outcome:
        outcome = world.play(given)
        crashed = any(isinstance(action, Crash) for step in given.steps for action in step.actions)
        return replace(outcome, fault="it does not start again") if crashed else outcome

    world: Any = World(case(1, 2, 3, 4), right)

    actual = shuffle(world, play, 20, 1)

    assert actual.failure is not None
    assert actual.failure.trial.fault == "it does not start again"
    assert len(actual.failure.trial.split) == 2


def test_a_query_that_fails_in_one_batch_is_not_shuffled() -> None:
    world: Any = World(case(1, 2), right)

    actual = shuffle(world, lambda value: Outcome(value, (), 0.0, fault="no such column"), 20, 1)

    assert actual.fault is not None
    assert "no such column" in actual.fault


def test_splits_in_which_a_views_own_watermark_drops_rows_are_not_judged_and_that_is_said() -> None:
    actual = shuffled(World(case(1, 30, 2), right, marked=frozenset({"moved"})))

    assert actual.has_passed
    assert any("not checked: a view sets its own watermark" in note for note in actual.notes)


def test_a_seed_gives_the_same_splits() -> None:
    worlds = [World(case(*range(9)), right) for _ in range(2)]
    for world in worlds:
        shuffled(world, seed=7)

    assert [item.steps for item in worlds[0].played] == [item.steps for item in worlds[1].played]


def test_fewer_splits_than_asked_are_told() -> None:
    actual = shuffled(World(case(1, 2), right), many=500)

    assert actual.splits < 500
    assert any(f"about {actual.splits} different splits" in note for note in actual.notes)


def test_one_row_cannot_be_shuffled() -> None:
    assert "fewer than two rows" in str(shuffled(World(case(1), right)).skipped)


def test_an_end_that_cannot_be_told_is_said() -> None:
    assert "identifies the row that it replaces" in str(
        shuffled(World(case(1, 2), right, is_foldable=False)).fault
    )


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (Step((Advance(timedelta(minutes=1)),), Expected(), case(1).where), "clock"),
        (Step((Restart(case(1).pipeline, "with later.yml"),), Expected(), case(1).where), "another version"),
        (Step((), Expected(error="cannot"), case(1).where), "fail"),
    ],
)
def test_a_case_that_has_no_batch_answer_is_refused(step: Step, said: str) -> None:
    item = case(1, 2)

    assert said in str(find_split_obstacle(replace(item, steps=(*item.steps, step))))


def test_restarts_and_crashes_of_a_case_do_not_keep_it_from_being_shuffled() -> None:
    item = case(1, 2)
    step = Step((Restart(), Crash("after_sink")), Expected(), item.where)

    assert find_split_obstacle(replace(item, steps=(*item.steps, step))) is None


class Breaking:
    """Plays as its world does, but on a machine that fails in each of the first `times` plays of a split."""

    def __init__(self, world: World, times: int) -> None:
        self.world, self.times = world, times
        self.tries: Counter[str] = Counter()

    def play(self, case: Case) -> Outcome:
        outcome = self.world.play(case)
        name = repr([step.actions for step in case.steps])
        self.tries[name] += 1
        if len(case.steps) == 1 or self.tries[name] > self.times:
            return outcome
        step_results = [
            replace(
                step_result, rows={}, error="Python worker failed to connect back", is_external_failure=True
            )
            for step_result in outcome.results
        ]
        return replace(outcome, results=tuple(step_results))


def test_a_split_in_which_the_machine_fails_is_played_again() -> None:
    baseline: Any = World(case(1, 2, 11), right)
    breaking = Breaking(baseline, times=2)

    assert shuffle(baseline, breaking.play, 5, 1).has_passed
    assert set(breaking.tries.values()) == {1, 3}


def test_a_machine_that_goes_on_failing_is_told_and_is_no_wrong_end() -> None:
    baseline: Any = World(case(1, 2, 11), right)

    actual = shuffle(baseline, Breaking(baseline, times=9).play, 5, 1)

    assert actual.failure is None
    assert actual.fault == "it did not run to its end in 3 attempts: Python worker failed to connect back"


def test_a_machine_that_fails_while_a_split_is_made_smaller_leaves_the_one_that_differs() -> None:
    baseline: Any = World(case(1, 2, 11, 3, 12, 21), batchwise)
    first: list[Case] = []

    def play(case: Case) -> Outcome:
        outcome = baseline.play(case)
        first.extend([case] if len(case.steps) > 1 and not first else [])
        if len(case.steps) == 1 or case is first[0]:
            return outcome
        return replace(
            outcome,
            results=tuple(
                replace(result, error="gone", is_external_failure=True) for result in outcome.results
            ),
        )

    actual = shuffle(baseline, play, 5, 1)

    assert actual.failure is not None
    assert actual.failure.trial.split == actual.failure.first
