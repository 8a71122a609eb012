// Navigation through the turns of a session: [ and ], jumps, and loading older turns on scroll.

import "./reading_place.js";

const transcript = document.getElementById("transcript");
const turns = () => [...document.querySelectorAll("[data-turn]")];
const isFiltered = ["role", "tool", "errors"].some((name) => new URLSearchParams(location.search).has(name));

function turnShow(turn) {
  for (const other of document.querySelectorAll(".turn.current")) other.classList.remove("current");
  turn.classList.add("current");
  turn.querySelector("h3 a")?.focus({ preventScroll: true }); // the notice of a missing turn has no link
  turn.scrollIntoView({ block: "start" });
}

// Scroll to the turn if it is on the page; otherwise load the page that contains it.
export function turnGo(index) {
  const turn = document.getElementById(`turn-${index}`);
  if (turn) {
    history.replaceState(history.state, "", `#turn-${index}`);
    turnShow(turn);
  } else location.assign(`?turn=${index}#turn-${index}`);
}

// The current turn is the first one that ends below the top of the window.
function turnCurrent() {
  const current = document.querySelector(".turn.current");
  const box = current?.getBoundingClientRect();
  if (box && box.bottom > 0 && box.top < innerHeight) return current;
  return turns().find((turn) => turn.getBoundingClientRect().bottom > 40);
}

function turnStep(step) {
  const turn = turnCurrent();
  if (!turn) return;
  const all = turns();
  const next = all[all.indexOf(turn) + step];
  const link = document.querySelector(step < 0 ? ".more-older" : ".more-newer");
  if (next) turnGo(next.dataset.turn);
  // A filter leaves out turns: only the server knows the next one.
  else if (link && isFiltered) window.htmx.trigger(link, "click");
  else if (link) turnGo(Number(turn.dataset.turn) + step);
}

document.addEventListener("keydown", (event) => {
  if (event.target.closest("input:not([type=checkbox]), select, textarea, dialog")) return;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "[") turnStep(-1);
  else if (event.key === "]") turnStep(1);
});

document.querySelector("[data-jump]")?.addEventListener("submit", (event) => {
  const index = Number.parseInt(new FormData(event.target).get("turn"), 10);
  event.preventDefault();
  if (index >= 0) turnGo(index);
});

// Load older turns when the user scrolls up to them, but not when the page opens.
let lastTop = scrollY;
addEventListener(
  "scroll",
  () => {
    const isUp = scrollY < lastTop;
    lastTop = scrollY;
    const older = isUp && transcript?.querySelector(".more-older:not(.htmx-request)");
    const box = older ? older.getBoundingClientRect() : null;
    if (box && box.bottom > 0 && box.top < innerHeight) window.htmx.trigger(older, "click");
  },
  { passive: true },
);

// Keep the scroll position when turns are inserted above, also in browsers without scroll anchoring.
let anchor = null;
document.addEventListener("htmx:beforeSwap", (event) => {
  const isOlder = event.target.classList?.contains("more-older");
  const turn = isOlder ? turns().find((other) => other.getBoundingClientRect().bottom > 0) : null;
  anchor = turn ? { turn, top: turn.getBoundingClientRect().top } : null;
});
document.addEventListener("htmx:afterSettle", () => {
  if (!anchor) return;
  const shift = anchor.turn.getBoundingClientRect().top - anchor.top;
  if (shift) scrollBy(0, shift);
  anchor = null;
});

// Focus the field of a new comment. Browsers ignore `autofocus` in loaded fragments.
document.addEventListener("htmx:load", ({ target }) => target.querySelector?.("[data-focus]")?.focus());
