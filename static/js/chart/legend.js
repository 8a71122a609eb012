// What the lines, areas and marks mean; only those that are drawn.

import { COMPONENTS, element, exact, has, windowShown } from "./format.js";

function lineKeys(data) {
  const isServed = has(data.served);
  const keys = [["estimate", isServed ? "the whole transcript, estimate" : "our estimate of the messages"]];
  if (isServed) keys.unshift(["served", "the prompt served, estimate"]);
  if (has(data.reported)) keys.unshift(["reported", "reported by the provider"]);
  return keys;
}

export function legend(data, isStacked) {
  const list = element("ul", "chart-legend");
  const areas = Object.keys(data.components).map((name) => [`area component-${name}`, COMPONENTS[name]]);
  const keys = isStacked ? areas.reverse() : lineKeys(data);
  if (data.budget) keys.push(["budget", `the budget, ${exact(data.budget)}`]);
  if (windowShown(data)) keys.push(["window", `the model's window, ${exact(data.window)}`]);
  if (data.compactions.length) keys.push(["compaction", "the client compacted"]);
  if (data.own_compactions.length) keys.push(["own", "contextapp compacted"]);
  if (data.idle.length) keys.push(["idle", "idle for over 5 minutes before"]);
  for (const [key, text] of keys) list.append(element("li", `key-${key}`, text));
  if (isStacked) list.append(element("li", "key-none", has(data.served) ? "what was served, estimate" : "estimate"));
  if (data.is_sampled) {
    list.append(element("li", "key-none", `${exact(data.turns.length)} of ${exact(data.turn_count)} turns drawn, no peak left out; drag over a stretch to see all of it`));
  }
  return list;
}
