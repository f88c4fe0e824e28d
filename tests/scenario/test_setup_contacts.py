"""`midwatch contacts` on a configured install: who is reached how, and what an admin does for others."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import sqlalchemy as sa

from bot.commands.say import note
from bot.secret_key import with_secret_key
from bot.settings import load
from engine.contacts.codes import SEALED
from engine.db import Database
from engine.models import DeliveryKind
from engine.schema import deliveries
from engine.vault import Vault
from tests.scenario.test_setup_commands import Terminal, configured, terminal

__all__ = ["configured", "terminal"]  # the fixtures of the command line

NUMBER, DOTTED = "+12025550199", "+12•••••199"


def sent_code() -> str:
    """The newest code, as its provider is given it."""

    async def read() -> Any:
        database = Database(settings.database_url)
        async with database.snapshot() as tx:
            brings = sa.select(deliveries.c.body).where(deliveries.c.kind == DeliveryKind.VERIFICATION.value)
            body = await tx.scalar(brings.order_by(deliveries.c.id.desc()).limit(1))
        await database.close()
        return body

    settings = with_secret_key(load(os.environ), note)
    assert settings.secret_key is not None
    body = asyncio.run(read())
    return Vault(settings.secret_key.get_secret_value()).decrypt(body[SEALED])


def test_a_number_is_added_verified_and_removed(configured: Terminal) -> None:
    """Masked wherever it is shown; the person's code verifies it, and nothing else does."""
    said = configured("contacts", "add", "ana", "voice", NUMBER)
    assert said.endswith(f"voice {DOTTED}. A code is on its way there: midwatch contacts verify ana CODE\n")
    assert f"voice  {DOTTED}  not verified; code queued, 5 tries left" in configured("contacts", "ana")
    code = sent_code()
    assert configured("contacts", "verify", "ana", f"{(int(code) + 1) % 10**6:06d}") == ""
    assert (configured.code, configured.errors) == (2, "That is not the code. 4 tries are left.\n")
    assert configured("contacts", "verify", "ana", code) == f"voice {DOTTED} is verified.\n"
    (row,) = [one for one in configured.json("contacts", "ana")["methods"] if one["address"] == DOTTED]
    assert (row["usable"], row["verified_by"], row["in_file"], row["code"]) == (True, "code", False, None)
    assert NUMBER not in configured("export"), "it is the person's, and not the file's"
    assert configured("contacts", "add", "ana", "sms", NUMBER).endswith("verified: it is the same number.\n")
    assert configured("contacts", "remove", "ana", str(row["id"])).startswith(f"voice {DOTTED} is forgotten.")
    assert DOTTED in configured("contacts")
    assert NUMBER not in configured("contacts", "--json")


def test_rules_are_written_as_in_midwatch_yaml(configured: Terminal) -> None:
    """By the kind of method, or its number where there are two; what is not given stays."""
    shown = configured("contacts", "rules", "ana", "--high", "voice, slack after 90s")
    assert "high urgency (their own): voice, slack after 1m30s" in shown
    assert "low urgency (their own): slack" in shown
    ana = configured.json("contacts", "ana")
    assert [one["after"] for one in ana["rules"]["high"]] == ["0s", "1m30s"]
    assert ana["rules_by"] == "person"
    usual = configured("contacts", "rules", "ana", "--reset")
    assert "high urgency (the usual order): slack, sms after 1m, voice after 3m" in usual
    for wrong in ("pigeon", "slack soon", "slack after never"):
        configured("contacts", "rules", "ana", "--high", wrong)
        assert configured.code == 2
    configured("contacts", "add", "ana", "sms", NUMBER)
    configured("contacts", "rules", "ana", "--high", "sms")
    assert "can be several: say which number" in configured.errors
    configured("contacts", "rules", "ana", "--reset", "--low", "slack")
    assert "Say either --reset, or steps." in configured.errors


def test_everybody_is_asked_to_verify(configured: Terminal) -> None:
    """Once a day, with names."""
    assert configured("contacts", "ask") == "Asked: nobody, or today already.\n"
    configured("contacts", "add", "ana", "email", "ana@example.com")
    assert configured.json("contacts", "ask") == {"asked": ["ana"], "unreached": []}
    assert configured.json("contacts", "ask") == {"asked": [], "unreached": []}


def test_a_code_is_sent_again_by_call(configured: Terminal) -> None:
    """Three times in an hour, and then it says so."""
    configured("contacts", "add", "ana", "sms", NUMBER)
    number = str(max(one["id"] for one in configured.json("contacts", "ana")["methods"]))
    assert configured.json("contacts", "code", "ana", number, "--by-call")["by_call"] is True
    assert "good for 15 minutes" in configured("contacts", "code", "ana", number)
    configured("contacts", "code", "ana", number)
    assert (configured.code, configured.errors.startswith("Too many codes")) == (1, True)


def test_what_is_wrong_is_said_in_a_sentence(configured: Terminal) -> None:
    """Names, kinds, addresses and methods that are not there."""
    for command, sentence in (
        (("nobody",), "There is no person 'nobody'"),
        (("add", "ana", "fax", NUMBER), "'fax' is no kind of contact method"),
        (("add", "ana", "sms", "0151 2345678"), "begins with + and its country code"),
        (("remove", "ana", "slack"), "how you are known here"),
        (("remove", "ana", "99"), "There is no such contact method. ana has: 1 (slack"),
    ):
        configured("contacts", *command)
        assert sentence in configured.errors
        assert configured.code != 0
