// The legend: one entry for each line, area and marker that is drawn.

import { COMPONENTS, element, exact, has, isCompacted, largestBudget, windowShown } from "./format.js";

function lineKeys(data) {
  const isServed = has(data.served);
  const keys = [["estimate", isServed ? "Full transcript (estimate)" : "Estimate"]];
  if (isServed) keys.unshift(["served", "Served (estimate)"]);
  if (isCompacted(data)) keys.push(["area kept-out", "Kept out by compaction"]);
  if (has(data.reported)) keys.unshift(["reported", "Reported by the provider"]);
  return keys;
}

// Tool names are buttons that show or hide the tool.
function toolKeys(data, hidden, onToggle) {
  return Object.keys(data.tools).map((name, index) => {
    const item = element("li", `key-area series-${index}`);
    const button = element("button", "", name);
    button.type = "button";
    button.setAttribute("aria-pressed", String(!hidden.has(name)));
    button.addEventListener("click", () => {
      if (!hidden.delete(name)) hidden.add(name);
      button.setAttribute("aria-pressed", String(!hidden.has(name)));
      onToggle();
    });
    item.append(button);
    return item;
  });
}

export function legend(data, view, hidden, onToggle) {
  const [isStacked, isCost, isTools] = [view === "stacked", view === "cost", view === "tools"];
  const list = element("ul", "chart-legend");
  const areas = Object.keys(data.components).map((name) => [`area component-${name}`, COMPONENTS[name]]);
  const costs = [["area cost", "Cost per call"], ["served", "Cache hits"]];
  const keys = isCost ? costs : isTools ? [] : isStacked ? areas.reverse() : lineKeys(data);
  if (isTools) list.append(...toolKeys(data, hidden, onToggle));
  if (isCost && data.misses.length) keys.push(["spike", "Cache miss"]);
  const wasChanged = data.budgets.some(({ tokens }) => tokens !== data.budget);
  const budget = `Budget (${wasChanged ? "now " : ""}${exact(data.budget)})`;
  if (!isCost && largestBudget(data)) keys.push(["budget", budget]);
  else if (!isCost && data.budget) keys.push(["none", `${budget}, above the chart`]);
  if (!isCost && windowShown(data)) keys.push(["window", `Context window (${exact(data.window)})`]);
  if (data.compactions.length) keys.push(["compaction", "Compaction by the client"]);
  if (data.own_compactions.length) keys.push(["own", "Compaction by contextapp"]);
  if (!isCost && data.spikes.length) keys.push(["spike", "Tool output spike"]);
  if (data.comments.length) keys.push(["comment", "Comment"]);
  if (data.idle.length) keys.push(["idle", "Idle for more than 5 minutes"]);
  for (const [key, text] of keys) list.append(element("li", `key-${key}`, text));
  // What the areas add up to. It has no line, and so no swatch.
  if (isTools) list.append(element("li", "key-none", "Total: tool outputs in the prompt (estimate)"));
  if (isStacked) list.append(element("li", "key-none", has(data.served) ? "Total: served prompt (estimate)" : "Total: estimate"));
  if (data.is_sampled) {
    list.append(element("li", "key-none", `${exact(data.turns.length)} of ${exact(data.turn_count)} turns shown, including all peaks; drag to zoom in`));
  }
  return list;
}
