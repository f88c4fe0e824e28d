"""Twilio's error codes with their HTTP status and what they say, and nothing else."""

from __future__ import annotations

from typing import Any

ERRORS: dict[int, tuple[int, str]] = {
    20001: (400, "A parameter cannot be read"),
    20003: (401, "Authenticate"),
    20008: (403, "Resource not accessible with Test Account Credentials"),
    20404: (404, "The requested resource was not found"),
    20422: (400, "Invalid parameter"),
    20429: (429, "Too Many Requests"),
    21201: (400, "No 'To' number is specified"),
    21205: (400, "Url is not a valid URL"),
    21210: (400, "'From' phone number not verified"),
    21211: (400, "The 'To' number is not a valid phone number"),
    21212: (400, "The 'From' number is not a valid phone number"),
    21213: (400, "'From' phone number is required"),
    21216: (400, "Account not allowed to call this number"),
    21220: (400, "Call is not in-progress. Cannot redirect"),
    21266: (400, "'To' and 'From' number cannot be the same"),
    21408: (
        400,
        "Permission to send an SMS has not been enabled for the region indicated by the 'To' number",
    ),
    21602: (400, "Message body is required"),
    21603: (400, "A 'From' phone number is required"),
    21604: (400, "A 'To' phone number is required"),
    21606: (400, "The 'From' phone number is not a valid, SMS-capable number of this account"),
    21609: (400, "The StatusCallback URL is not a valid URL"),
    21610: (400, "Attempt to send to unsubscribed recipient"),
    21612: (400, "The 'To' phone number is not currently reachable via SMS"),
    21614: (400, "'To' number is not a valid mobile number"),
    21617: (400, "The concatenated message body exceeds the 1600 character limit"),
    21626: (400, "The StatusCallbackEvent parameter is not valid"),
    60410: (403, "Delivery attempts to this number prefix are temporarily blocked"),
}


class TwilioError(Exception):
    """Twilio refuses a request."""

    def __init__(self, code: int, status: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.status = status

    def as_json(self) -> dict[str, Any]:
        more = f"https://www.twilio.com/docs/errors/{self.code}"
        return {"code": self.code, "message": str(self), "more_info": more, "status": self.status}


def by_code(code: int) -> TwilioError:
    status, message = ERRORS.get(code, (400, f"Error {code}"))
    return TwilioError(code, status, message)
