// The prompt size per turn: loading, the switches, zooming in and out. The server thins the points.

import { colours, element, exact } from "./chart/format.js";
import { legend } from "./chart/legend.js";
import { canStack, HEIGHT, lastSize, plotMake } from "./chart/plot.js";
import { near } from "./chart/tip.js";

async function fetched(host, stretch) {
  const query = stretch ? `?from=${stretch.from}&to=${stretch.to}` : "";
  const answer = await fetch(host.dataset.chart + query, { headers: { Accept: "application/json" } });
  if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
  return answer.json();
}

function failed(host, error) {
  const said = element("p", "chart-state", `The chart could not be loaded: ${error.message}. `);
  const again = element("button", "", "Try again");
  again.type = "button";
  again.addEventListener("click", () => location.reload());
  said.append(again);
  said.setAttribute("role", "status");
  host.replaceChildren(said);
}

// A group of buttons of which one is pressed.
function chooser(name, choose) {
  const group = document.querySelector(name);
  group.hidden = false;
  group.addEventListener("click", (event) => {
    const chosen = event.target.closest("button");
    if (!chosen) return;
    for (const button of group.children) button.setAttribute("aria-pressed", String(button === chosen));
    choose(chosen.dataset.value);
  });
}

function chart(host, whole) {
  const place = element("div", "chart-plot");
  const below = element("div");
  let [data, plot, isLog, isStacked] = [whole, null, false, false];
  const zoomOut = document.querySelector("[data-zoom-out]");

  const open = (name, number) => location.assign(host.dataset[`${name}Page`].replace(/0\/$/, `${number}/`));
  const onClick = (target, left, index) => {
    const compacted = near(target, data.own_compactions, left);
    if (compacted) open("compaction", compacted.number);
    else open("turn", data.turns[index]);
  };
  const draw = () => {
    plot?.destroy();
    plot = plotMake(place, data, { isLog, isStacked, colour: colours(host), onSelect, onClick });
    below.replaceChildren(legend(data, isStacked));
  };
  const show = async (stretch) => {
    try {
      const found = stretch ? await fetched(host, stretch) : whole;
      if (found.turns.length) data = found;
    } catch (error) {
      failed(host, error);
      return;
    }
    zoomOut.hidden = data === whole;
    draw();
  };
  const onSelect = (from, to) => show({ from, to });

  // Screen readers get the sentence and the table; the picture has nothing to tab through.
  place.setAttribute("role", "img");
  place.setAttribute("aria-label", `Prompt size over ${exact(whole.turn_count)} turns, the last at ${exact(lastSize(whole))} tokens. The figures follow as a table.`);
  host.replaceChildren(place, below);
  draw();
  document.addEventListener("theme", draw);
  new ResizeObserver(() => plot.setSize({ width: place.clientWidth, height: HEIGHT })).observe(place);
  place.addEventListener("dblclick", () => data !== whole && show(null));
  zoomOut.addEventListener("click", () => show(null));
  chooser("[data-scale]", (value) => {
    isLog = value === "log";
    draw();
  });
  if (!canStack(whole)) return;
  chooser("[data-view]", (value) => {
    isStacked = value === "stacked";
    document.querySelector("[data-scale]").hidden = isStacked; // a sum is no sum on a log scale
    if (isStacked) isLog = false;
    draw();
  });
}

for (const host of document.querySelectorAll("[data-chart]")) {
  fetched(host)
    .then((data) => chart(host, data))
    .catch((error) => failed(host, error));
}
