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
    return COMMANDS.filter(([name]) => fits(name.slice(1))).map(([name, hint]) => ({
      insert: name,
      shown: [h("strong", {}, name), hint],
    }));
  if (word.startsWith("@"))
    return store.state.users
      .filter((user) => fits(user.name))
      .map((user) => ({
        insert: `@${user.name}`,
        shown: [avatar(user, "tiny"), h("strong", {}, user.name), user.real_name],
      }));
  if (word.startsWith("#"))
    return store.rooms
      .filter((room) => fits(room.name))
      .map((room) => ({ insert: `#${room.name}`, shown: [h("strong", {}, `#${room.name}`)] }));
  return [];
}

// Somebody whom an override would really put on call: whoever is next, else anybody else.
function another() {
  const { people, next } = store.onCall;
  const members = store.state.users.filter((user) => user.kind === "member" && !user.deleted);
  const others = [...next, ...members.filter((user) => user.id !== store.me).map((user) => user.name)];
  return others.find((name) => !people.includes(name)) ?? "ben";
}

function suggestions() {
  return ["/oncall", `/override @${another()} 2h`, `/oncall ack ${Math.max(1, ...store.firing)}`];
}

class Composer {
  found = []; // what may be meant by the word at the caret
  chosen = 0;
  history = [];
  back = 0;

  constructor(root, testid, thread) {
    this.thread = thread;
    this.id = `${testid}-list`;
    const named = { role: "listbox", id: this.id, "aria-label": "Suggestions" };
    this.list = h("div", { class: "complete", hidden: true, ...named });
    this.box = h("textarea", {
      class: "composer-box",
      rows: "1",
      "aria-label": "Message or command",
      autocomplete: "off",
      spellcheck: "false",
      "aria-controls": this.id,
      "aria-autocomplete": "list",
      data: { testid },
      oninput: () => this.suggest(),
      onblur: () => this.offer([]),
      onkeydown: (event) => this.key(event),
    });
    const send = { class: "send", type: "button", "aria-label": "Send", data: { testid: `${testid}-send` } };
    this.send = h("button", { ...send, onclick: () => this.submit() }, icon("send"));
    this.tips = h("div", { class: "chips", hidden: Boolean(thread) });
    fill(root, this.tips, h("div", { class: "composer-frame" }, this.list, this.box, this.send));
  }

  word() {
    const before = this.box.value.slice(0, this.box.selectionStart);
    const start = Math.max(before.lastIndexOf(" "), before.lastIndexOf("\n")) + 1;
    return { text: before.slice(start), start };
  }

  suggest() {
    const { text, start } = this.word();
    this.offer(/^[/@#]/.test(text) ? candidates(text, start).slice(0, 7) : []);
    this.box.style.height = "auto";
    this.box.style.height = `${Math.min(this.box.scrollHeight, 160)}px`;
  }

  offer(found) {
    this.found = found;
    this.show(0);
  }

  show(chosen) {
    this.chosen = chosen;
    this.list.hidden = !this.found.length;
    fill(
      this.list,
      this.found.map((each, index) => this.option(each, index)),
    );
    if (this.found.length) this.box.setAttribute("aria-activedescendant", `${this.id}-${chosen}`);
    else this.box.removeAttribute("aria-activedescendant");
  }

  option(each, index) {
    const props = {
      role: "option",
      id: `${this.id}-${index}`,
      "aria-selected": String(index === this.chosen),
    };
    const pick = (event) => this.pick(event, index);
    const shown = each.shown.map((part) => (typeof part === "string" ? h("span", {}, part) : part));
    return h("div", { class: "complete-item", ...props, onpointerdown: pick }, shown);
  }

  pick(event, index) {
    event.preventDefault();
    const { start } = this.word();
    this.box.setRangeText(`${this.found[index].insert} `, start, this.box.selectionStart, "end");
    this.suggest();
  }

  key(event) {
    if (event.isComposing || (this.found.length && this.choose(event))) return;
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      this.submit();
    } else if (event.key === "ArrowUp") this.recall(event, 1);
    else if (event.key === "ArrowDown" && this.back) this.recall(event, -1);
  }

  // Whether the key was one for the list of suggestions.
  choose(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      this.show((this.chosen + step + this.found.length) % this.found.length);
    } else if (event.key === "Tab" || event.key === "Enter") this.pick(event, this.chosen);
    else if (event.key === "Escape") {
      event.stopPropagation();
      this.offer([]);
    } else return false;
    return true;
  }

  recall(event, step) {
    if (this.box.value && this.box.value !== this.history[this.back - 1]) return;
    event.preventDefault();
    this.back = Math.max(0, Math.min(this.history.length, this.back + step));
    this.write(this.history[this.back - 1] ?? "");
    this.offer([]);
  }

  write(text) {
    this.box.value = text;
    this.box.setSelectionRange(text.length, text.length);
    this.suggest();
  }

  async submit() {
    const text = this.box.value.trim();
    const thread_ts = this.thread?.() ?? undefined;
    if (!text) return;
    if (thread_ts && text.startsWith("/")) {
      toast("Slack does not run commands in threads: write “@Midwatch ack” instead.");
      return;
    }
    this.history = [text, ...this.history.filter((each) => each !== text)].slice(0, 50);
    this.back = 0;
    this.write("");
    const command = { user: store.me, channel: store.channel?.id ?? store.place, text, thread_ts };
    const done = await during(this.send, () => api.command(command));
    store.refresh("oncall");
    if (!done && !this.box.value) this.write(text);
    if (done?.ok === false && !done.message) toast(`${text.split(" ")[0]} failed: ${done.error}`);
  }

  draw() {
    const where = store.inDm ? "Midwatch" : `#${store.channel?.name ?? ""}`;
    this.box.placeholder = this.thread
      ? "Reply, or @Midwatch ack"
      : `Message ${where}, or type / for commands`;
    const wanted = this.thread ? [] : suggestions();
    if (this.tips.dataset.sign === String(wanted)) return;
    this.tips.dataset.sign = String(wanted);
    fill(
      this.tips,
      wanted.map((text) => this.chip(text)),
    );
  }

  chip(text) {
    const take = () => {
      this.write(text);
      this.focus();
    };
    return h("button", { class: "chip", type: "button", onclick: take }, text);
  }

  focus() {
    this.box.focus();
  }
}

// `thread` answers the ts of the thread that is replied to; without it, this is the line of the channel.
export function composer(root, { testid, thread }) {
  const line = new Composer(root, testid, thread);
  store.on(["state", "place", "me", "messages", "oncall"], () => line.draw());
  return line;
}
