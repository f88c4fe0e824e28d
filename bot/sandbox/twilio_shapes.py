"""Messages, calls and pages of them in Twilio's JSON; only shapes, no decisions."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from email.utils import format_datetime
from typing import Any

from aiohttp import web

from bot.sandbox.calls import duration_s
from bot.sandbox.phones import Call, Sms

Json = dict[str, Any]


def page(request: web.Request, name: str, rows: Iterable[Json]) -> Json:
    size = max(1, min(_count(request, "PageSize", 50), 1000))
    number = _count(request, "Page", 0)
    everything = list(rows)
    shown = everything[number * size : (number + 1) * size]

    def uri(page_number: int) -> str:
        return str(request.rel_url.update_query({"Page": str(page_number), "PageSize": str(size)}))

    more = (number + 1) * size < len(everything)
    return {
        name: shown,
        "page": number,
        "page_size": size,
        "start": number * size,
        "end": number * size + max(0, len(shown) - 1),
        "uri": uri(number),
        "first_page_uri": uri(0),
        "next_page_uri": uri(number + 1) if more else None,
        "previous_page_uri": uri(number - 1) if number else None,
    }


def _count(request: web.Request, name: str, default: int) -> int:
    value = request.query.get(name, "")
    return int(value) if value.isdecimal() else default


def _date(when: datetime | None) -> str | None:
    return None if when is None else format_datetime(when)


def as_message(sms: Sms) -> Json:
    uri = f"/2010-04-01/Accounts/{sms.account}/Messages/{sms.sid}.json"
    at = _date(sms.at)
    return {
        "sid": sms.sid,
        "account_sid": sms.account,
        "api_version": "2010-04-01",
        "body": sms.body,
        "date_created": at,
        "date_sent": None if sms.status == "queued" else at,
        "date_updated": at,
        "direction": sms.direction,
        "error_code": sms.error_code,
        "error_message": None if sms.error_code is None else "the carrier did not deliver it",
        "from": sms.from_,
        "messaging_service_sid": None,
        "num_media": "0",
        "num_segments": str(1 + max(0, len(sms.body) - 1) // 153),
        "price": None,
        "price_unit": "USD",
        "status": sms.status,
        "subresource_uris": {"media": uri.replace(".json", "/Media.json")},
        "to": sms.to,
        "uri": uri,
    }


def as_call(call: Call) -> Json:
    duration = duration_s(call)
    return {
        "sid": call.sid,
        "account_sid": call.account,
        "api_version": "2010-04-01",
        "answered_by": call.answered_by if call.machine_detection else None,
        "date_created": _date(call.at),
        "date_updated": _date(call.ended_at or call.answered_at or call.at),
        "direction": "outbound-api",
        "duration": None if duration is None else str(duration),
        "start_time": _date(call.answered_at),
        "end_time": _date(call.ended_at),
        "from": call.from_,
        "from_formatted": call.from_,
        "parent_call_sid": None,
        "phone_number_sid": "PN" + "0" * 32,
        "price": None,
        "price_unit": "USD",
        "queue_time": "0",
        "status": call.status,
        "subresource_uris": {},
        "to": call.to,
        "to_formatted": call.to,
        "uri": f"/2010-04-01/Accounts/{call.account}/Calls/{call.sid}.json",
    }
