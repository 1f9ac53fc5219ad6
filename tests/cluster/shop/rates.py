"""A module that no spec names: workers get it since `transforms` imports it."""

RATE = 1.25


def add_tax(amount: float) -> float:
    """The price with tax."""
    return amount * RATE
