"""Who is in the sandbox when it starts: four members, a guest, a stranger, three channels.

The names are fixed: the demo's configuration and the tests depend on them.
"""

from __future__ import annotations

from bot.sandbox.changes import Changes
from bot.sandbox.clock import SandboxClock
from bot.sandbox.phones import Exchange, Phone
from bot.sandbox.state import Channel, Team, User, Workspace

TEAM = Team("T0SANDBOX", "Sandbox", "sandbox", "UMIDWATCH", "B0MIDWATCH", "A0MIDWATCH")
OTHER_TEAM = "T0OTHER"

BOT_TOKEN = "xoxb-demo"  # noqa: S105  # opens nothing but the sandbox, and everybody is told it
APP_TOKEN = "xapp-demo"  # noqa: S105  # likewise
SIGNING_SECRET = "demo"  # noqa: S105  # likewise
AUTH_TOKEN = "demo"  # noqa: S105  # likewise
OUR_NUMBER = "+12025550100"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


COMMANDS = ("/oncall", "/override", "/page", "/incident")

SCOPES = _words(
    "app_mentions:read channels:history channels:join channels:manage channels:read chat:write "
    "chat:write.public commands dnd:read files:write groups:history groups:read groups:write.topic "
    "im:history im:read im:write reactions:read reactions:write team:read usergroups:read usergroups:write "
    "users:read users:read.email"
)

EVENTS = _words(
    "app_home_opened app_mention app_uninstalled tokens_revoked channel_archive channel_deleted"
    " channel_left channel_rename channel_unarchive group_archive group_left member_joined_channel"
    " message.im reaction_added reaction_removed subteam_updated user_change"
)

PHONES = {
    "+12025550143": "U0ANA",
    "+12025550144": "U0BEN",
    "+12025550145": "U0CHO",
    "+12025550146": "U0DEE",
}


def workspace(clock: SandboxClock, changes: Changes) -> Workspace:
    space = Workspace(TEAM, clock, changes)
    for user in _users():
        space.users[user.id] = user
    created = int(clock.now().timestamp())
    for channel_id, name in (("C0PAYMENTS", "payments"), ("C0GENERAL", "general"), ("C0OPS", "ops")):
        space.channels[channel_id] = Channel(channel_id, name, set(space.users), created=created)
    for user in space.users.values():
        if user.kind != "bot":
            space.direct(user.id)
    space.groups["S0PAYMENTS"] = {"id": "S0PAYMENTS", "handle": "payments-oncall", "users": ["U0ANA"]}
    return space


def exchange(our_number: str, changes: Changes) -> Exchange:
    phones = Exchange(our_number, changes)
    names = {user.id: user.name for user in _users()}
    for number, owner in PHONES.items():
        phones.phones[number] = Phone(number, owner, names[owner])
    return phones


def _users() -> list[User]:
    def member(user_id: str, name: str, tz: str, real_name: str, *, admin: bool = False) -> User:
        email = f"{name}@example.com"
        return User(user_id, name, real_name, tz, TEAM.id, email=email, admin=admin)

    return [
        member("U0ANA", "ana", "Europe/Berlin", "Ana Ferreira", admin=True),
        member("U0BEN", "ben", "America/New_York", "Ben Okafor"),
        member("U0CHO", "cho", "Asia/Tokyo", "Cho Tanaka"),
        member("U0DEE", "dee", "Europe/London", "Dee Walsh"),
        User("U0GUS", "gus", "Gus (guest)", "Europe/Paris", TEAM.id, "guest", "gus@example.net"),
        User("U0EVE", "eve", "Eve (other company)", "America/Chicago", OTHER_TEAM, "stranger"),
        User(TEAM.bot_user, "midwatch", "Midwatch", "UTC", TEAM.id, "bot"),
    ]
