// Legends and tooltip tables with color swatches.

import { element } from "./format.js";

function swatch(colour) {
  const made = element("span", "swatch");
  made.style.background = colour;
  return made;
}

export function swatchLegend(names, colours) {
  const list = element("ul", "trend-legend");
  names.forEach((name, index) => {
    const item = element("li");
    item.append(swatch(colours[index]), name);
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
