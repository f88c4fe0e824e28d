// The line one types in: commands, mentions, plain messages. Never interprets a command.

import { api } from "./api.js";
import { during, toast } from "./dialog.js";
import { avatar, fill, h, icon } from "./dom.js";
import { store } from "./store.js";

const COMMANDS = [
  ["/oncall", "who is on call; also ack 42, resolve 42, me, help"],
  ["/override", "@ben 2h: put somebody on call"],
  ["/page", "checkout Disk full on db-1: page a service or @person"],
  ["/incident", "list, show 42, new: incidents"],
];

function candidates(word, start) {
  const rest = word.slice(1).toLowerCase();
  const fits = (name) => name.toLowerCase().startsWith(rest) && name.toLowerCase() !== rest;
  if (word.startsWith("/") && start === 0)
    return COMMANDS.filter(([name]) => fits(name.slice(1))).map(([name, hint]) => ({ insert: name, shown: [h("strong", {}, name), hint] }));
  if (word.startsWith("@"))
    return store.state.users.filter((user) => fits(user.name))
      .map((user) => ({ insert: `@${user.name}`, shown: [avatar(user, "tiny"), h("strong", {}, user.name), user.real_name] }));
  if (word.startsWith("#")) return store.rooms.filter((room) => fits(room.name)).map((room) => ({ insert: `#${room.name}`, shown: [h("strong", {}, `#${room.name}`)] }));
  return [];
}

function lastNumber() {
  const said = store.list().map((each) => JSON.stringify([each.text, each.blocks, each.attachments]));
  return said.join(" ").match(/#(\d{1,9})\b/g)?.at(-1)?.slice(1) ?? "42";
}

function suggestions() {
  const other = store.state.users.find((user) => user.kind === "member" && user.id !== store.me);
  return ["/oncall", `/override @${other?.name ?? "ben"} 2h`, `/oncall ack ${lastNumber()}`];
}

// options: {thread: () => ts | null, testid, chips}
export function composer(root, { thread, testid, chips = false }) {
  const id = `${testid}-list`;
  const list = h("div", { class: "complete", role: "listbox", id, "aria-label": "Suggestions", hidden: true });
  const box = h("textarea", { class: "composer-box", rows: "1", "aria-label": "Message or command", autocomplete: "off", spellcheck: "false",
    "aria-controls": id, "aria-autocomplete": "list", data: { testid } });
  const send = h("button", { class: "send", type: "button", "aria-label": "Send", data: { testid: `${testid}-send` }, onclick: () => submit() }, icon("send"));
  const tips = h("div", { class: "chips", hidden: !chips });
  fill(root, tips, h("div", { class: "composer-frame" }, list, box, send));
  let found = [];
  let chosen = 0;
  let history = [];
  let back = 0;

  function word() {
    const before = box.value.slice(0, box.selectionStart);
    const start = Math.max(before.lastIndexOf(" "), before.lastIndexOf("\n")) + 1;
    return { text: before.slice(start), start };
  }

  function suggest() {
    const { text, start } = word();
    found = /^[/@#]/.test(text) ? candidates(text, start).slice(0, 7) : [];
    chosen = 0;
    show();
    box.style.height = "auto";
    box.style.height = `${Math.min(box.scrollHeight, 160)}px`;
  }

  function show() {
    list.hidden = !found.length;
    fill(list, found.map((each, index) => h("div", { class: "complete-item", role: "option", id: `${id}-${index}`,
      "aria-selected": String(index === chosen), onpointerdown: (event) => pick(event, index) }, each.shown.map((part) =>
      typeof part === "string" ? h("span", {}, part) : part))));
    if (found.length) box.setAttribute("aria-activedescendant", `${id}-${chosen}`);
    else box.removeAttribute("aria-activedescendant");
  }

  function pick(event, index) {
    event.preventDefault();
    const { start } = word();
    box.setRangeText(`${found[index].insert} `, start, box.selectionStart, "end");
    suggest();
  }

  async function submit() {
    const text = box.value.trim();
    if (!text) return;
    const channel = store.channel?.id ?? store.place;
    const thread_ts = thread?.() ?? undefined;
    if (thread_ts && text.startsWith("/")) {
      toast("Slack does not run commands in threads: write “@Midwatch ack” instead.");
      return;
    }
    history = [text, ...history.filter((each) => each !== text)].slice(0, 50);
    back = 0;
    write("");
    const done = await during(send, () => api.command({ user: store.me, channel, text, thread_ts }));
    if (!done && !box.value) write(text);
    if (done?.ok === false && !done.message) toast(`${text.split(" ")[0]} failed: ${done.error}`);
  }

  function write(text) {
    box.value = text;
    box.setSelectionRange(text.length, text.length);
    suggest();
  }

  function recall(event, step) {
    if (box.value && box.value !== history[back - 1]) return;
    event.preventDefault();
    back = Math.max(0, Math.min(history.length, back + step));
    write(history[back - 1] ?? "");
    found = [];
    show();
  }

  function choose(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      chosen = (chosen + step + found.length) % found.length;
      show();
    } else if (event.key === "Tab" || event.key === "Enter") pick(event, chosen);
    else if (event.key === "Escape") {
      event.stopPropagation();
      found = [];
      show();
    } else return false;
    return true;
  }

  box.addEventListener("input", suggest);
  box.addEventListener("blur", () => { list.hidden = true; });
  box.addEventListener("keydown", (event) => {
    if (event.isComposing || (found.length && choose(event))) return;
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      submit();
    } else if (event.key === "ArrowUp") recall(event, 1);
    else if (event.key === "ArrowDown" && back) recall(event, -1);
  });

  function draw() {
    const where = store.inDm ? "Midwatch" : `#${store.channel?.name ?? ""}`;
    box.placeholder = thread ? "Reply, or @Midwatch ack" : `Message ${where}, or type / for commands`;
    if (!chips) return;
    const wanted = suggestions();
    if (tips.dataset.sign === String(wanted)) return;
    tips.dataset.sign = String(wanted);
    fill(tips, wanted.map((text) => h("button", { class: "chip", type: "button", onclick: () => (write(text), box.focus()) }, text)));
  }

  store.on(["state", "place", "me", "messages"], draw);
  return { focus: () => box.focus() };
}
