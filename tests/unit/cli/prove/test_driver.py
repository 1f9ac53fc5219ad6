"""What a driver of a proof does with its standard input."""

from __future__ import annotations

import subprocess
import sys

from millstream.cli.signals import INTERRUPTED


def test_a_driver_ends_when_the_proof_that_started_it_has_ended() -> None:
    program = "from millstream.cli.prove.driver import _arm; _arm(); print('it runs on')"

    result = subprocess.run(
        [sys.executable, "-c", program], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )

    assert (result.returncode, result.stdout, result.stderr) == (INTERRUPTED, "", "")
