// Where a chart is drawn, and its data.

import { element } from "./format.js";

// Screen readers get `label` and the data table that follows; the canvas has nothing to focus.
export function plotPlace(label) {
  const place = element("div", "chart-plot");
  place.setAttribute("role", "img");
  place.setAttribute("aria-label", label);
  return place;
}

// Keep a plot as wide as its place. `plotOf` returns the current plot.
export function followWidth(place, height, plotOf) {
  new ResizeObserver(() => plotOf()?.setSize({ width: place.clientWidth, height })).observe(place);
}

export async function fetchJson(address) {
  const response = await fetch(address, { headers: { Accept: "application/json" } });
  if (!response.ok) throw new Error(`HTTP ${response.status}`);
  return response.json();
}
