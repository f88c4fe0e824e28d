"""What a person typed, as Slack passes it on: escaped, with mentions, channels and links marked.

Understands "@ben", "#payments", "@here" and web addresses, and the marked form of each, since a
script may write it at once; everything else stays as it was typed.
"""

from __future__ import annotations

import re

from bot.sandbox.state import Channel, User, Workspace

BROADCASTS = ("here", "channel", "everyone")
TOKEN = re.compile(
    r"<(?P<sigil>[@#])(?P<id>[A-Z0-9]+)(?:\|[^<>|]*)?>"
    r"|<(?P<special>![^<>]+|https?://[^<>\s]+)>"
    r"|(?P<url>https?://[^\s<>|]+)"
    r"|(?<![\w@#/.])(?P<mark>[@#])(?P<name>[\w.-]+)"
)


def as_slack_text(space: Workspace, text: str, *, labels: bool) -> str:
    """`labels`: a slash command gets `<@U0BEN|ben>`, a message gets `<@U0BEN>`."""
    parts, end = [], 0
    for match in TOKEN.finditer(text):
        parts += [_escaped(text[end : match.start()]), _marked(space, match, labels=labels)]
        end = match.end()
    return "".join([*parts, _escaped(text[end:])])


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _marked(space: Workspace, match: re.Match[str], *, labels: bool) -> str:
    if match["special"]:
        return match[0]
    if match["url"]:
        return f"<{_escaped(match['url'])}>"
    if match["sigil"]:
        known = (space.users if match["sigil"] == "@" else space.channels).get(match["id"])
        return _escaped(match[0]) if known is None else _mention(known, labels=labels)
    bare = match["name"].rstrip(".-")
    rest = match["name"][len(bare) :]
    found = _named(space, match["mark"], bare, labels=labels)
    return _escaped(match[0]) if found is None else found + rest


def _named(space: Workspace, mark: str, name: str, *, labels: bool) -> str | None:
    if mark == "#":
        channel = space.find_channel(f"#{name}")
        return _mention(channel, labels=labels) if channel else None
    if name.lower() in BROADCASTS:
        return f"<!{name.lower()}>"
    if (user := space.find_user(f"@{name}")) is not None:
        return _mention(user, labels=labels)
    group = next((g for g in space.groups.values() if g["handle"].lower() == name.lower()), None)
    return f"<!subteam^{group['id']}|@{group['handle']}>" if group else None


def _mention(known: User | Channel, *, labels: bool) -> str:
    if isinstance(known, Channel):
        return f"<#{known.id}|{known.name}>"
    return f"<@{known.id}|{known.name}>" if labels else f"<@{known.id}>"
