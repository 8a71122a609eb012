// Forms that are submitted after the login has expired: the login page leads back to the form, which shows the typed
// text again. The text of the last submitted form is stored in the browser's tab until the next page.

const LOGIN = "/login/";
const KEY = "draft";
const FIELDS = "textarea[name], input[name]:not([type]), input[name][type=text]";
const actionOf = (form) => form.getAttribute("action") ?? "";

function draftStore({ target: form }) {
  if (form.method !== "post" || location.pathname === LOGIN) return;
  // Another login in another tab has replaced the token of this page.
  const token = form.querySelector("[name=csrfmiddlewaretoken]");
  const cookie = document.cookie.split("; ").find((pair) => pair.startsWith("csrftoken="));
  if (token && cookie) token.value = cookie.split("=")[1];
  const values = [...form.querySelectorAll(FIELDS)].map(({ name, value }) => [name, value]);
  sessionStorage.setItem(KEY, JSON.stringify({ path: location.pathname, action: actionOf(form), values }));
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
  const form = forms.find((each) => actionOf(each) === draft.action);
  if (!form) return;
  for (const [index, field] of [...form.querySelectorAll(FIELDS)].entries()) {
    const [name, value] = draft.values[index] ?? [];
    if (name !== field.name || value === field.value) continue;
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
