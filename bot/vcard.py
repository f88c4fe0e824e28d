"""A contact card with Midwatch's numbers, so that a telephone can let them through while it is silent.

Pure: vCard 3.0 by RFC 2426, which every telephone reads. Never holds a person's number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import unquote, urlsplit

from bot.settings import Settings

FILENAME: Final = "midwatch.vcf"
NAME: Final = "Midwatch"
NOTE: Final = "On-call pages. Let this contact through Do Not Disturb."
LINE_OCTETS: Final = 75  # RFC 2426, 2.6: a longer line is folded
NUMBER: Final = re.compile(r"\+?([1-9]\d{6,14})", re.ASCII)
# What must be done on the telephone: no app can do it.
IPHONE: Final = (
    "iPhone: open the file, save the contact; in it Edit, then Ringtone and Text Tone, Emergency Bypass on."
)
ANDROID: Final = (
    "Android: open the file, save the contact, star it; then in Settings, Do Not Disturb, People, let calls "
    "and messages of starred contacts through."
)


def numbers(settings: Settings) -> tuple[str, ...]:
    """Where our calls and messages come from; of the second company as far as its URL says it."""
    urls = (settings.sms_fallback_url, settings.voice_fallback_url)
    found = [settings.twilio_from, *(_sender(url.get_secret_value()) for url in urls if url is not None)]
    return tuple(dict.fromkeys(number for number in found if number))


def vcard(own: Sequence[str]) -> bytes:
    """The file. The first number is the preferred one."""
    lines = ["BEGIN:VCARD", "VERSION:3.0", f"N:{escaped(NAME)};;;;", f"FN:{escaped(NAME)}"]
    for at, number in enumerate(own):
        lines.append(f"TEL;TYPE={'CELL,VOICE,MSG,PREF' if at == 0 else 'CELL,VOICE,MSG'}:{escaped(number)}")
    lines += [f"NOTE:{escaped(NOTE)}", "END:VCARD"]
    return "".join(f"{part}\r\n" for line in lines for part in folded(line)).encode()


def escaped(text: str) -> str:
    """A value: backslash, comma, semicolon and the end of a line mean something else in a card."""
    for char in "\\,;":
        text = text.replace(char, f"\\{char}")
    return re.sub(r"\r\n|\r|\n", r"\\n", text)


def folded(line: str) -> Iterator[str]:
    """At most 75 octets each; what continues begins with a space. No character is cut in two."""
    part, size = "", 0
    for char in line:
        octets = len(char.encode())
        if size + octets > LINE_OCTETS:
            yield part
            part, size = " ", 1
        part, size = part + char, size + octets
    yield part


def _sender(url: str) -> str | None:
    """vonage://key:secret@15551234567/{to}: the number stands where a web address has its host."""
    try:
        host = urlsplit(url).netloc.rpartition("@")[2]
    except ValueError:
        return None
    found = NUMBER.fullmatch(unquote(host).partition(":")[0])
    return f"+{found[1]}" if found else None
