// Back, Forward and reloads return to the turn that was being read. The browser restores a distance from the top only,
// but turns that were loaded later are missing from the page.

const PAUSE_MS = 150;
const turns = () => [...document.querySelectorAll("[data-turn]")];
let timer = null;

// The first turn that reaches below the top of the window, and its distance from the top; null above the transcript.
function place() {
  const shown = turns().find((turn) => turn.getBoundingClientRect().bottom > 0);
  const top = shown?.getBoundingClientRect().top;
  return top < innerHeight / 2 ? { turn: Number(shown.dataset.turn), top } : null;
}

// The turns that a reload would show: the ones around a turn, if any of them is not on the page.
function addressOf(reading, first) {
  const isServed = first.some((turn) => turn === reading?.turn);
  if (!reading || isServed) return location.href;
  const url = new URL(location.href);
  for (const name of ["message", "find", "before", "after"]) url.searchParams.delete(name);
  url.searchParams.set("turn", reading.turn);
  url.hash = `turn-${reading.turn}`;
  return url.href;
}

function restore(reading) {
  const turn = document.getElementById(`turn-${reading?.turn}`);
  if (turn) scrollBy({ top: turn.getBoundingClientRect().top - reading.top, behavior: "instant" });
}

if (turns().length) {
  let served = turns().map((turn) => Number(turn.dataset.turn));
  const keep = () => {
    clearTimeout(timer);
    const reading = place();
    const address = addressOf(reading, served);
    if (address !== location.href) served = [reading.turn];
    history.scrollRestoration = reading ? "manual" : "auto";
    history.replaceState({ ...history.state, reading }, "", address);
  };
  const kept = history.state?.reading;
  restore(kept);
  // The browser may still scroll to the fragment of the URL until the page is loaded.
  if (kept) addEventListener("load", () => restore(kept), { once: true });
  addEventListener("scroll", () => {
    clearTimeout(timer);
    timer = setTimeout(keep, PAUSE_MS);
  }, { passive: true });
  // A link may be followed before the pause ends.
  document.addEventListener("click", keep, { capture: true });
  addEventListener("popstate", ({ state }) => restore(state?.reading));
}
