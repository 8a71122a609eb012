// Keep the fields of a form that is submitted after the login has expired: the login page leads back to the form, which
// is filled in again. `sessionStorage` has the fields of the submitted form until the response arrives.

import { element } from "./chart/format.js";

const LOGIN = "/login/";
const KEY = "draft";
// Not fields that may contain a secret; they have `autocomplete=off`.
const FIELDS = ":is(textarea, select, input:not([type=hidden], [type=password], [type=file]))[name]:not([autocomplete=off])";
// Several forms have the same action, for example those that change an item of the memory. Their hidden fields specify
// what they change, except for the values before the change (`was_…`).
const SUBJECT = "textarea[hidden], input[type=hidden]:not([name=csrfmiddlewaretoken], [name^=was_])";
const fieldsOf = (form) => [...form.querySelectorAll(FIELDS)].filter((field) => field.form === form && !field.hidden);
const isBox = ({ type }) => type === "checkbox" || type === "radio";
const identityOf = (form) =>
  JSON.stringify([
    form.getAttribute("action"),
    fieldsOf(form).map((field) => (isBox(field) ? [field.name, field.value] : field.name)),
    [...form.querySelectorAll(SUBJECT)].map(({ name, defaultValue }) => [name, defaultValue]),
  ]);

// What the user has entered into a field, and what the page had in it.
const entered = (field) => (isBox(field) ? field.checked : field.value);
function initial(field) {
  if (isBox(field)) return field.defaultChecked;
  if (field.type !== "select-one") return field.defaultValue;
  return ([...field.options].find((option) => option.defaultSelected) ?? field.options[0])?.value;
}
function enter(field, value) {
  if (isBox(field)) field.checked = value;
  else field.value = value;
}

function draftStore({ target: form }) {
  if (form.method !== "post" || location.pathname === LOGIN) return;
  // Another login in another tab has replaced the token of this page.
  const token = form.querySelector("[name=csrfmiddlewaretoken]");
  const cookie = document.cookie.split("; ").find((pair) => pair.startsWith("csrftoken="));
  if (token && cookie) token.value = cookie.split("=")[1];
  sessionStorage.removeItem(KEY);
  if (!fieldsOf(form).length) return;
  // Others may change the fields that the user has not changed.
  const values = fieldsOf(form).map((field) => (entered(field) === initial(field) ? null : entered(field)));
  const stored = { path: location.pathname, identity: identityOf(form), values };
  sessionStorage.setItem(KEY, JSON.stringify(stored));
}

let draft = null;
function draftTake() {
  const stored = JSON.parse(sessionStorage.getItem(KEY));
  if (location.pathname === LOGIN) {
    if (stored) say("You were logged out before the form was submitted. Log in to continue with it.");
    return;
  }
  sessionStorage.removeItem(KEY);
  const isBack = document.referrer && new URL(document.referrer).pathname === LOGIN;
  if (isBack && stored?.path === location.pathname) draft = stored;
}

function say(text) {
  const notice = element("p", "notice", text);
  notice.setAttribute("role", "status");
  document.getElementById("main").prepend(notice);
}

// Forms that are loaded later are restored then.
function draftRestore(within) {
  const forms = draft ? [...within.querySelectorAll("form[method=post]")] : [];
  const form = forms.find((each) => identityOf(each) === draft.identity);
  if (!form) return;
  const changed = [];
  for (const [index, field] of fieldsOf(form).entries()) {
    const value = draft.values[index];
    if (value === null || value === entered(field)) continue;
    enter(field, value);
    changed.push(field);
  }
  draft = null;
  say("You were logged out before the form was submitted. Check it and submit it again.");
  for (const field of changed) {
    for (let menu = field.closest("details"); menu; menu = menu.parentElement.closest("details")) menu.open = true;
    field.dispatchEvent(new Event("change", { bubbles: true })); // other parts of the page may depend on it
  }
  changed.at(0)?.focus();
}

draftTake();
draftRestore(document);
document.addEventListener("htmx:load", ({ target }) => draftRestore(target));
document.addEventListener("submit", draftStore, { capture: true });
// An expired login redirects instead.
document.addEventListener("htmx:afterSwap", ({ detail }) => {
  if (detail.requestConfig.verb === "post") sessionStorage.removeItem(KEY);
});
