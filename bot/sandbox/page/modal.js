// The modal of whoever is looking: the newest view of their stack. Never says what is valid: Midwatch does.

import { api } from "./api.js";
import { blocks } from "./blocks.js";
import { during, toast } from "./dialog.js";
import { fill, h, icon } from "./dom.js";
import { plain } from "./mrkdwn.js";
import { store } from "./store.js";

const slot = (block, spec) => `${block.block_id ?? ""} ${spec.action_id ?? ""}`;

class Modal {
  view = null; // the one that is drawn
  signature = "";
  fields = new Map();
  errors = {}; // what its last submit was refused for

  constructor() {
    this.dialog = h("dialog", {
      class: "modal",
      "aria-labelledby": "modal-title",
      data: { testid: "modal" },
    });
    this.dialog.addEventListener("cancel", (event) => {
      event.preventDefault(); // Escape: Midwatch hears of it first
      this.cancel();
    });
    document.body.append(this.dialog);
  }

  draw() {
    const view = store.views.modals.at(-1);
    if (!view) return this.leave();
    const same = this.view?.id === view.id;
    if (!same) this.errors = {};
    const signature = JSON.stringify([view, this.errors, store.zone]);
    if (signature === this.signature && this.dialog.open) return undefined;
    this.signature = signature;
    return this.render(view, same);
  }

  leave() {
    this.view = null;
    this.signature = "";
    if (this.dialog.open) this.dialog.close();
  }

  // What was typed stays when Midwatch changes the view, as long as block and action keep their ids.
  render(view, same) {
    const typed = new Map(same ? [...this.fields].map(([key, field]) => [key, field.made.read()]) : []);
    const focus = same ? document.activeElement?.dataset.actionId : null;
    const surface = {
      errors: { ...view.errors, ...this.errors },
      act: (action) => this.click(action),
      kept: (block, spec) => typed.get(slot(block, spec)) ?? undefined,
      register: (block, spec, made) => this.fields.set(slot(block, spec), { block, spec, made }),
    };
    this.fields = new Map();
    this.view = view;
    const form = h("form", { novalidate: true, onsubmit: (event) => this.submit(event) });
    fill(form, this.head(), this.body(surface), this.foot());
    fill(this.dialog, form);
    if (!this.dialog.open) this.dialog.showModal();
    this.settle(focus);
  }

  head() {
    const close = {
      class: "icon-button",
      type: "button",
      "aria-label": "Close",
      onclick: () => this.cancel(),
    };
    return h(
      "header",
      { class: "modal-head" },
      h("h2", { class: "modal-title", id: "modal-title" }, plain(this.view.title?.text)),
      h("button", close, icon("close")),
    );
  }

  body(surface) {
    const whole = surface.errors[""]; // of no field: the app did not answer
    return h(
      "div",
      { class: "modal-body" },
      whole && h("p", { class: "form-error", role: "alert" }, whole),
      blocks(this.view.blocks, surface, store.context),
    );
  }

  foot() {
    const { close, submit } = this.view;
    const cancel = {
      class: "btn",
      type: "button",
      data: { testid: "modal-close" },
      onclick: () => this.cancel(),
    };
    const send = { class: "btn btn-primary", type: "submit", data: { testid: "modal-submit" } };
    return h(
      "footer",
      { class: "modal-foot" },
      h("button", cancel, plain(close?.text ?? "Cancel")),
      submit && h("button", send, plain(submit.text)),
    );
  }

  settle(actionId) {
    const find = (selector) => this.dialog.querySelector(selector);
    const again = actionId && find(`[data-action-id="${CSS.escape(actionId)}"]`);
    const first = find("[autofocus], .modal-body .field, .modal-body input");
    (find("[aria-invalid=true]") ?? (again || first))?.focus();
  }

  values() {
    const all = {};
    for (const { block, spec, made } of this.fields.values())
      (all[block.block_id] ??= {})[spec.action_id] = made.read();
    return all;
  }

  async click(action) {
    const answer = await api.click({ ...this.whose(), values: this.values(), ...action });
    if (answer.ok === false) toast(`That did not work: ${answer.error}`);
  }

  async submit(event) {
    event.preventDefault();
    const button = this.dialog.querySelector("[type=submit]");
    const answer = await during(button, () => api.submit({ ...this.whose(), values: this.values() }));
    if (!answer) return;
    this.errors = answer.errors ?? {};
    this.draw();
    store.refresh("views");
  }

  async cancel() {
    this.errors = {};
    await during(null, () => api.close(this.whose()));
    store.refresh("views");
  }

  whose() {
    return { user: store.me, view_id: this.view?.id };
  }
}

export function modals() {
  const modal = new Modal();
  store.on(["views", "me"], () => modal.draw());
}
