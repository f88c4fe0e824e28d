"""The modal in which a schedule is made or edited: one view that changes between three screens.

What is typed is kept as a draft in the database, because sixty people do not fit into what Slack remembers.
Never saves over what somebody else saved meanwhile: it says so, keeps what was typed, and asks again.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from bot.slack import escape
from bot.slack.identity import Asker, Identity, actor_of
from bot.slack.modals import schedule_edits as edits
from bot.slack.modals import schedule_views as views
from bot.slack.modals.opening import About, Done, Json, View, Wrong
from bot.slack.modals.schedule_draft import Mistakes, ScheduleDraft
from bot.slack.modals.values import Values, many
from bot.slack.rota import schedule_text
from engine.clock import Clock
from engine.directory import Person
from engine.errors import NotFound, Overtaken
from engine.models import Actor
from engine.rota.drafts import Drafts
from engine.rota.roster import Roster
from engine.rota.schedules import Schedules, Wanted
from engine.schedule.diff import Changed
from engine.schedule.zones import zone_named
from engine.store.drafts import Draft

KEPT: Final = "What you typed is kept."


@dataclass(frozen=True, slots=True)
class Sitting:
    """Somebody at the form: who they are, and the draft as they see it."""

    person: Person
    actor: Actor
    kept: Draft
    draft: ScheduleDraft

    def now_with(self, draft: ScheduleDraft) -> Sitting:
        return replace(self, draft=draft)


class ScheduleForm:
    """`about` is the schedule's id or a name for a new one, later the draft, its revision and the screen."""

    name = "schedule"

    def __init__(
        self,
        clock: Clock,
        identity: Identity,
        roster: Roster,
        schedules: Schedules,
        drafts: Drafts,
    ) -> None:
        self._clock = clock
        self._identity = identity
        self._roster = roster
        self._schedules = schedules
        self._drafts = drafts

    async def view(self, asker: Asker, about: About) -> View:
        person = await self._identity.person(asker)
        if about.get("id"):
            draft = ScheduleDraft.of(await self._schedules.open(int(about["id"]), actor_of(person, asker)))
        else:
            name, now = str(about.get("new") or ""), self._clock.now()
            draft = ScheduleDraft.new(name, person.timezone, str(person.id), now)
        kept = await self._drafts.begin(person.id, self.name, draft.to_json())
        return views.whole(draft, await self._people(), _about(kept))

    async def press(self, action: Json, values: Values, asker: Asker, about: About) -> View | None:
        at, screen = await self._sitting(values, asker, about), str(about["s"])
        # Why not always: what was pressed before the press before it was shown may mean another row.
        if at.kept.rev == about["r"]:
            draft, after = await self._pressed(at.draft, action, screen)
            with suppress(Overtaken):
                return await self._screen(at.now_with(draft), after)
        kept = await self._drafts.read(at.person.id, at.kept.id)
        return await self._shown(ScheduleDraft.from_json(kept.body), screen, _about(kept))

    async def submit(self, values: Values, asker: Asker, about: About) -> View | Wrong | Done:
        at, screen = await self._sitting(values, asker, about), str(about["s"])
        if screen == views.REVIEW:
            return await self._save(at)
        if screen == views.MAIN:
            return await self._review(at)
        layer = at.draft.layer(screen)
        if layer is not None:
            try:
                layer.mapping()
            except Mistakes as wrong:
                return Wrong({f"{block}:{screen}": said for block, said in wrong.errors.items()})
        return await self._screen(at, views.MAIN)

    # --- what is typed and pressed

    async def _sitting(self, values: Values, asker: Asker, about: About) -> Sitting:
        """The draft with what the inputs of this screen hold now."""
        person = await self._identity.person(asker)
        kept = await self._drafts.read(person.id, int(about["d"]))
        draft = ScheduleDraft.from_json(kept.body)
        if about["s"] == views.MAIN:
            draft = edits.typed_whole(draft, values, await self._fallback(draft, values))
        elif (layer := draft.layer(str(about["s"]))) is not None:
            draft = draft.changed(edits.typed_layer(layer, values))
        return Sitting(person, actor_of(person, asker), kept, draft)

    async def _fallback(self, draft: ScheduleDraft, values: Values) -> str:
        chosen = many(values, "fallback")
        if chosen:
            return str((await self._identity.enlisted(chosen[0])).id)
        before = (await self._people()).get(int(draft.fallback)) if draft.fallback else None
        # Why: who is not in Slack cannot be shown as chosen, so nobody took them out.
        return draft.fallback if before is not None and before.slack_user_id is None else ""

    async def _pressed(self, draft: ScheduleDraft, action: Json, screen: str) -> tuple[ScheduleDraft, str]:
        """The draft and the screen after a press."""
        verb, _, which = str(action["action_id"]).partition(":")
        match verb:
            case "edit":
                return draft, which
            case "add_layer":
                zone = draft.timezone if zone_named(draft.timezone) else "UTC"
                draft = draft.with_layer(zone, self._clock.now())
                return draft, draft.layers[-1].key
            case "layer_up" | "layer_down":
                return draft.moved(screen, -1 if verb == "layer_up" else 1), views.MAIN
            case "layer_remove":
                return draft.without(screen), views.MAIN
        layer = draft.layer(screen)
        if layer is None:
            return draft, views.MAIN
        if verb == "add_person":
            person = await self._identity.enlisted(str(action["selected_user"]))
            return draft.changed(edits.with_person(layer, person.id)), screen
        return draft.changed(edits.with_entry(layer, str(action["selected_option"]["value"]))), screen

    # --- what is shown and saved

    async def _kept(self, at: Sitting) -> About:
        """Keep the draft; what the view must remember of it."""
        return _about(await self._drafts.keep(at.person.id, at.kept, at.draft.to_json()))

    async def _screen(self, at: Sitting, screen: str, banner: str = "") -> View:
        return await self._shown(at.draft, screen, await self._kept(at), banner)

    async def _shown(self, draft: ScheduleDraft, screen: str, about: About, banner: str = "") -> View:
        people, layer = await self._people(), draft.layer(screen)
        if layer is not None:
            return views.one_layer(draft, layer, people, about, banner)
        return views.whole(draft, people, about, banner)

    async def _review(self, at: Sitting) -> View | Wrong:
        try:
            wanted = at.draft.schedule()
        except Mistakes as wrong:
            return await self._wrong(at, wrong)
        draft, said = await self._caught_up(at)
        people = await self._people()
        if draft.schedule_id is None:
            lines = schedule_text.first_lines(wanted, people, self._clock.now())
        else:
            changes = await self._schedules.preview(draft.schedule_id, wanted)
            lines = schedule_text.change_lines(changes, wanted, people)
        about = await self._kept(at.now_with(draft))
        return views.review(draft, lines, about, said)

    async def _wrong(self, at: Sitting, wrong: Mistakes) -> View | Wrong:
        """At its input where it has one; what is wrong with a layer stands above all."""
        errors = dict(wrong.errors)
        layers = errors.pop("layers", "")
        return Wrong(errors) if errors else await self._screen(at, views.MAIN, escape.line(layers, 500))

    async def _caught_up(self, at: Sitting) -> tuple[ScheduleDraft, str]:
        """The draft upon what is there now, and a sentence when that is not what it began with."""
        draft = at.draft
        if draft.schedule_id is None:
            return draft, ""
        try:
            current = await self._schedules.open(draft.schedule_id, at.actor)
        except NotFound as gone:
            said = f"{escape.line(str(gone), 200)} {KEPT} Saving makes the schedule anew."
            return replace(draft, schedule_id=None, version_id=None), said
        if current.version_id == draft.version_id:
            return draft, ""
        who, when = escape.line(current.changed_by, 60), escape.time_of_day(current.changed_at)
        said = f"*{who}* changed this schedule at {when}, while you were editing it. {KEPT} "
        return replace(draft, version_id=current.version_id), f"{said}Saving puts yours in place of theirs."

    async def _save(self, at: Sitting) -> View | Wrong | Done:
        draft, said = await self._caught_up(at)
        if said:
            return await self._review(at)
        wanted = Wanted(draft.schedule(), draft.channel or None)
        changes: list[Changed] | None = None
        if draft.schedule_id is None or draft.version_id is None:
            await self._schedules.create(draft.name, wanted, at.actor)
        else:
            changes = await self._schedules.edit(draft.schedule_id, draft.version_id, wanted, at.actor)
        await self._drafts.drop(at.person.id, at.kept.id)
        return Done(schedule_text.saved(draft.name, changes))

    async def _people(self) -> Mapping[int, Person]:
        return (await self._roster.directory()).people


def _about(kept: Draft) -> About:
    return {"d": kept.id, "r": kept.rev}
