// The page of an active session updates itself: new turns, figures, chart and memory.

const PERIOD_MS = 5_000;
const button = document.querySelector("[data-live-switch]");
const state = () => document.getElementById("live");
const memory = document.querySelector(".memory");
let isPaused = false;
let known = state() && { ...state().dataset };

function poll() {
  const live = state();
  if (!live || isPaused || document.hidden || live.classList.contains("htmx-request")) return;
  window.htmx.trigger(live, "live");
}

// New turns follow the newest one on the page. A filtered or older part of the transcript stays unchanged.
function canAppend() {
  const query = new URLSearchParams(location.search);
  const isFiltered = ["role", "tool", "errors"].some((name) => query.has(name));
  return !isFiltered && document.getElementById("transcript") && !document.querySelector(".more-newer");
}

document.addEventListener("htmx:configRequest", ({ detail }) => {
  if (detail.elt.id !== "live") return;
  detail.parameters.since = detail.elt.dataset.since;
  if (memory) detail.parameters.tab = "memory";
  else if (canAppend()) detail.parameters.append = "1";
  if (new URLSearchParams(location.search).get("view") === "text") detail.parameters.view = "text";
});

// A form in which the user writes is not replaced.
function isEditing() {
  const field = document.activeElement?.closest(".memory input, .memory textarea, .memory select");
  return Boolean(field) || [...memory.querySelectorAll("textarea, input")].some((item) => item.value !== item.defaultValue);
}

function memoryReload() {
  window.htmx.ajax("GET", location.href, {
    source: memory,
    target: memory,
    swap: "innerHTML",
    select: ".memory > *",
    headers: { "HX-History-Restore-Request": "true" },
  });
}

function update() {
  const live = state();
  if (!live || live.dataset.since === known?.since) return;
  const isFirst = live.dataset.turns !== "0" && known.turns === "0";
  const hasNewMemory = live.dataset.memory !== known.memory;
  if (memory && hasNewMemory && isEditing()) return; // the next change tries again
  known = { ...live.dataset };
  if (isFirst && !memory) location.reload();
  document.querySelector("[data-live-status]").textContent = live.dataset.news ?? "";
  document.dispatchEvent(new CustomEvent("session-updated"));
  if (memory && hasNewMemory) memoryReload();
}

if (button && state()) {
  button.addEventListener("click", () => {
    isPaused = !isPaused;
    button.setAttribute("aria-pressed", String(!isPaused));
    button.querySelector("[data-live-label]").textContent = isPaused ? "Paused" : "Live";
    poll();
  });
  document.addEventListener("htmx:afterSettle", update);
  document.addEventListener("visibilitychange", poll);
  setInterval(poll, PERIOD_MS);
}
