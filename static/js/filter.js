// Suggestions for the filter expression: a listbox below the field, operated with the arrow keys.

import { element } from "./chart/format.js";
import { option, select, selected } from "./listbox.js";

const field = document.querySelector("[data-suggest]");
const list = document.getElementById(field.getAttribute("aria-controls"));
const failure = document.getElementById("q-failure");
let timer = null;
let lastRequest = 0;

function close() {
  list.hidden = true;
  failure.hidden = true;
  field.setAttribute("aria-expanded", "false");
  field.removeAttribute("aria-activedescendant");
}

function suggestionItem({ text, label, hint }, index) {
  const item = option(`suggestion-${index}`, [element("b", "", label), element("small", "", hint)]);
  item.dataset.text = text;
  return item;
}

function show(suggestions) {
  list.replaceChildren(...suggestions.map(suggestionItem));
  list.hidden = !suggestions.length;
  field.setAttribute("aria-expanded", String(!list.hidden));
  field.removeAttribute("aria-activedescendant");
}

async function suggest() {
  const request = ++lastRequest;
  const address = `${field.dataset.suggest}?q=${encodeURIComponent(field.value)}`;
  const response = await fetch(address, { headers: { Accept: "application/json" } }).catch(() => null);
  // Ignore a response that newer input has outdated.
  if (request !== lastRequest || document.activeElement !== field) return;
  close();
  // After a logout, the response is the login page.
  failure.hidden = Boolean(response?.ok && !response.redirected);
  if (failure.hidden) show((await response.json()).suggestions);
}

function take(item) {
  field.value = item.dataset.text;
  close();
  field.focus();
  field.dispatchEvent(new Event("input", { bubbles: true }));
  // The term is complete: do not suggest the next one unasked.
  if (!field.value.endsWith(":")) clearTimeout(timer);
}

field.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(suggest, 120);
});
field.addEventListener("blur", () => setTimeout(close, 150));
field.addEventListener("keydown", (event) => {
  if (list.hidden) {
    if (event.key === "ArrowDown") suggest();
    else if (event.key === "Escape") failure.hidden = true;
    return;
  }
  const chosen = selected(list);
  if (event.key === "ArrowDown") select(field, list, 1);
  else if (event.key === "ArrowUp") select(field, list, -1);
  else if ((event.key === "Enter" || event.key === "Tab") && chosen) take(chosen);
  else if (event.key === "Escape") close();
  else return;
  event.preventDefault(); // Escape would also clear the field
  event.stopPropagation();
});
list.addEventListener("mousedown", (event) => {
  const item = event.target.closest("li");
  if (!item) return;
  event.preventDefault();
  take(item);
});

// The filter may have changed since the page was loaded: save the one in the current URL.
document.querySelector(".save-view form").addEventListener("submit", (event) => {
  event.target.elements.query.value = location.search.slice(1);
});
// The list already updates on input. A second request on change would race with whatever the user clicked to leave
// the field, such as a column heading or a saved view.
field.addEventListener("change", (event) => event.stopPropagation());
