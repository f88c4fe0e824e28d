"""What we send to Twilio, and what the sandbox answers in its place, against Twilio's own description.

The description comes out of a package of Twilio's at the time of the test; nothing of it is kept here.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
from datetime import timedelta
from typing import Any

import aiohttp
import pytest
from openapi_schema_validator import OAS30Validator

from bot.sandbox.server import SandboxServer
from engine.models import Method
from tests.notify.phone_company import SID
from tests.notify.test_twilio import FROM, PUBLIC, phones
from tests.notify.values import NOW, NUMBER, page

pytestmark = [pytest.mark.peers, pytest.mark.slow]

PACKAGE = "@twilio-alpha/mcp@0.7.0"
MEMBER = "package/twilio-oai/spec/json/twilio_api_v2010.json"
ACCOUNT = "/2010-04-01/Accounts/{AccountSid}"
FORM = "application/x-www-form-urlencoded"


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    npm, directory = shutil.which("npm"), tmp_path_factory.mktemp("twilio")
    if npm is None:
        _missing("npm is not installed")
    pack = [str(npm), "pack", PACKAGE, "--silent"]
    done = subprocess.run(pack, cwd=directory, capture_output=True, timeout=120, check=False)
    files = list(directory.glob("*.tgz"))
    if done.returncode or not files:
        _missing(f"npm could not fetch {PACKAGE}")
    with tarfile.open(files[0]) as archive:
        member = archive.extractfile(MEMBER)
        assert member is not None
        found: dict[str, Any] = json.load(member)
    return found


def _missing(reason: str) -> None:
    if os.environ.get("CI"):
        pytest.fail(f"CI must test against Twilio's own description: {reason}")
    pytest.skip(f"NOT TESTED AGAINST TWILIO'S DESCRIPTION: {reason}")


def form_of(described: dict[str, Any], path: str) -> dict[str, Any]:
    body = described["paths"][f"{ACCOUNT}/{path}"]["post"]["requestBody"]["content"][FORM]["schema"]
    assert isinstance(body, dict)
    return body


def is_form(described: dict[str, Any], path: str, sent: dict[str, str]) -> None:
    """Every field is one that Twilio knows, with a value that it takes, and none is missing."""
    schema = form_of(described, path)
    assert sent.keys() <= schema["properties"].keys()
    assert sent.keys() >= {*schema.get("required", ())}
    for name, value in sent.items():
        allowed = schema["properties"][name].get("enum")
        assert allowed is None or value in allowed, (name, value)


def is_answer(described: dict[str, Any], schema: str, answer: dict[str, Any]) -> None:
    whole = {**described["components"]["schemas"][schema], "components": described["components"]}
    errors = [error.message for error in OAS30Validator(whole).iter_errors(answer)]
    assert errors == []


async def test_what_we_send_is_what_twilio_takes(described: dict[str, Any]) -> None:
    """A text, a call, its end, and what we ask for: the fields of each are Twilio's."""
    async with phones(public_url=PUBLIC) as (company, transport):
        await transport.send(page())
        call = await transport.send(page(method=Method.VOICE))
        await transport.sent_before(page(since=NOW - timedelta(minutes=1)))
        await transport.hang_up(getattr(call, "ref", ""))
    is_form(described, "Messages.json", company.messages[0])
    is_form(described, "Calls.json", company.calls[0])
    is_form(described, "Calls/{Sid}.json", {"Status": "completed"})
    query = described["paths"][f"{ACCOUNT}/Messages.json"]["get"]["parameters"]
    assert company.asked
    assert {name for asked in company.asked for name in asked} <= {one["name"] for one in query}


async def test_what_the_sandbox_answers_is_what_twilio_answers(described: dict[str, Any]) -> None:
    """A message and a call, as they are made and as they are read again."""
    async with (
        SandboxServer() as sandbox,
        aiohttp.ClientSession(headers={"Authorization": aiohttp.encode_basic_auth(SID, "demo")}) as http,
    ):
        account = f"{sandbox.url}/2010-04-01/Accounts/{SID}"
        sent = {"To": NUMBER, "From": FROM, "Body": "Checkout is down"}
        async with http.post(f"{account}/Messages.json", data=sent) as answered:
            message = await answered.json()
        called = {"To": NUMBER, "From": FROM, "Twiml": "<Response><Say>Checkout</Say></Response>"}
        async with http.post(f"{account}/Calls.json", data=called) as answered:
            call = await answered.json()
        is_answer(described, "api.v2010.account.message", message)
        is_answer(described, "api.v2010.account.call", call)
        for kind, sid, schema in (("Messages", message["sid"], "message"), ("Calls", call["sid"], "call")):
            async with http.get(f"{account}/{kind}/{sid}.json") as answered:
                is_answer(described, f"api.v2010.account.{schema}", await answered.json())
