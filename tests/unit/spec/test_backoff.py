"""How long a failed query waits."""

import random

from millstream.spec.backoff import Backoff


class _Chance(random.Random):
    """Chance that always falls the same way."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self._value = value

    def random(self) -> float:
        return self._value


def test_waits_double_up_to_the_longest() -> None:
    waits = [Backoff().wait(failures, _Chance(0)) for failures in range(1, 10)]

    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_jitter_takes_at_most_half_of_a_wait() -> None:
    assert Backoff().wait(3, _Chance(1)) == 2


def test_a_thousand_failures_do_not_overflow() -> None:
    assert Backoff().wait(1000, _Chance(0)) == 60
