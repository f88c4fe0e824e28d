"""Calms Python's garbage collector once a process is up.

Never turned off: what is made from then on is collected, in larger steps.
"""

from __future__ import annotations

import gc


def calm_the_collector() -> None:
    """What was made by now lives as long as the process: looking for garbage in it costs a storm a
    third of its time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
