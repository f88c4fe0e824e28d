"""vcard: a contact card with Midwatch's numbers, to be saved on the telephone of whoever is paged.

Never opens the database.
"""

from __future__ import annotations

import os
import sys

from bot import vcard as card
from bot.settings import load
from engine.errors import BadInput


def vcard() -> None:
    """Write the card to standard output: midwatch vcard > midwatch.vcf"""
    own = card.numbers(load(os.environ))
    if not own:
        raise BadInput("There is no number to save: TWILIO_FROM is not set.")
    sys.stdout.write(card.vcard(own).decode())
