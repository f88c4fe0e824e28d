"""The Slack app manifest that is shipped with Midwatch: which commands, events and scopes it asks for.

Never talks to Slack; doctor compares what Slack granted with this.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

import yaml


@cache
def manifest() -> dict[str, Any]:
    """From the package, or from the checkout it is run from."""
    shipped = files("bot") / "manifest.yaml"
    source = shipped if shipped.is_file() else Path(__file__).parents[1] / "manifest.yaml"
    return cast(dict[str, Any], yaml.safe_load(source.read_text(encoding="utf-8")))


def scopes() -> frozenset[str]:
    return frozenset(manifest()["oauth_config"]["scopes"]["bot"])


def optional_scopes() -> frozenset[str]:
    """Without them a feature is off; without another, something that pages is."""
    return frozenset(manifest()["oauth_config"]["scopes"]["bot_optional"])
