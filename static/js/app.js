// Behavior shared by all pages: theme, local times, clipboard, keyboard, clean URLs. The parts are independent.

import "./drafts.js";
import "./focus.js";
import "./palette.js";
import "./requests.js";
import "./tips.js";
import "./zone.js";

const THEMES = ["auto", "light", "dark"];
const YEAR_SECONDS = 31_536_000;
const root = document.documentElement;

function themeApply(theme) {
  if (theme === "auto") delete root.dataset.theme;
  else root.dataset.theme = theme;
  // A cookie lets the server render the right theme from the first byte, without a flash.
  const age = theme === "auto" ? 0 : YEAR_SECONDS;
  document.cookie = `theme=${theme}; path=/; max-age=${age}; samesite=lax`;
  document.dispatchEvent(new CustomEvent("theme"));
}

for (const button of document.querySelectorAll("[data-theme-switch]")) {
  const label = button.querySelector("[data-theme-name]");
  button.addEventListener("click", () => {
    const next = THEMES[(THEMES.indexOf(label.textContent) + 1) % THEMES.length];
    label.textContent = next;
    themeApply(next);
  });
}
// Printing uses the light theme: redraw the charts before and after it.
for (const query of ["(prefers-color-scheme: dark)", "print"]) {
  matchMedia(query).addEventListener("change", () => document.dispatchEvent(new CustomEvent("theme")));
}

// The server renders times in UTC ("Feb 3, 2026, 14:05"). Convert them to the browser's time zone in the same
// format, so that the layout does not shift.
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const twoDigits = (number) => String(number).padStart(2, "0");
function timesLocalise(within) {
  for (const time of within.querySelectorAll("time[datetime]:not([data-local])")) {
    const at = new Date(time.dateTime);
    const day = `${MONTHS[at.getMonth()]} ${at.getDate()}, ${at.getFullYear()}`;
    time.textContent = `${day}, ${twoDigits(at.getHours())}:${twoDigits(at.getMinutes())}`;
    time.dataset.local = "";
  }
}
timesLocalise(document);
document.addEventListener("htmx:load", (event) => timesLocalise(event.target));

// Copy buttons copy the code next to them (data-copy), the text at a URL (data-copy-from), because what the page shows
// is shortened and formatted, or the page's address (data-copy-address). Browsers have no clipboard on insecure origins:
// keep the buttons hidden.
const COPY_BUTTONS = "[data-copy], [data-copy-from], [data-copy-address]";
function copyButtonsShow(within) {
  if (!navigator.clipboard) return;
  for (const button of within.querySelectorAll(COPY_BUTTONS)) {
    button.hidden = false;
    button.ariaLive = "polite"; // announces the result, which replaces the label
  }
}
copyButtonsShow(document);
document.addEventListener("htmx:load", (event) => copyButtonsShow(event.target));
async function textAt(address) {
  const response = await fetch(address);
  if (!response.ok) throw new Error(`HTTP ${response.status}`);
  const found = await response.blob();
  return found.slice(0, found.size, "text/plain");
}
async function copyStart(button) {
  if ("copyFrom" in button.dataset) {
    // The clipboard must be requested during the click: it takes a promise of the text.
    return navigator.clipboard.write([new ClipboardItem({ "text/plain": textAt(button.dataset.copyFrom) })]);
  }
  if ("copyAddress" in button.dataset) return navigator.clipboard.writeText(location.href.split("#")[0]);
  return navigator.clipboard.writeText(button.closest(".copyable").querySelector("code, pre").textContent);
}
document.addEventListener("click", async (event) => {
  const button = event.target.closest(COPY_BUTTONS);
  if (!button || "copying" in button.dataset) return; // it shows the previous result
  const label = button.innerHTML;
  button.dataset.copying = "";
  button.textContent = await copyStart(button).then(() => "Copied", () => "Copy failed");
  setTimeout(() => {
    button.innerHTML = label;
    delete button.dataset.copying;
  }, 1_500);
});

// A second click while the server is busy would send the form again, which could create a second API key. A repeated
// submission is allowed again after a response that keeps the page, or after some seconds. Buttons with data-download
// change nothing and keep the page. Capture runs before htmx sends the request.
const REPEAT_MS = 5_000;
const submitted = new WeakMap();
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post" || event.submitter?.matches("[data-download]")) return;
  const now = performance.now();
  if (now - submitted.get(form) < REPEAT_MS) {
    event.preventDefault();
    event.stopImmediatePropagation();
  } else submitted.set(form, now);
}, { capture: true });
document.addEventListener("htmx:afterRequest", (event) => submitted.delete(event.target));

// Scroll navigation bars that are wider than the screen to the current item.
for (const here of document.querySelectorAll("nav [aria-current]")) {
  const bar = here.closest("nav");
  bar.scrollLeft = here.offsetLeft - (bar.clientWidth - here.offsetWidth) / 2;
}

// Omit empty fields from URLs, and the CSRF token, which proxies would log.
document.addEventListener("htmx:configRequest", (event) => {
  if (event.detail.verb !== "get") return;
  for (const [name, value] of Object.entries(event.detail.parameters)) {
    if (value === "" || name === "csrfmiddlewaretoken") delete event.detail.parameters[name];
  }
});

// A request for the current URL, such as a filter submitted again, adds no entry to the history.
document.addEventListener("htmx:beforeHistoryUpdate", ({ detail: { history } }) => {
  if (new URL(history.path, location.href).href === location.href) history.type = "replace";
});

// Close open menus on an outside click and on Escape.
document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});
// Move the panel of a menu that would reach beyond the window.
document.addEventListener("toggle", (event) => {
  const panel = event.target.matches("details.menu[open]") && event.target.querySelector("summary + *");
  if (!panel) return;
  panel.style.translate = "";
  const { left, right } = panel.getBoundingClientRect();
  const margin = 8;
  const end = document.documentElement.clientWidth - margin;
  if (right > end) panel.style.translate = `${end - right}px`;
  else if (left < margin) panel.style.translate = `${margin - left}px`;
}, true);
document.addEventListener("keydown", (event) => {
  const menu = event.key === "Escape" && document.querySelector("details.menu[open]");
  if (!menu) return;
  menu.open = false;
  menu.querySelector("summary").focus();
});

// The links that j and k step through, and the rows that contain them.
const ROWS = "[data-row] .title, [data-turn] h3 a, [data-fact], .prompt-row > summary, .raw-row > summary";
const CONTAINERS = "[data-row], [data-turn], [data-fact], .prompt-row, .raw-row";

function rowStep(step) {
  const links = [...document.querySelectorAll(ROWS)];
  if (!links.length) return;
  const row = document.activeElement.closest(CONTAINERS);
  const at = links.findIndex((link) => row?.contains(link));
  const next = links[at < 0 ? (step > 0 ? 0 : links.length - 1) : at + step];
  next?.focus();
  next?.closest(CONTAINERS).scrollIntoView({ block: "nearest" });
}

const help = document.getElementById("keys");
const keysButton = document.querySelector("[data-keys]");
keysButton?.addEventListener("click", () => help.showModal());

const KEYS = {
  "/": () => document.querySelector("[data-search], [data-jump] input")?.focus(),
  "?": () => help.showModal(),
  j: () => rowStep(1),
  k: () => rowStep(-1),
};
document.addEventListener("keydown", (event) => {
  const field = event.target.closest("input:not([type=checkbox]), select, textarea");
  if (field && event.key === "Escape") {
    if (field.type === "search") event.preventDefault(); // would clear the field
    field.blur();
  }
  if (field || document.querySelector("dialog[open]") || event.ctrlKey || event.metaKey || event.altKey) return;
  const action = KEYS[event.key];
  if (!action) return;
  event.preventDefault();
  action();
});
