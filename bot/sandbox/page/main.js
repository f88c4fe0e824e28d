// Puts the page together. Never draws: each part draws itself when its topic changes.

import { bar } from "./bar.js";
import { composer } from "./composer.js";
import { feed } from "./feed.js";
import { modals } from "./modal.js";
import { phones } from "./phones.js";
import { outageNotice, roomHead, threadPanel } from "./room.js";
import { sidebar } from "./sidebar.js";
import { store } from "./store.js";

const place = (id) => document.getElementById(id);

bar(place("bar"));
sidebar(place("side"));
roomHead(place("room-head"));
outageNotice(place("notice"));
feed(place("feed"));
const line = composer(place("composer"), { testid: "composer" });
threadPanel(place("thread"));
phones(place("phones"));
modals();

function drawTitle() {
  const places = store.state.channels.filter((channel) => !channel.is_im || channel.user === store.me);
  const unread = places.reduce(
    (sum, channel) => sum + (channel === store.channel ? 0 : store.unread(channel)),
    0,
  );
  document.title = `${unread ? `(${unread}) ` : ""}Midwatch sandbox`;
  place("composer").hidden = store.inDm && store.tab === "home";
}

store.on(["messages", "place", "me"], drawTitle);
store.on(["place"], () => matchMedia("(min-width: 1100px)").matches && line.focus());
place("scrim").addEventListener("click", () => document.body.classList.remove("side-open", "phones-open"));
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") document.body.classList.remove("side-open", "phones-open");
  const typing = event.target.closest("input, textarea, select, dialog");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    line.focus();
    place("composer").querySelector("textarea").setRangeText("/", 0, 0, "end");
  }
});

store.start();
