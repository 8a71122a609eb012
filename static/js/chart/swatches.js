// Legends and tooltip tables with color swatches.

import { element } from "./format.js";

function swatch(colour) {
  const made = element("span", "swatch");
  made.style.background = colour;
  return made;
}

// With `onToggle`, each name is a button that shows or hides its series.
export function swatchLegend(names, colours, onToggle = null) {
  const list = element("ul", "trend-legend");
  names.forEach((name, index) => {
    const item = element("li");
    const label = onToggle ? element("button") : item;
    label.append(swatch(colours[index]), name);
    if (onToggle) {
      label.type = "button";
      label.setAttribute("aria-pressed", "true");
      label.addEventListener("click", () => {
        const isShown = label.getAttribute("aria-pressed") === "false";
        label.setAttribute("aria-pressed", String(isShown));
        onToggle(index, isShown);
      });
      item.append(label);
    }
    list.append(item);
  });
  return list;
}

// Rows of colour, name and value.
export function swatchTable(rows) {
  const table = element("table");
  for (const [colour, name, value] of rows) {
    const row = table.insertRow();
    const mark = swatch(colour);
    mark.style.display = "inline-block";
    row.insertCell().append(mark);
    row.insertCell().textContent = name;
    row.insertCell().textContent = value;
  }
  return table;
}
