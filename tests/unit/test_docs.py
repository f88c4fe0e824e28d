"""The docs say what is so: every setting, every command, every link, every example."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from bot.__main__ import app
from bot.commands.demo import first_alert
from bot.settings import FIELDS, OTHER_NAMES
from engine.config.form import Known
from engine.config.parse import parse_config

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_every_setting_is_described() -> None:
    """The configuration guide names each setting, and no other."""
    text = (ROOT / "docs/guides/configuration.md").read_text()
    described = set(re.findall(r"`((?:MIDWATCH|SLACK|TWILIO|SMTP)_[A-Z_]+)`", text))
    assert described == set(FIELDS) | OTHER_NAMES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """A relative link names a file that is there."""
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_commands_of_the_readme_exist() -> None:
    """Each `midwatch …` that README tells people to type is a command."""
    words = set(re.findall(r"^(?:\S*/)?midwatch ([a-z]+)", (ROOT / "README.md").read_text(), re.MULTILINE))
    assert words
    for word in words:
        assert word in app, word


def test_the_example_of_the_guide_can_be_applied() -> None:
    """The midwatch.yaml of the configuration guide has no mistake."""
    text = (ROOT / "docs/guides/configuration.md").read_text()
    example = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)[0]
    config = parse_config(example)
    assert set(config.people) == {"ana", "ben"}
    assert set(config.services) == {"checkout"}


def test_the_example_of_the_guide_to_schedules_can_be_applied() -> None:
    """The schedule of that guide has no mistake, for people who are known."""
    text = (ROOT / "docs/guides/schedules.md").read_text()
    example = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)[0]
    names = frozenset({"ana", "ben", "cho", "dan", "eve", "fay", "lead"})
    (form,) = parse_config(example, Known(people=names)).schedules.values()
    assert len(form.schedule.layers) == 2


def test_the_alertmanager_snippet_of_the_readme_is_yaml() -> None:
    """What README tells people to paste can be read."""
    snippet = re.findall(r"```yaml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[0]
    config = yaml.safe_load(snippet)
    assert config["receivers"][0]["name"] == config["route"]["receiver"]


def test_the_first_alert_is_the_same_everywhere() -> None:
    """README, the demo's lines and the page name one alert: who tries two of them sees one incident."""
    readme = (ROOT / "README.md").read_text()
    for line in first_alert("http://127.0.0.1:8080"):
        assert line in readme
    page = (ROOT / "bot/sandbox/page/welcome.js").read_text()
    said = json.loads(first_alert("")[1].removeprefix("  -d ").strip("'"))
    assert dict(re.findall(r'^  (\w+): "(.*)",$', page, re.MULTILINE)) == said
