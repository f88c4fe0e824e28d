"""The midwatch command line.

Never shows a traceback to people (unless MIDWATCH_DEBUG is set): what went wrong is one sentence.
Exit codes: 0 done, 1 failed, 2 the input was wrong.
"""

from __future__ import annotations

import atexit
import gc
import logging
import os
import sys
from collections.abc import Sequence
from typing import Final

from cyclopts import App, CycloptsError, UnusedCliTokensError

from bot.commands.say import note
from bot.logs import redact_sentence, redact_text, set_up_logs
from bot.release import release
from engine.errors import BadInput, MidwatchError, Unavailable

FAILED: Final = 1
WRONG_INPUT: Final = 2


app = App(
    name="midwatch",
    help="The on-call pager that lives in Slack.",
    version=release,
    help_format="plaintext",
    result_action="return_value",
    exit_on_error=False,
    print_error=False,
    suppress_keyboard_interrupt=False,
)
# Why by name: a command loads what it needs and no more; `who` should not wait for Slack's library.
COMMANDS: Final = {
    "run": ("run:run", "Run Midwatch."),
    "demo": ("demo:demo", "Try it without a Slack account."),
    "sandbox": ("sandbox:sandbox", "A local Slack and phone company."),
    "doctor": ("doctor:doctor", "Is this install sound, and what to do if not."),
    "migrate": ("run:migrate", "Make the tables, or bring them up to date."),
    "apply": ("configure:apply", "Make the directory what midwatch.yaml says."),
    "export": ("configure:export", "Write that midwatch.yaml."),
    "key": ("configure:key", "Integration keys: what lets a sender in."),
    "token": ("configure:token", "API tokens: what lets a script in."),
    "who": ("oncall:who", "Who is on call, until when, and who is next."),
    "contacts": ("contacts:contacts", "How people are reached: contact methods, codes, contact rules."),
    "override": ("oncall:override", "Put a person on call for a while."),
    "incidents": ("incidents:incidents", "The incidents, newest first."),
    "status": ("status:status", "Is everything that should page able to?"),
    "why": ("incidents:why", "The whole story of an incident."),
    "dead": ("dead:dead", "Messages that could not be delivered: list them, send them again."),
    "ack": ("incidents:ack", "Acknowledge incidents."),
    "resolve": ("incidents:resolve", "Resolve incidents."),
    "merge": ("incidents:merge", "Make one incident of two."),
    "unmerge": ("incidents:unmerge", "Take a merged incident out again."),
    "calendar": ("calendar:calendar", "Links to shifts for calendar programs, and calendars to follow."),
    "vcard": ("vcard:vcard", "A contact card with Midwatch's numbers, for telephones."),
    "maintenance": ("maintenance:maintenance", "Hold back the pages of a service for a while."),
}
for _order, (_name, (_target, _help)) in enumerate(COMMANDS.items()):
    app.command(f"bot.commands.{_target}", name=_name, help=_help, sort_key=_order)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit."""
    # Why: Python looks at every object once more before it ends, and that takes longer than all of stopping.
    atexit.register(gc.freeze)
    sys.exit(_run(sys.argv[1:] if arguments is None else arguments))


def _run(arguments: Sequence[str]) -> int:
    debug = "MIDWATCH_DEBUG" in os.environ
    set_up_logs(level=logging.DEBUG if debug else logging.WARNING)
    try:
        result = app(arguments)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # `midwatch who | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as error:
        if debug:
            raise
        note(_sentence(error))
        return WRONG_INPUT if isinstance(error, (BadInput, CycloptsError)) else FAILED
    return result if isinstance(result, int) else 0


def _sentence(error: Exception) -> str:
    if isinstance(error, Unavailable) or type(error).__module__.startswith(("sqlalchemy", "asyncpg")):
        # Why here: most commands end without an error, and need not wait for this.
        from bot.why import database_away, why

        if database_away(error):
            advice = "See MIDWATCH_DATABASE_URL, or run: midwatch doctor"
            return f"The database cannot be used: {why(error)}. {advice}"
    if isinstance(error, UnusedCliTokensError):
        left = " ".join(error.unused_tokens or ())
        return redact_sentence(f"{left!r} is more than this command takes; --help shows what it does take.")
    if isinstance(error, (MidwatchError, CycloptsError)):
        return redact_sentence(str(error))
    kind = f"{type(error).__name__}: " if not isinstance(error, OSError) else ""
    return redact_text(f"That did not work. {kind}{error}\nMIDWATCH_DEBUG=1 shows where.")


if __name__ == "__main__":
    main()
