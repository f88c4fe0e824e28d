"""Mail through aiosmtplib, against a mail server on this machine."""

from __future__ import annotations

import logging
import ssl
from datetime import datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from engine.errors import BadConfig
from engine.models import DeliveryKind, IncidentStatus, Link, Method, Outcome, Page, Rejected, Retry, Sent
from engine.notify.email import EmailTransport, Server, parse
from tests.notify.mail_server import MailServer, mail_server
from tests.notify.values import NOW, alert, page, told, view

ADDRESS = "ana@example.com"
TIMEOUT = timedelta(seconds=5)


class StillClock:
    def now(self) -> datetime:
        return NOW

    async def sleep_until(self, when: datetime) -> None:
        return None


async def send(server: MailServer, what: Page, *, user: str = "", timeout: timedelta = TIMEOUT) -> Outcome:
    url = f"smtp://{user}127.0.0.1:{server.port}?from=pager@example.com"
    return await EmailTransport(StillClock(), url, timeout=timeout).send(what)


def mail(**changes: object) -> Page:
    return page(**{"method": Method.EMAIL, "address": ADDRESS, **changes})


async def test_a_page_by_mail_arrives_as_text_and_html() -> None:
    """Sender, recipient, subject, date and both bodies; no robot answers it."""
    async with mail_server() as server:
        assert await send(server, mail()) == Sent("<delivery.901@example.com>", "smtp")
    [got] = server.mails
    assert (got["From"], got["To"]) == ("Midwatch <pager@example.com>", ADDRESS)
    assert got["Subject"] == "[Midwatch #42] checkout: db-1 is down"
    assert got["Date"] == "Thu, 05 Nov 2026 14:00:00 +0000"
    assert got["Auto-Submitted"] == "auto-generated"
    plain, html = got.get_body(("plain",)), got.get_body(("html",))
    assert plain is not None
    assert "#42 FIRING: db-1 is down" in plain.get_content()
    assert html is not None
    assert "<h2>#42 FIRING: db-1 is down</h2>" in html.get_content()


async def test_mails_of_one_incident_are_one_thread() -> None:
    """A second delivery has an id of its own, and refers to the same incident."""
    async with mail_server() as server:
        await send(server, mail())
        await send(server, mail(id=902, incident=view(status=IncidentStatus.RESOLVED)))
        await send(server, told("Slack is down", method=Method.EMAIL, address=ADDRESS, id=903))
    first, second, other = server.mails
    assert first["References"] == second["References"] == "<incident.7@example.com>"
    assert first["Subject"] == second["Subject"]
    assert first["Message-ID"] != second["Message-ID"]
    assert other["References"] is None


async def test_a_second_attempt_is_the_same_mail() -> None:
    """Mail programs show a doubled message once, since its id is the delivery's."""
    async with mail_server() as server:
        await send(server, mail())
        await send(server, mail(attempt=2))
    assert server.mails[0]["Message-ID"] == server.mails[1]["Message-ID"]


@pytest.mark.parametrize(
    ("answers", "outcome"),
    [
        ({"RCPT": f"550 <{ADDRESS}> unknown"}, Rejected("the mail server answered 550")),
        ({"RCPT": "450 greylisted"}, Retry("the mail server answered 450")),
        ({"BODY": "554 spam"}, Rejected("the mail server answered 554")),
        ({"BODY": "452 disk full"}, Retry("the mail server answered 452")),
        ({"EHLO": "421 going down", "HELO": "421 going down"}, Retry("the mail server answered 421")),
        ({"MAIL": ""}, Retry("the mail server cannot be used (SMTPServerDisconnected)")),
        ({"BODY": ""}, Retry("the mail server cannot be used (SMTPServerDisconnected)")),
    ],
)
async def test_the_code_of_the_server_decides(answers: dict[str, str], outcome: Outcome) -> None:
    """4xx is tried again, 5xx for this recipient or text is final; the address is in no reason."""
    async with mail_server() as server:
        server.answers = answers
        assert await send(server, mail()) == outcome
    assert server.mails == []


@pytest.mark.parametrize(
    "answers",
    [{"AUTH": "535 no"}, {"MAIL": "553 not your sender"}, {"MAIL": "530 Must issue STARTTLS first"}],
)
async def test_a_server_that_refuses_us_is_down(answers: dict[str, str]) -> None:
    """Wrong credentials or sender fail for everybody: not this address's fault."""
    async with mail_server() as server:
        server.answers = answers
        outcome = await send(server, mail(), user="pager:sesame@")
    assert isinstance(outcome, Retry)
    assert outcome.down
    assert "sesame" not in outcome.reason


async def test_an_error_at_goodbye_does_not_send_it_again() -> None:
    """The server has taken the mail; what it says to QUIT changes nothing."""
    async with mail_server() as server:
        server.answers = {"QUIT": ""}
        assert isinstance(await send(server, mail()), Sent)
    assert len(server.mails) == 1


async def test_a_silent_server_is_not_waited_for() -> None:
    """A server that takes the connection and says nothing costs the timeout, no more."""
    async with mail_server() as server:
        server.silent = True
        outcome = await send(server, mail(), timeout=timedelta(milliseconds=100))
    assert outcome == Retry("the mail server did not answer in time")


async def test_a_server_that_is_not_there_is_tried_again() -> None:
    """A refused connection is Retry."""
    async with mail_server() as server:
        pass
    assert await send(server, mail()) == Retry("the mail server cannot be used (SMTPConnectError)")


async def test_a_password_is_not_sent_in_clear_over_a_network() -> None:
    """Without STARTTLS a server elsewhere gets neither the password nor the mail."""
    async with mail_server() as server:
        url = f"smtp://pager:sesame@127.0.0.2:{server.port}?from=pager@example.com"
        server.answers = {"AUTH": "235 it was told"}
        outcome = await EmailTransport(StillClock(), url, timeout=TIMEOUT).send(mail())
    assert isinstance(outcome, Retry)
    assert server.mails == []


@pytest.mark.parametrize(
    "address", ["", "ana", "a b@example.com", "a@example.com\r\nBcc: all@example.com", "a@[", "ünä@x.de"]
)
async def test_what_is_no_address_is_not_sent(address: str) -> None:
    """A broken address is rejected, and cannot add a header."""
    async with mail_server() as server:
        assert await send(server, mail(address=address)) == Rejected("not a mail address")
    assert server.mails == []


async def test_no_title_adds_a_header() -> None:
    """Line breaks, bidi marks and any script in the title stay inside the subject."""
    async with mail_server() as server:
        await send(server, mail(incident=view(title="упал\r\nBcc: all@example.com\u202e 🔥")))
    [got] = server.mails
    assert got["Bcc"] is None
    assert got["Subject"] == "[Midwatch #42] checkout: упал Bcc: all@example.com 🔥"


async def test_no_address_and_no_password_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Not even at debug level, in success or failure."""
    caplog.set_level(logging.DEBUG)
    async with mail_server() as server:
        await send(server, mail(), user="pager:sesame@")
        server.answers = {"RCPT": f"550 <{ADDRESS}> unknown"}
        await send(server, mail(), user="pager:sesame@")
    assert ADDRESS not in caplog.text
    assert "sesame" not in caplog.text


async def test_a_cut_after_the_text_sends_the_same_mail_again() -> None:
    """Nobody knows whether the server took it: the second has the id of the first, and is seen once."""
    async with mail_server() as server:
        server.answers = {"BODY": ""}
        outcome = await send(server, mail())
        assert isinstance(outcome, Retry)
        assert (outcome.unsent, outcome.down) == (False, False)
        server.answers = {}
        assert await send(server, mail(attempt=2)) == Sent("<delivery.901@example.com>", "smtp")


async def test_a_very_long_alert_is_a_mail_that_every_server_takes() -> None:
    """No line is longer than SMTP allows, whatever stands in one line of an alert; the words arrive whole."""
    title, link = "диск " * 90, "https://graphs.example/" + "x" * 3000
    shown = view(title=title, alerts=(alert(summary="y" * 5000, links=(Link(link, "graph"),)),))
    async with mail_server() as server:
        assert isinstance(await send(server, mail(incident=shown)), Sent)
    assert max(map(len, server.raw[0].splitlines())) <= 998
    plain = server.mails[0].get_body(("plain",))
    assert plain is not None
    assert link in plain.get_content()
    assert title.strip() in plain.get_content()


LINK = "https://pager.example.com/answer/" + "t" * 36


async def test_a_page_by_mail_has_a_link_that_must_be_clicked() -> None:
    """In the text and as a button; it is a link and no form, so that opening a mail answers nothing."""
    async with mail_server() as server:
        url = f"smtp://127.0.0.1:{server.port}?from=pager@example.com"
        transport = EmailTransport(StillClock(), url, link_of=lambda page: LINK, timeout=TIMEOUT)
        assert isinstance(await transport.send(mail()), Sent)
    plain, html = server.mails[0].get_body(("plain",)), server.mails[0].get_body(("html",))
    assert plain is not None
    assert html is not None
    assert f"Acknowledge, resolve or escalate: {LINK}" in plain.get_content()
    assert f'<a href="{LINK}"' in html.get_content()
    assert "<form" not in html.get_content()
    for body in (plain, html):
        assert "Nobody reads replies to this mail." in body.get_content()


@pytest.mark.parametrize("kind", list(DeliveryKind))
async def test_news_can_be_left_and_pages_cannot(kind: DeliveryKind) -> None:
    """List-Unsubscribe and List-Id stand in status updates and notices only: a button that mail programs
    show beside each mail must not end anybody's pages."""
    async with mail_server() as server:
        await send(server, mail(kind=kind, text="acknowledged by ben"))
    [got] = server.mails
    news = kind in {DeliveryKind.STATUS, DeliveryKind.NOTICE}
    leave = "<mailto:pager@example.com?subject=unsubscribe>" if news else None
    assert got["List-Unsubscribe"] == leave
    assert (got["List-Id"] is not None) is news


@pytest.mark.parametrize(
    ("answers", "outcome"),
    [
        ({"RCPT": "550 <ana@example.com> ana-secret"}, Rejected("the mail server answered 550")),
        ({"MAIL": "421 <ana@example.com> ana-secret"}, Retry("the mail server answered 421")),
    ],
)
async def test_no_word_of_the_server_is_in_a_reason(answers: dict[str, str], outcome: Outcome) -> None:
    """It repeats the address, and whatever else it likes."""
    async with mail_server() as server:
        server.answers = answers
        assert await send(server, mail()) == outcome


# --- TLS -------------------------------------------------------------------------------------------------


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate of this machine that nobody trusts, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "mail.test")])
    begin = datetime(2020, 1, 1)  # noqa: DTZ001  # an X.509 date is in UTC by definition
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(begin)
        .not_valid_after(begin.replace(year=2100))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path / "mail.pem"
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(made.public_bytes(Encoding.PEM) + private)
    return path


@pytest.fixture
def tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


@pytest.fixture
def trusted(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))


@pytest.mark.usefixtures("trusted")
async def test_a_server_that_requires_tls_gets_it(tls: ssl.SSLContext) -> None:
    """STARTTLS is used where it is offered, with a password or without."""
    async with mail_server(tls=tls, require_tls=True) as server:
        assert isinstance(await send(server, mail()), Sent)
        assert isinstance(await send(server, mail(), user="pager:sesame@"), Sent)
    assert server.encrypted == [True, True]
    assert server.users == ["pager"]


@pytest.mark.usefixtures("trusted")
async def test_tls_from_the_first_byte(tls: ssl.SSLContext) -> None:
    """By smtps://."""
    async with mail_server(tls=tls, from_the_start=True) as server:
        url = f"smtps://127.0.0.1:{server.port}?from=pager@example.com"
        assert isinstance(await EmailTransport(StillClock(), url, timeout=TIMEOUT).send(mail()), Sent)
    assert len(server.mails) == 1


async def test_a_certificate_that_nobody_trusts_gets_no_mail(tls: ssl.SSLContext) -> None:
    """Whoever sits between us and the server reads neither the mail nor the password."""
    async with mail_server(tls=tls) as server:
        assert isinstance(await send(server, mail(), user="pager:sesame@"), Retry)
    assert (server.mails, server.users) == ([], [])


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("smtp://mail.test", Server("mail.test", 25, False, "midwatch@mail.test")),
        ("smtp://u%40x.de:p%3A@mail.test", Server("mail.test", 587, False, "u@x.de", "u@x.de", "p:")),
        ("smtps://mail.test?from=a@b.c", Server("mail.test", 465, True, "a@b.c")),
        ("smtp://[::1]:2525", Server("::1", 2525, False, "midwatch@localhost")),
    ],
)
def test_the_setting_names_the_server(url: str, server: Server) -> None:
    """Port, TLS and sender have sensible defaults; the password is never shown."""
    assert parse(url) == server
    assert "p:" not in repr(parse(url))


@pytest.mark.parametrize("url", ["mail.test", "http://mail.test", "smtp://", "smtp://h:x", "smtp://h?from=x"])
def test_a_wrong_setting_is_said_without_its_password(url: str) -> None:
    """The mistake names the setting and the right form."""
    with pytest.raises(BadConfig, match="SMTP_URL"):
        parse(url)
