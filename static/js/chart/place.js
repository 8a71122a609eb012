// Where a chart is drawn, and its data.

import { element } from "./format.js";

// To screen readers, a chart is a slider through its points, whose tooltips they read. A data table follows it.
// `enter` says what the Enter key does, if a click on the chart does something.
export function plotPlace(label, enter = "") {
  const place = element("div", "chart-plot");
  Object.assign(place, { role: "slider", tabIndex: 0, ariaLabel: label, ariaRoleDescription: "chart", ariaDescription: `Arrow keys move through the chart. ${enter}`.trim(), ariaValueMin: 0, ariaValueNow: 0 });
  return place;
}

// Keep a plot as wide as its place. `plotOf` returns the current plot.
export function followWidth(place, height, plotOf) {
  new ResizeObserver(() => plotOf()?.setSize({ width: place.clientWidth, height })).observe(place);
}

// Follow a link of a chart or the palette; with Ctrl or Cmd in a new tab, like other links.
export function follow(address, event) {
  if (event?.ctrlKey || event?.metaKey) window.open(address, "_blank");
  else location.assign(address);
}

export async function fetchJson(address) {
  const response = await fetch(address, { headers: { Accept: "application/json" } });
  if (!response.ok) throw new Error(response.status === 401 ? "you were logged out" : `HTTP ${response.status}`);
  return response.json();
}
