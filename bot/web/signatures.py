"""Did the phone company sign this? Checked against the public address that we configured.

Never believes Host or X-Forwarded-*, and never raises: what cannot be checked is not signed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl

from multidict import MultiDict
from twilio.request_validator import (
    SIGNATURE_HEADER,
    SIGNATURE_SETTINGS_HEADER,
    RequestValidator,
    get_signature_algorithm,
)

from engine.errors import BadPayload
from engine.sources.decode import decode

MOST_FIELDS: Final = 200


def form_of(raw: bytes) -> MultiDict[str] | None:
    """The fields of a posted form; None if it is none."""
    try:
        return MultiDict(parse_qsl(raw.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS))
    except ValueError:
        return None


def text_of(raw: bytes) -> str | None:
    """A body of JSON as it is signed: by the hash of its text, which stands in the address."""
    try:
        return raw.decode()
    except ValueError:
        return None


def fields_of(text: str) -> MultiDict[str]:
    """The texts of a JSON object, by name; nothing of what is no object."""
    try:
        document = decode(text.encode())
    except BadPayload:
        return MultiDict()
    members = document.items() if isinstance(document, dict) else ()
    return MultiDict((str(name), value) for name, value in members if isinstance(value, str))


def is_signed(auth_token: str, url: str, sent: MultiDict[str] | str, headers: Mapping[str, str]) -> bool:
    """`sent`: the fields of a form, or the text of a JSON body. The validator tries `url` with and without
    its port, but never http for https."""
    try:
        algorithm = get_signature_algorithm(headers.get(SIGNATURE_SETTINGS_HEADER))
        signature = headers.get(SIGNATURE_HEADER, "")
        return bool(RequestValidator(auth_token).validate(url, sent, signature, algorithm))
    except Exception:  # hostile bytes raise many kinds; each of them means no
        return False
