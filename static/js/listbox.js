// The options of a listbox below a text field, of which the arrow keys select one.

import { element } from "./chart/format.js";

export function option(id, parts) {
  const item = element("li");
  item.id = id;
  item.setAttribute("role", "option");
  item.setAttribute("aria-selected", "false");
  item.append(...parts);
  return item;
}

export const selected = (list) => list.querySelector('[aria-selected="true"]');

// Select the option that is `step` after the selected one, the first or the last if none is selected.
export function select(field, list, step) {
  const options = [...list.children];
  if (!options.length) return;
  const at = options.indexOf(selected(list));
  const next = at < 0 && step < 0 ? options.at(-1) : options[(at + step + options.length) % options.length];
  for (const item of options) item.setAttribute("aria-selected", String(item === next));
  field.setAttribute("aria-activedescendant", next.id);
  next.scrollIntoView({ block: "nearest" });
}
