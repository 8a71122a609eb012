// Keep the text of a form that is submitted after the login has expired: the login page leads back to the form, which
// shows the text again. `sessionStorage` has the text of the submitted form until the response arrives.

const LOGIN = "/login/";
const KEY = "draft";
// Not fields that may contain a secret; they have `autocomplete=off`.
const FIELDS = ":is(textarea, input:not([type]), input[type=text])[name]:not([autocomplete=off])";
// Several forms have the same action, for example those that change an item of the memory. Their hidden fields specify
// what they change, except for the values before the change (`was_…`).
const SUBJECT = "textarea[hidden], input[type=hidden]:not([name=csrfmiddlewaretoken], [name^=was_])";
const fieldsOf = (form) => [...form.querySelectorAll(FIELDS)].filter((field) => !field.hidden);
const identityOf = (form) =>
  JSON.stringify([
    form.getAttribute("action"),
    fieldsOf(form).map(({ name }) => name),
    [...form.querySelectorAll(SUBJECT)].map(({ name, defaultValue }) => [name, defaultValue]),
  ]);

function draftStore({ target: form }) {
  if (form.method !== "post" || location.pathname === LOGIN) return;
  // Another login in another tab has replaced the token of this page.
  const token = form.querySelector("[name=csrfmiddlewaretoken]");
  const cookie = document.cookie.split("; ").find((pair) => pair.startsWith("csrftoken="));
  if (token && cookie) token.value = cookie.split("=")[1];
  // Others may change the fields that the user has not changed.
  const values = fieldsOf(form).map(({ value, defaultValue }) => (value === defaultValue ? null : value));
  const stored = { path: location.pathname, identity: identityOf(form), values };
  sessionStorage.setItem(KEY, JSON.stringify(stored));
}

let draft = null;
function draftTake() {
  if (location.pathname === LOGIN) return;
  const stored = JSON.parse(sessionStorage.getItem(KEY));
  sessionStorage.removeItem(KEY);
  const isBack = document.referrer && new URL(document.referrer).pathname === LOGIN;
  if (isBack && stored?.path === location.pathname) draft = stored;
}

// Forms that are loaded later are restored then.
function draftRestore(within) {
  const forms = draft ? [...within.querySelectorAll("form[method=post]")] : [];
  const form = forms.find((each) => identityOf(each) === draft.identity);
  if (!form) return;
  for (const [index, field] of fieldsOf(form).entries()) {
    const value = draft.values[index];
    if (value === null || value === field.value) continue;
    field.value = value;
    for (let menu = field.closest("details"); menu; menu = menu.parentElement.closest("details")) menu.open = true;
    field.focus();
  }
  draft = null;
}

draftTake();
draftRestore(document);
document.addEventListener("htmx:load", ({ target }) => draftRestore(target));
document.addEventListener("submit", draftStore, { capture: true });
// An expired login redirects instead.
document.addEventListener("htmx:afterSwap", ({ detail }) => {
  if (detail.requestConfig.verb === "post") sessionStorage.removeItem(KEY);
});
