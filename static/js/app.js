// What every page does: theme, local times, keyboard, tidy addresses. Each works without the others.

import "./palette.js";

const THEMES = ["auto", "light", "dark"];
const YEAR_SECONDS = 31_536_000;
const root = document.documentElement;

function themeApply(theme) {
  if (theme === "auto") delete root.dataset.theme;
  else root.dataset.theme = theme;
  // A cookie, so that the server names the theme in the page's first byte and nothing flashes.
  const age = theme === "auto" ? 0 : YEAR_SECONDS;
  document.cookie = `theme=${theme}; path=/; max-age=${age}; samesite=lax`;
  document.dispatchEvent(new CustomEvent("theme"));
}

for (const button of document.querySelectorAll("[data-theme-switch]")) {
  const label = button.querySelector("[data-theme-name]");
  label.textContent = root.dataset.theme ?? "auto";
  button.hidden = false;
  button.addEventListener("click", () => {
    const next = THEMES[(THEMES.indexOf(label.textContent) + 1) % THEMES.length];
    label.textContent = next;
    themeApply(next);
  });
}
// Paper is light: charts are drawn anew for it, and back.
for (const query of ["(prefers-color-scheme: dark)", "print"]) {
  matchMedia(query).addEventListener("change", () => document.dispatchEvent(new CustomEvent("theme")));
}

// Times come in UTC, `2026-02-03 14:05`, and are shown in the viewer's zone in the same form: no jump.
const two = (number) => String(number).padStart(2, "0");
function timesLocalise(within) {
  for (const time of within.querySelectorAll("time[datetime]:not([data-local])")) {
    const at = new Date(time.dateTime);
    const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
    time.textContent = `${day} ${two(at.getHours())}:${two(at.getMinutes())}`;
    time.dataset.local = "";
  }
}
timesLocalise(document);
document.addEventListener("htmx:load", (event) => timesLocalise(event.target));

// Copying: the code that stands with the button. Without a secure address there is no clipboard, and no button.
function copyButtonsShow(within) {
  if (!navigator.clipboard) return;
  for (const button of within.querySelectorAll("[data-copy]")) button.hidden = false;
}
copyButtonsShow(document);
document.addEventListener("htmx:load", (event) => copyButtonsShow(event.target));
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const label = button.innerHTML;
  const code = button.closest(".copyable").querySelector("code, pre");
  button.textContent = await navigator.clipboard.writeText(code.textContent).then(() => "Copied", () => "Not copied");
  setTimeout(() => { button.innerHTML = label; }, 1_500);
});

// What cannot be taken back is asked for once more, also where htmx would send it.
document.addEventListener("submit", (event) => {
  const question = event.target.dataset.confirm;
  if (!question || window.confirm(question)) return;
  event.preventDefault();
  event.stopImmediatePropagation();
}, { capture: true });

// Bars that are wider than a phone begin where the reader is.
for (const here of document.querySelectorAll("nav [aria-current]")) {
  const bar = here.closest("nav");
  bar.scrollLeft = here.offsetLeft - (bar.clientWidth - here.offsetWidth) / 2;
}

// Empty fields would only lengthen the address.
document.addEventListener("htmx:configRequest", (event) => {
  if (event.detail.verb !== "get") return;
  for (const [name, value] of Object.entries(event.detail.parameters)) {
    if (value === "") delete event.detail.parameters[name];
  }
});

// A menu closes when its work is done elsewhere.
document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});
document.addEventListener("keydown", (event) => {
  const menu = event.key === "Escape" && document.querySelector("details.menu[open]");
  if (!menu) return;
  menu.open = false;
  menu.querySelector("summary").focus();
});

// What j and k step through, and what each stands in.
const ROWS = "[data-row] .title, [data-turn] h3 a, [data-fact], .seen-row > summary, .raw-row > summary";
const HOLDERS = "[data-row], [data-turn], [data-fact], .seen-row, .raw-row";

function rowStep(step) {
  const links = [...document.querySelectorAll(ROWS)];
  if (!links.length) return;
  const row = document.activeElement.closest(HOLDERS);
  const at = links.findIndex((link) => row?.contains(link));
  const next = links[at < 0 ? (step > 0 ? 0 : links.length - 1) : at + step];
  next?.focus();
  next?.closest(HOLDERS).scrollIntoView({ block: "nearest" });
}

const help = document.getElementById("keys");
const keysButton = document.querySelector("[data-keys]");
if (keysButton) keysButton.hidden = false;
keysButton?.addEventListener("click", () => help.showModal());

const KEYS = {
  "/": () => document.querySelector("[data-search], [data-jump] input")?.focus(),
  "?": () => help.showModal(),
  j: () => rowStep(1),
  k: () => rowStep(-1),
};
document.addEventListener("keydown", (event) => {
  const field = event.target.closest("input, select, textarea");
  if (field && event.key === "Escape") field.blur();
  if (field || document.querySelector("dialog[open]") || event.ctrlKey || event.metaKey || event.altKey) return;
  const action = KEYS[event.key];
  if (!action) return;
  event.preventDefault();
  action();
});
