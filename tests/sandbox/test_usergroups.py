"""User groups and topics of the sandbox, through the real Slack client: Slack's rules and its errors."""

from __future__ import annotations

from collections.abc import Awaitable

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.sandbox.server import SandboxServer
from bot.sandbox.world import Options


async def refused(call: Awaitable[object]) -> str:
    with pytest.raises(SlackApiError) as caught:
        await call
    return str(caught.value.response["error"])


async def test_an_update_replaces_the_list_and_is_recorded(
    slack: AsyncWebClient, sandbox: SandboxServer
) -> None:
    """Who was in it and is not named is out of it; the ledger has the call."""
    await slack.usergroups_users_update(usergroup="S0PAYMENTS", users=["U0BEN", "U0CHO"])
    assert (await slack.usergroups_users_list(usergroup="S0PAYMENTS"))["users"] == ["U0BEN", "U0CHO"]
    (call,) = sandbox.ledger.calls("usergroups.users.update")
    assert (call.args["usergroup"], call.args["users"], call.error) == ("S0PAYMENTS", "U0BEN,U0CHO", None)


@pytest.mark.parametrize(
    ("group", "users", "error"),
    [
        ("S0PAYMENTS", "", "no_users_provided"),
        ("S0PAYMENTS", "U0GUS", "invalid_users"),
        ("S0PAYMENTS", "U0ANA,UMIDWATCH", "invalid_users"),
        ("S0PAYMENTS", "U0NOBODY", "invalid_users"),
        ("S0NOBODY", "U0ANA", "no_such_subteam"),
    ],
)
async def test_what_slack_refuses_changes_nothing(
    slack: AsyncWebClient, sandbox: SandboxServer, group: str, users: str, error: str
) -> None:
    """An empty list, a guest, a bot, a stranger, and a group that is not there."""
    assert await refused(slack.usergroups_users_update(usergroup=group, users=users)) == error
    assert sandbox.state.groups["S0PAYMENTS"]["users"] == ["U0ANA"]


async def test_a_free_plan_has_no_groups(slack: AsyncWebClient, sandbox: SandboxServer) -> None:
    """None of them, for reading either."""
    sandbox.state.paid = False
    assert await refused(slack.usergroups_list()) == "paid_teams_only"
    assert await refused(slack.usergroups_users_list(usergroup="S0PAYMENTS")) == "paid_teams_only"
    update = slack.usergroups_users_update(usergroup="S0PAYMENTS", users="U0ANA")
    assert await refused(update) == "paid_teams_only"


async def test_where_only_admins_edit_groups_an_app_may_read(
    slack: AsyncWebClient, sandbox: SandboxServer
) -> None:
    """And change nothing."""
    sandbox.state.only_admins_edit_groups = True
    assert (await slack.usergroups_list())["usergroups"][0]["handle"] == "payments-oncall"
    update = slack.usergroups_users_update(usergroup="S0PAYMENTS", users="U0BEN")
    assert await refused(update) == "permission_denied"


async def test_a_disabled_group_is_listed_on_demand_and_takes_nobody(slack: AsyncWebClient) -> None:
    """Until it is enabled again."""
    await slack.usergroups_disable(usergroup="S0PAYMENTS")
    assert (await slack.usergroups_list())["usergroups"] == []
    (group,) = (await slack.usergroups_list(include_disabled=True))["usergroups"]
    assert group["date_delete"] > 0
    update = slack.usergroups_users_update(usergroup="S0PAYMENTS", users="U0BEN")
    assert await refused(update) == "no_such_subteam"
    await slack.usergroups_enable(usergroup="S0PAYMENTS")
    await slack.usergroups_users_update(usergroup="S0PAYMENTS", users="U0BEN")


async def test_a_private_channels_topic_needs_a_scope_of_its_own() -> None:
    """groups:write.topic, which is not channels:manage; the error names it."""
    scopes = Options().scopes - {"groups:write.topic"}
    async with SandboxServer(options=Options(scopes=scopes)) as sandbox:
        client = AsyncWebClient(token="xoxb-demo", base_url=sandbox.api_url, retry_handlers=[])
        sandbox.state.channels["C0OPS"].private = True
        with pytest.raises(SlackApiError) as caught:
            await client.conversations_setTopic(channel="C0OPS", topic="hello")
        assert caught.value.response["error"] == "missing_scope"
        assert caught.value.response["needed"] == "groups:write.topic"
        await client.conversations_setTopic(channel="C0PAYMENTS", topic="hello")
        assert sandbox.state.channels["C0PAYMENTS"].topic == "hello"
