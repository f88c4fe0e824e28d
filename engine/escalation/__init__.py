"""The fate of an incident: `decide(fate, command, now, ladder) -> Decision`, and nothing else.

Never reads the clock, the database or the network.
"""

from engine.escalation.decide import decide, open_fate, still_wanted
from engine.escalation.fate import Decision, Fate, Ladder, Rung
from engine.escalation.settle import settled
from engine.escalation.shapes import heard

__all__ = ["Decision", "Fate", "Ladder", "Rung", "decide", "heard", "open_fate", "settled", "still_wanted"]
