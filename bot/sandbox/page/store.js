// What the page knows and who is looking. Never draws: it says which topic changed, and who draws listens.

import { api, listen } from "./api.js";
import { instant } from "./time.js";

const EMPTY = { team: {}, users: [], channels: [], faults: [], clock_offset_s: 0, midwatch: {} };

class Store extends EventTarget {
  state = EMPTY;
  ready = false;
  online = true;
  me = null; // user id
  place = null; // channel id, or "dm" as long as Midwatch has not opened one
  tab = "messages"; // or "home", in the DM
  thread = null; // ts of the message whose replies are shown
  messages = new Map(); // channel id -> messages as `me` sees them
  views = { modals: [], home: null };
  phones = [];
  onCall = { people: [], next: [] }; // names, as far as Midwatch says them
  advancing = null; // {from, seconds} while time moves
  #read = new Map(); // "user channel" -> newest ts that was looked at
  #loads = new Map();
  #clock = { at: Date.now(), since: performance.now() };

  on(topics, draw) {
    for (const topic of topics) this.addEventListener(topic, draw);
  }

  tell(...topics) {
    for (const topic of topics) this.dispatchEvent(new Event(topic));
  }

  async start() {
    this.#restore();
    await this.refresh("oncall"); // the page opens as whoever is paged
    listen(
      (changed) => this.#changed(changed),
      (online) => this.#connection(online),
    );
    await this.refresh("state");
  }

  now() {
    return this.#clock.at + (performance.now() - this.#clock.since);
  }

  user(id = this.me) {
    return this.state.users.find((user) => user.id === id);
  }

  get zone() {
    return this.user()?.tz || "UTC";
  }

  get dm() {
    return this.state.channels.find((channel) => channel.is_im && channel.user === this.me);
  }

  get rooms() {
    return this.state.channels.filter((channel) => !channel.is_im);
  }

  get channel() {
    return this.place === "dm" ? this.dm : this.state.channels.find((channel) => channel.id === this.place);
  }

  get inDm() {
    return this.place === "dm";
  }

  get context() {
    return {
      users: new Map(this.state.users.map((user) => [user.id, user])),
      channels: new Map(this.rooms.map((room) => [room.id, room])),
      me: this.me,
      zone: this.zone,
      now: this.now(),
      openChannel: (id) => this.open(id),
    };
  }

  fault(...targets) {
    return this.state.faults.find((fault) => targets.includes(fault.target) && fault.kind !== "none");
  }

  become(name) {
    const user = this.state.users.find((each) => each.name === name && each.kind !== "bot");
    if (!user || user.id === this.me) return;
    Object.assign(this, {
      me: user.id,
      thread: null,
      messages: new Map(),
      views: { modals: [], home: null },
    });
    this.#remember();
    this.tell("me", "state", "messages", "thread", "views", "phones");
    this.#everyChannel();
    this.refresh("views");
  }

  open(place) {
    Object.assign(this, { place, tab: "messages", thread: null });
    this.#remember();
    this.#look();
    this.tell("place", "messages", "thread");
  }

  openThread(ts) {
    this.thread = ts;
    this.tell("thread");
  }

  openTab(tab) {
    this.tab = tab;
    this.tell("place", "messages");
  }

  list(channel = this.channel) {
    return (channel && this.messages.get(channel.id)) ?? [];
  }

  unread(channel) {
    const seen = this.#read.get(`${this.me} ${channel?.id}`) ?? 0;
    return this.list(channel).filter(
      (each) => Number(each.ts) > seen && each.user !== this.me && !each.deleted,
    ).length;
  }

  // The numbers of the incidents that wait for somebody, as the cards that one can see say.
  get firing() {
    const shown = [...this.messages.values()].flat().filter((each) => !each.deleted);
    const cards = shown.map((each) => JSON.stringify([each.text, each.blocks, each.attachments]));
    return cards
      .filter((card) => card.includes('"incident_ack"'))
      .map((card) => Number(card.match(/#(\d{1,9})\b/)?.[1]))
      .filter(Boolean);
  }

  // A fetch that began before the change it is asked for is followed by another one. Never rejects: what could
  // not be read stays as it was, and is read again when the stream comes back.
  refresh(topic) {
    const load = this.#loads.get(topic) ?? { running: null, again: false };
    this.#loads.set(topic, load);
    if (load.running) {
      load.again = true;
      return load.running;
    }
    load.running = this.#load(topic)
      .catch((error) => this.#failed(topic, error))
      .then(() => {
        load.running = null;
        if (!load.again) return undefined;
        load.again = false;
        return this.refresh(topic);
      });
    return load.running;
  }

  #failed(topic, error) {
    if (error.status === 0) this.#connection(false);
    else console.error(`${topic}: ${error.message}`);
  }

  async #load(topic) {
    const [kind, id] = topic.split(":");
    if (kind === "state") return this.#tookState(await api.state());
    if (kind === "phones") this.phones = (await api.phones()).phones ?? [];
    else if (kind === "oncall") this.onCall = await api.onCall();
    else if (kind === "views") await this.#loadViews(this.me);
    else if (kind === "messages") await this.#loadMessages(id, this.me);
    return this.tell(kind);
  }

  async #loadViews(me) {
    const views = await api.views(me);
    if (me === this.me) this.views = { modals: views.modals ?? [], home: views.home ?? null };
  }

  async #loadMessages(channel, me) {
    const { messages = [] } = await api.messages(channel, me);
    if (me !== this.me) return;
    this.messages.set(channel, messages);
    this.#look();
  }

  #tookState(state) {
    const first = !this.ready;
    const rooms = new Set(this.state.channels.map((channel) => channel.id));
    this.state = { ...EMPTY, ...state };
    this.#clock = { at: instant(state.now), since: performance.now() };
    this.ready = true;
    if (!this.user()) this.me = this.#firstUser();
    if (this.place !== "dm" && !this.channel)
      this.place = this.rooms.find((room) => !room.archived)?.id ?? "dm";
    this.tell("state");
    if (first) return this.#changed(null);
    for (const channel of this.state.channels)
      if (!rooms.has(channel.id)) this.refresh(`messages:${channel.id}`);
    return undefined;
  }

  #firstUser() {
    const people = this.state.users.filter((user) => user.kind !== "bot");
    const named = (name) => people.find((user) => user.name === name);
    return (named(this.wanted) ?? named(this.onCall.people[0]) ?? people[0])?.id ?? null;
  }

  #everyChannel() {
    for (const channel of this.state.channels)
      if (!channel.is_im || channel.user === this.me) this.refresh(`messages:${channel.id}`);
  }

  #changed(topics) {
    if (topics === null) {
      if (!this.ready) return this.refresh("state");
      for (const topic of ["state", "views", "phones", "oncall"]) this.refresh(topic);
      return this.#everyChannel();
    }
    for (const topic of topics) {
      if (topic.startsWith("views:") && topic !== `views:${this.me}`) continue;
      const other =
        topic.startsWith("messages:") && this.state.channels.find((each) => topic.endsWith(each.id));
      if (other?.is_im && other.user !== this.me) continue;
      this.refresh(topic.startsWith("views") ? "views" : topic);
      if (topic === "state") this.refresh("oncall"); // time may have moved past a handoff
    }
    return undefined;
  }

  #connection(online) {
    this.online = online;
    this.tell("state");
  }

  #look() {
    const newest = this.list().at(-1);
    if (newest) this.#read.set(`${this.me} ${this.channel.id}`, Number(newest.ts));
  }

  #restore() {
    const kept = new URLSearchParams(location.hash.slice(1));
    this.wanted = kept.get("me");
    this.place = kept.get("in");
  }

  #remember() {
    history.replaceState(
      null,
      "",
      `#${new URLSearchParams({ me: this.user()?.name ?? "", in: this.place ?? "" })}`,
    );
  }
}

export const store = new Store();
