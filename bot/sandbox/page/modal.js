// The modal of whoever is looking: the newest view of their stack. Never says what is valid: Midwatch does.

import { api } from "./api.js";
import { blocks } from "./blocks.js";
import { during, toast } from "./dialog.js";
import { fill, h, icon } from "./dom.js";
import { plain } from "./mrkdwn.js";
import { store } from "./store.js";

const slot = (block, spec) => `${block.block_id ?? ""} ${spec.action_id ?? ""}`;

export function modals() {
  const dialog = h("dialog", { class: "modal", "aria-labelledby": "modal-title", data: { testid: "modal" } });
  document.body.append(dialog);
  let shown = null; // the view that is drawn
  let signature = "";
  let fields = new Map();
  let errors = {}; // what the last submit of this view was refused for

  function draw() {
    const view = store.views.modals.at(-1) ?? null;
    if (!view) {
      shown = null;
      signature = "";
      if (dialog.open) dialog.close();
      return;
    }
    const same = shown?.id === view.id;
    if (!same) errors = {};
    const next = JSON.stringify([view, errors, store.zone]);
    if (next === signature && dialog.open) return;
    signature = next;
    render(view, same);
  }

  // What was typed stays when Midwatch changes the view, as long as block and action keep their ids.
  function render(view, same) {
    const typed = same ? new Map([...fields].map(([key, field]) => [key, field.made.read()])) : new Map();
    const focus = same ? document.activeElement?.dataset.actionId : null;
    fields = new Map();
    shown = view;
    const surface = {
      errors: { ...view.errors, ...errors },
      act: (action) => click(view, action),
      kept: (block, spec) => typed.get(slot(block, spec)) ?? undefined,
      register: (block, spec, made) => fields.set(slot(block, spec), { block, spec, made }),
    };
    fill(dialog, h("form", { novalidate: true, onsubmit: (event) => submit(event, view) },
      h("header", { class: "modal-head" },
        h("h2", { class: "modal-title", id: "modal-title" }, plain(view.title?.text)),
        h("button", { class: "icon-button", type: "button", "aria-label": "Close", onclick: () => cancel() }, icon("close"))),
      h("div", { class: "modal-body" }, surface.errors[""] && h("p", { class: "form-error", role: "alert" }, surface.errors[""]), blocks(view.blocks, surface, store.context)),
      h("footer", { class: "modal-foot" },
        h("button", { class: "btn", type: "button", data: { testid: "modal-close" }, onclick: () => cancel() }, plain(view.close?.text ?? "Cancel")),
        view.submit && h("button", { class: "btn btn-primary", type: "submit", data: { testid: "modal-submit" } }, plain(view.submit.text)))));
    if (!dialog.open) dialog.showModal();
    settle(focus);
  }

  function settle(actionId) {
    const first = dialog.querySelector("[aria-invalid=true], [autofocus], .modal-body .field, .modal-body input");
    const again = actionId && dialog.querySelector(`[data-action-id="${CSS.escape(actionId)}"]`);
    (dialog.querySelector("[aria-invalid=true]") ? first : again || first)?.focus();
  }

  async function submit(event, view) {
    event.preventDefault();
    const button = dialog.querySelector("[type=submit]");
    const answer = await during(button, () => api.submit({ user: store.me, view_id: view.id, values: values() }));
    if (!answer) return;
    errors = answer.errors ?? {};
    draw();
    store.refresh("views");
  }

  function values() {
    const all = {};
    for (const { block, spec, made } of fields.values()) {
      all[block.block_id] ??= {};
      all[block.block_id][spec.action_id] = made.read();
    }
    return all;
  }

  async function click(view, action) {
    const answer = await api.click({ user: store.me, view_id: view.id, values: values(), ...action });
    if (answer.ok === false) toast(`That did not work: ${answer.error}`);
  }

  async function cancel() {
    const closed = shown;
    errors = {};
    await api.close({ user: store.me, view_id: closed?.id }).catch(() => {
      store.views = { ...store.views, modals: store.views.modals.filter((view) => view.id !== closed?.id) };
      store.tell("views");
    });
    store.refresh("views");
  }

  dialog.addEventListener("cancel", (event) => {
    event.preventDefault();
    cancel();
  });
  store.on(["views", "me"], draw);
}
