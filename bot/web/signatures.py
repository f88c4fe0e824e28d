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

MOST_FIELDS: Final = 200


def form_of(raw: bytes) -> MultiDict[str] | None:
    """The fields of a posted form; None if it is none."""
    try:
        return MultiDict(parse_qsl(raw.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS))
    except ValueError:
        return None


def is_signed(auth_token: str, url: str, form: MultiDict[str], headers: Mapping[str, str]) -> bool:
    """The validator tries `url` with and without its port, but never http for https."""
    try:
        algorithm = get_signature_algorithm(headers.get(SIGNATURE_SETTINGS_HEADER))
        signature = headers.get(SIGNATURE_HEADER, "")
        return bool(RequestValidator(auth_token).validate(url, form, signature, algorithm))
    except Exception:  # hostile bytes raise many kinds; each of them means no
        return False
