// The command palette (Ctrl+K): finds pages, settings, sessions and turns by number, and searches messages.

import { element } from "./chart/format.js";
import { follow } from "./chart/place.js";
import { option, select, selected } from "./listbox.js";

const dialog = document.getElementById("palette");
const field = dialog.querySelector("input");
const list = dialog.querySelector("[role=listbox]");
const failure = dialog.querySelector("[role=alert]");
const MOST = 16;
const PAUSE = 150;  // milliseconds without input before the server is queried
let timer = null;

const named = (selector, kind) =>
  [...document.querySelectorAll(selector)].map((link) => ({ label: link.textContent.trim(), kind, href: link.href }));

function places() {
  return [
    ...named("nav[aria-label='Session'] a", "this session"),
    ...named("nav[aria-label='Main'] a", "page"),
    ...named(".top .menu:not(.menu-end) a", "project"),
    ...named("[data-row] .title", "session"),
  ];
}

// The URL of the current session, taken from its first tab.
const session = () => document.querySelector("nav[aria-label='Session'] a")?.href;
const sessions = () => document.querySelector("nav[aria-label='Main'] a")?.href;
const searching = () => document.querySelector("nav[aria-label='Main'] a[href$='/search/']")?.href;

function entries(typed) {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const found = places().filter(({ label, kind }) => words.every((word) => `${kind} ${label}`.toLowerCase().includes(word)));
  const turn = /^(?:turn\s*)?(\d{1,9})$/i.exec(typed.trim())?.[1];
  if (turn && session()) found.unshift({ label: `Turn ${turn}`, kind: "this session", href: `${session()}turns/${turn}/` });
  if (typed.trim() && searching()) {
    found.push({ label: `Search messages for “${typed.trim()}”`, kind: "search", href: `${searching()}?q=${encodeURIComponent(typed.trim())}` });
  }
  return found;
}

function placeItem({ label, within, kind, href }, index) {
  const name = element("span", "", label);
  if (within) name.append(" ", element("small", "within", within));
  const item = option(`palette-${index}`, [name, " ", element("small", "", kind)]);
  item.dataset.href = href;
  return item;
}

function show(found) {
  list.replaceChildren(...found.slice(0, MOST).map(placeItem));
  field.setAttribute("aria-activedescendant", "");
  select(field, list, 1);
}

// Insert what this page does not link to, messages too, before the last entry, the search.
async function find(typed) {
  const response = await fetch(`${sessions()}find/?q=${encodeURIComponent(typed)}`).catch(() => null);
  if (typed !== field.value.trim()) return;
  failure.hidden = Boolean(response?.ok);
  if (!response?.ok) return;
  const here = entries(field.value);
  const known = new Set(here.map(({ href }) => new URL(href).pathname));
  const { places: found } = await response.json();
  const others = found.filter(({ href, kind }) => kind === "message" || !known.has(href));
  if (others.length) show([...here.slice(0, -1).slice(0, MOST - 6), ...others, ...here.slice(-1)]);
}

function refresh() {
  clearTimeout(timer);
  failure.hidden = true;
  show(entries(field.value));
  const typed = field.value.trim();
  if (typed && sessions()) timer = setTimeout(find, PAUSE, typed);
}

function go(item, event) {
  if (!item) return;
  dialog.close();
  follow(item.dataset.href, event);
}

export function paletteOpen() {
  field.value = "";
  refresh();
  dialog.showModal();
  field.focus();
}

document.querySelector("[data-palette]")?.addEventListener("click", paletteOpen);
field.addEventListener("input", refresh);
field.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown") select(field, list, 1);
  else if (event.key === "ArrowUp") select(field, list, -1);
  else if (event.key === "Enter") go(selected(list), event);
  else return;
  event.preventDefault();
});
list.addEventListener("click", (event) => go(event.target.closest("li"), event));
document.addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
  event.preventDefault();
  if (!document.querySelector("dialog[open]")) paletteOpen();
});
