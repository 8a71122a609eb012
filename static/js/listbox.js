// The options of a listbox below a text field. The arrow keys select one of them.

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

// Move the selection by `step` options. Without a selection, select the first or last option.
export function select(field, list, step) {
  const options = [...list.children];
  if (!options.length) return;
  const at = options.indexOf(selected(list));
  const next = at < 0 && step < 0 ? options.at(-1) : options[(at + step + options.length) % options.length];
  for (const item of options) item.setAttribute("aria-selected", String(item === next));
  field.setAttribute("aria-activedescendant", next.id);
  next.scrollIntoView({ block: "nearest" });
}
