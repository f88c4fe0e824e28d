// The left edge: who one is, the channels and the direct messages, with dots where something is new.

import { avatar, fill, h, icon } from "./dom.js";
import { store } from "./store.js";
import { zoneName } from "./time.js";

const GROUPS = [
  ["member", "Members"],
  ["guest", "Guests"],
  ["stranger", "Another company"],
];

function switcher() {
  const people = store.state.users.filter((user) => user.kind !== "bot");
  const options = GROUPS.map(([kind, title]) => {
    const some = people.filter((user) => user.kind === kind);
    return (
      some.length &&
      h(
        "optgroup",
        { label: title },
        some.map((user) => h("option", { value: user.name, selected: user.id === store.me }, user.name)),
      )
    );
  });
  const select = h(
    "select",
    { id: "me", class: "me-select", data: { testid: "me" }, onchange: () => store.become(select.value) },
    options || null,
  );
  const user = store.user();
  return h(
    "div",
    { class: "me" },
    avatar(user),
    h(
      "div",
      { class: "me-who" },
      h("label", { for: "me" }, "You are"),
      select,
      h("span", { class: "me-about" }, user ? about(user) : ""),
    ),
    icon("chevron"),
  );
}

function about(user) {
  const zone = zoneName(store.now(), user.tz);
  return user.kind === "member" ? zone : `${user.kind}, ${zone}`;
}

function entry({ mark, name, testid, place, unread, faint, title }) {
  const current = store.place === place;
  return h(
    "li",
    {},
    h(
      "button",
      {
        class: `entry${unread ? " unread" : ""}${faint ? " faint" : ""}`,
        type: "button",
        title,
        "aria-current": current ? "page" : null,
        data: { testid },
        onclick: () => go(place),
      },
      mark,
      h("span", { class: "entry-name" }, name),
      unread
        ? h("span", { class: "dot", data: { testid: "unread" } }, h("span", { class: "sr" }, `${unread} new`))
        : null,
    ),
  );
}

function go(place) {
  store.open(place);
  document.body.classList.remove("side-open");
}

function channelEntry(room) {
  const outside = room.members?.length && !room.members.includes(store.me);
  return entry({
    mark: icon("hash"),
    name: room.name,
    testid: `channel-${room.name}`,
    place: room.id,
    unread: store.place === room.id ? 0 : store.unread(room),
    faint: outside || room.archived,
    title: room.archived ? "Archived" : outside ? "You are not a member" : room.topic || null,
  });
}

function dmEntry() {
  const bot = { kind: "bot", name: "Midwatch" };
  return entry({
    mark: avatar(bot, "tiny"),
    name: "Midwatch",
    testid: "dm-midwatch",
    place: "dm",
    unread: store.inDm || !store.dm ? 0 : store.unread(store.dm),
  });
}

export function sidebar(root) {
  const who = h("div", {});
  const rooms = h("ul", { class: "entries" });
  const direct = h("ul", { class: "entries" });
  const team = h("h1", { class: "team" });
  fill(
    root,
    h("div", { class: "side-head" }, team, who),
    h("h2", { class: "side-title" }, "Channels"),
    rooms,
    h("h2", { class: "side-title" }, "Direct messages"),
    direct,
  );
  let sign = "";

  function drawWho() {
    const next = JSON.stringify([store.me, store.state.users, store.state.team]);
    if (next === sign) return;
    sign = next;
    const focused = who.contains(document.activeElement);
    fill(team, store.state.team?.name || "Sandbox");
    fill(who, switcher());
    if (focused) who.querySelector("select").focus();
  }

  function drawEntries() {
    const focused = root.contains(document.activeElement) ? document.activeElement.dataset.testid : null;
    fill(rooms, store.rooms.map(channelEntry));
    fill(direct, dmEntry());
    if (focused) root.querySelector(`[data-testid="${CSS.escape(focused)}"]`)?.focus();
  }

  store.on(["state", "me"], drawWho);
  store.on(["state", "me", "place", "messages"], drawEntries);
}
