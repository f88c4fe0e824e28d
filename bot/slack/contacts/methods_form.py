"""The form of one's contact methods: added, verified by their code, changed and removed, in one modal.

Always the own ones of whoever presses. Decides nothing: `engine.contacts` does.
"""

from __future__ import annotations

from typing import Any, Final

from bot.slack.contacts import methods_views as views
from bot.slack.contacts.me import METHODS_FORM
from bot.slack.contacts.overview import Overviews
from bot.slack.contacts.showing import named
from bot.slack.identity import Asker, actor_of
from bot.slack.modals.opening import HOME, About, Done, Json, View, Wrong
from bot.slack.modals.values import Values, many, text
from engine.contacts.contacts import Contacts
from engine.contacts.issuing import PHONES
from engine.directory import ContactMethod, Person
from engine.errors import BadInput, NotFound, Refused
from engine.models import Method

GONE: Final = "There is no such contact method any more."


class MethodsForm:
    """`about`: the screen `s`, the method `m` it is about, and `n`, which counts the codes sent from it."""

    name = METHODS_FORM

    def __init__(self, contacts: Contacts, overviews: Overviews) -> None:
        self._contacts = contacts
        self._overviews = overviews

    async def view(self, asker: Asker, about: About) -> View:
        person = await self._overviews.enrolled(asker)
        if about.get("s") == views.ADD:
            return views.adding(_kept(about))
        if about.get("s") == views.CODE:
            return await self._entering(person, int(about["m"]), about)
        return await self._listed(person, about)

    async def press(self, action: Json, values: Values, asker: Asker, about: About) -> View | None:
        person = await self._overviews.enrolled(asker)
        verb, which = str(action["action_id"]), str(action.get("value") or "")
        match verb:
            case "add":
                return views.adding(_kept(about))
            case "verify":
                if int(which) in await self._contacts.pending(person.id):
                    return await self._entering(person, int(which), about)
                return await self._sent(person, int(which), asker, about)
            case "resend" | "recall":
                return await self._sent(person, int(which), asker, about, by_call=verb == "recall")
            case "change":
                return views.changing(_own(person, int(which)), _kept(about))
            case "remove":
                return views.removing(_own(person, int(which)), person, _kept(about))
            case "back":
                return await self._listed(person, about)
        return None  # a choice was made, and nothing follows from it yet

    async def submit(self, values: Values, asker: Asker, about: About) -> View | Wrong | Done:
        """Errors stand at the field that they are about."""
        person = await self._overviews.enrolled(asker)
        screen = about.get("s")
        field = f"code:{int(about.get('n') or 0)}" if screen == views.CODE else "address"
        try:
            match screen:
                case views.ADD:
                    return await self._add(person, values, asker, about)
                case views.CODE:
                    done = await self._contacts.verify(
                        person.id, text(values, field), actor_of(person, asker), int(about["m"])
                    )
                    return await self._now(asker, about, f"✅ {named(done, clear=True)} is verified.")
                case views.CHANGE:
                    method = _own(person, int(about["m"]))
                    address = text(values, "address")
                    made = await self._contacts.change(method.id, address, actor_of(person, asker))
                    return await self._made(made, asker, about)
        except (BadInput, NotFound, Refused) as wrong:
            return Wrong({field: str(wrong).replace("`", '"')})
        return await self._remove(person, asker, about)

    async def _add(self, person: Person, values: Values, asker: Asker, about: About) -> View | Wrong:
        kind, by_call = Method(text(values, "kind")), bool(many(values, views.BY_CALL))
        if by_call and kind not in PHONES:
            return Wrong({views.BY_CALL: "Only a telephone number can be called."})
        made = await self._contacts.add(
            person.id, kind, text(values, "address"), actor_of(person, asker), by_call=by_call
        )
        return await self._made(made, asker, about)

    async def _made(self, made: ContactMethod, asker: Asker, about: About) -> View:
        if made.usable:
            said = f"✅ {named(made, clear=True)} is verified: it is a number that you have proved."
            return await self._now(asker, about, said)
        return await self._entering(await self._overviews.enrolled(asker), made.id, about)

    async def _sent(
        self, person: Person, method_id: int, asker: Asker, about: About, *, by_call: bool = False
    ) -> View:
        _own(person, method_id)
        await self._contacts.send_code(method_id, actor_of(person, asker), by_call=by_call)
        count = int(about.get("n") or 0) + 1
        return await self._entering(person, method_id, {**about, "n": count})

    async def _remove(self, person: Person, asker: Asker, about: About) -> View:
        method = _own(person, int(about["m"]))
        await self._contacts.remove(method.id, actor_of(person, asker))
        again = " midwatch.yaml names it: the next `midwatch apply` brings it back." if method.in_file else ""
        return await self._now(asker, about, f"🗑️ {named(method, clear=True)} is forgotten.{again}")

    async def _entering(self, person: Person, method_id: int, about: About) -> View:
        method = _own(person, method_id)
        if method.usable:
            return await self._listed(person, about, f"✅ {named(method, clear=True)} is verified already.")
        pending = (await self._contacts.pending(person.id)).get(method_id)
        return views.entering(method, pending, {**_kept(about), "n": int(about.get("n") or 0)})

    async def _now(self, asker: Asker, about: About, said: str) -> View:
        """All of them after something was changed."""
        return await self._listed(await self._overviews.enrolled(asker), about, said)

    async def _listed(self, person: Person, about: About, banner: str = "") -> View:
        pending, warnings = (
            await self._contacts.pending(person.id),
            await self._contacts.warnings(person.id),
        )
        return views.listed(person, pending, warnings, _kept(about), banner)


def _own(person: Person, method_id: int) -> ContactMethod:
    found = next((one for one in person.methods if one.id == method_id), None)
    if found is None:
        raise NotFound(GONE)
    return found


def _kept(about: About) -> dict[str, Any]:
    """Where it was opened goes along from screen to screen."""
    return {HOME: 1} if about.get(HOME) else {}
