"""Fetches a calendar by its URL: within a time, up to a size, and from public addresses only.

Never follows a redirect to a private address unless those are allowed: whoever may name a URL must not
read with it what only this machine can reach. Never repeats the URL, which may hold a secret.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urljoin, urlsplit, urlunsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver
from yarl import URL

from engine.errors import BadCalendar, BadInput

WITHIN_S: Final = 15.0  # well within the lease of an errand
LARGEST: Final = 2 * 1024 * 1024  # as unpacked; a year of hourly shifts is half of it
REDIRECTS: Final = 5
MOVED: Final = frozenset({301, 302, 303, 307, 308})
# Why not all that is global: the rest of IPv6 leads to addresses of IPv4 (64:ff9b::, ::127.0.0.1) or to none.
_INTERNET: Final = ipaddress.ip_network("2000::/3")
PRIVATE: Final = "its address is private; MIDWATCH_CALENDAR_PRIVATE=1 allows that"


@dataclass(frozen=True, slots=True)
class Fetched:
    """`body` None: it is what it was, as its ETag says."""

    body: bytes | None
    etag: str | None


Fetch = Callable[[str, str | None], Awaitable[Fetched]]  # the URL, and the ETag of what we have


def calendar_url(typed: str) -> str:
    """What people copy, as what is fetched; BadInput if it is no address of a calendar."""
    parts = urlsplit(typed.strip())
    scheme = "https" if parts.scheme in {"webcal", "webcals"} else parts.scheme
    try:
        sound = scheme in {"http", "https"} and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:  # a port that is no number
        sound = False
    if not sound:
        raise BadInput("That is no address of a calendar: it begins with https://, http:// or webcal://.")
    return urlunsplit(parts._replace(scheme=scheme, fragment=""))


def fetcher(*, allow_private: bool) -> Fetch:
    async def fetch(url: str, etag: str | None) -> Fetched:
        try:
            return await _fetch(url, etag, allow_private=allow_private)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise BadCalendar(_why(error)) from None

    return fetch


def _why(error: Exception) -> str:
    if isinstance(error, _PrivateAddress) or isinstance(error.__cause__, _PrivateAddress):
        return PRIVATE
    if isinstance(error, TimeoutError):
        return f"no answer within {WITHIN_S:.0f} seconds"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "its host is not known"
    return f"not reached ({type(error).__name__})"


class _PrivateAddress(OSError):
    """An address that only machines near this one can reach."""


class _PublicOnly(AbstractResolver):
    """Why in the resolver: looked up before, a name may lead elsewhere once it is connected to."""

    def __init__(self) -> None:
        self._inner = ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._inner.resolve(host, port, family)
        if any(not _is_public(each["host"]) for each in found):
            raise _PrivateAddress
        return found

    async def close(self) -> None:
        await self._inner.close()


def _is_public(address: str) -> bool:
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is not None:
            return _is_public(str(ip.ipv4_mapped))
        if ip not in _INTERNET or ip.sixtofour is not None:
            return False
    return ip.is_global and not ip.is_multicast


async def _fetch(url: str, etag: str | None, *, allow_private: bool) -> Fetched:
    connector = aiohttp.TCPConnector(resolver=None if allow_private else _PublicOnly())
    timeout = aiohttp.ClientTimeout(total=WITHIN_S)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout, trust_env=False) as session:
        for _ in range(REDIRECTS + 1):
            if not allow_private:
                _refuse_private(URL(url).host or "")  # as it is connected to: 127。0。0。1 is an address
            headers = {"Accept": "text/calendar, */*;q=0.5", "User-Agent": "Midwatch"}
            if etag:
                headers["If-None-Match"] = etag
            async with session.get(url, headers=headers, allow_redirects=False) as answer:
                if answer.status not in MOVED:
                    return await _content(answer, etag)
                url = calendar_url(urljoin(url, answer.headers.get("Location", "")))
    raise BadCalendar(f"more than {REDIRECTS} redirects")


def _refuse_private(host: str) -> None:
    """A host that is an address by itself is never looked up."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return
    if not _is_public(host):
        raise _PrivateAddress


async def _content(answer: aiohttp.ClientResponse, etag: str | None) -> Fetched:
    if answer.status == 304 and etag:
        return Fetched(None, etag)
    if answer.status != 200:
        raise BadCalendar(f"it answered {answer.status}")
    body = bytearray()
    async for chunk in answer.content.iter_chunked(64 * 1024):
        body += chunk
        if len(body) > LARGEST:
            raise BadCalendar(f"it is larger than {LARGEST // 1024 // 1024} MB")
    return Fetched(bytes(body), answer.headers.get("ETag"))
