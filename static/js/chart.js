// Prompt size per turn: loads the data (downsampled by the server), switches and zoom.

import { colours, element, exact } from "./chart/format.js";
import { legend } from "./chart/legend.js";
import { canPrice, canStack, HEIGHT, lastSize, plotMake } from "./chart/plot.js";
import { fetchJson, follow, followWidth, plotPlace } from "./chart/place.js";
import { near } from "./chart/tip.js";

// The chart of an active session is loaded again at most this often.
const REFRESH_MS = 15_000;

const fetchData = (host, query = {}) => fetchJson(`${host.dataset.chart}?${new URLSearchParams(query)}`);

// Add the tokens by tool, which are loaded when they are first shown, to the turns that are drawn.
async function addTools(host, data) {
  const range = { from: data.turns[0], to: data.turns.at(-1) };
  const found = await fetchData(host, { ...range, tools: 1 });
  const places = new Map(found.turns.map((turn, index) => [turn, index]));
  const aligned = (column) => data.turns.map((turn) => column[places.get(turn)] ?? null);
  data.tools = Object.fromEntries(Object.entries(found.tools).map(([name, column]) => [name, aligned(column)]));
}

function showError(host, error, retry = () => location.reload()) {
  const message = element("p", "chart-state", `Could not load the chart (${error.message}). `);
  const button = element("button", "", "Try again");
  button.type = "button";
  button.addEventListener("click", retry);
  message.append(button);
  message.setAttribute("role", "status");
  host.replaceChildren(message);
}

// The heading of the views that do not show the size of the prompt, and so not its growth.
const TITLES = { tools: "Tool outputs per turn", cost: "Cost and cache hits per turn" };
function showTitle(view) {
  const title = document.getElementById("chart-title");
  title.dataset.size ??= title.textContent;
  title.textContent = TITLES[view] ?? title.dataset.size;
  const verdict = title.parentElement.querySelector(".verdict");
  if (verdict) verdict.hidden = view in TITLES;
}

// Activate a group of toggle buttons of which one is pressed.
function toggleGroup(name, choose) {
  const group = document.querySelector(name);
  group.hidden = false;
  group.addEventListener("click", (event) => {
    const chosen = event.target.closest("button");
    if (!chosen) return;
    for (const button of group.children) button.setAttribute("aria-pressed", String(button === chosen));
    choose(chosen.dataset.value);
  });
}

function chart(host, first) {
  let whole = first;
  const label = () => `Prompt size over ${exact(whole.turn_count)} turns, last ${exact(lastSize(whole))} tokens. A data table follows.`;
  const place = plotPlace(label(), "Enter opens the turn.");
  const below = element("div");
  const hidden = new Set(); // tools hidden with the legend
  let [data, plot, isLog, view] = [whole, null, false, "lines"];
  const zoomOut = document.querySelector("[data-zoom-out]");

  const open = (name, number, event) => follow(host.dataset[`${name}Page`].replace(/0\/$/, `${number}/`), event);
  const onClick = (target, left, index, event) => {
    const compacted = near(target, data.own_compactions, left);
    if (compacted) open("compaction", compacted.number, event);
    else open("turn", data.turns[index], event);
  };
  const draw = () => {
    plot?.destroy();
    plot = plotMake(place, data, { isLog, view, hidden, colour: colours(host), onSelect, onClick });
  };
  const drawAll = async () => {
    const drawn = data;
    try {
      if (view === "tools" && !drawn.tools) await addTools(host, drawn);
    } catch (error) {
      if (view === "tools") showError(host, error, drawAll);
      return;
    }
    if (drawn !== data) return; // another range was loaded in the meantime
    if (!place.isConnected) host.replaceChildren(place, below); // after an error
    draw();
    below.replaceChildren(legend(data, view, hidden, draw));
  };
  const show = async (range) => {
    try {
      const found = range ? await fetchData(host, range) : whole;
      if (found.turns.length) data = found;
    } catch (error) {
      showError(host, error, () => show(range));
      return;
    }
    zoomOut.hidden = data === whole;
    drawAll();
  };
  const onSelect = (from, to) => show({ from, to });

  // New turns: draw them, unless the user looks at a part of the session.
  let [timer, refreshed] = [null, 0];
  const refresh = async () => {
    refreshed = Date.now();
    const isZoomed = data !== whole;
    whole = await fetchData(host, { live: 1 }).catch(() => whole);
    place.ariaLabel = label();
    if (isZoomed) return;
    data = whole;
    drawAll();
  };
  document.addEventListener("session-updated", () => {
    clearTimeout(timer);
    timer = setTimeout(refresh, Math.max(0, refreshed + REFRESH_MS - Date.now()));
  });

  host.replaceChildren(place, below);
  drawAll();
  document.addEventListener("theme", drawAll);
  followWidth(place, HEIGHT, () => plot);
  place.addEventListener("dblclick", () => data !== whole && show(null));
  zoomOut.addEventListener("click", () => show(null));
  toggleGroup("[data-scale]", (value) => {
    isLog = value === "log";
    drawAll();
  });
  if (!canStack(whole) && !canPrice(whole)) return;
  document.querySelector('[data-view] [data-value="stacked"]').hidden = !canStack(whole);
  document.querySelector('[data-view] [data-value="tools"]').hidden = !whole.components.tool_outputs;
  document.querySelector('[data-view] [data-value="cost"]').hidden = !canPrice(whole);
  toggleGroup("[data-view]", (value) => {
    view = value;
    showTitle(view);
    document.querySelector("[data-scale]").hidden = view !== "lines"; // stacks and shares have no log scale
    if (view !== "lines") isLog = false;
    drawAll();
  });
}

for (const host of document.querySelectorAll("[data-chart]")) {
  fetchData(host)
    .then((data) => chart(host, data))
    .catch((error) => showError(host, error));
}
