// The review of proposed facts: single rows by keyboard, several rows by their checkboxes.

const ROW = "[data-fact]";
const rowOf = (element) => element.closest?.(ROW);
const press = (row, selector) => row.querySelector(selector)?.click();

const KEYS = {
  a: (row) => press(row, 'button[value="accepted"]'),
  r: (row) => press(row, 'button[value="rejected"]'),
  u: (row) => press(row, ".decided + button"),
  x: (row) => press(row, 'input[name="fact"]'),
  e: (row) => row.querySelector("textarea")?.focus(),
};

document.addEventListener("keydown", (event) => {
  const row = rowOf(event.target);
  if (!row) return;
  if (event.target.matches("textarea, input:not([type=checkbox])")) {
    if (event.key === "Escape") row.focus();
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) KEYS.a(row);
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
  event.preventDefault();
  KEYS[event.key](row);
});

// After a decision, focus the next undecided row.
document.addEventListener("htmx:load", (event) => {
  if (!event.target.matches(ROW)) return;
  let next = event.target;
  while (next?.matches(".is-decided")) next = next.nextElementSibling;
  (next ?? event.target).focus();
});

// An edited fact must be accepted individually, because bulk actions use the stored text.
document.addEventListener("input", (event) => {
  const box = event.target.matches("textarea") && rowOf(event.target)?.querySelector('input[name="fact"]');
  if (!box) return;
  box.disabled = event.target.value !== event.target.defaultValue;
  if (box.disabled) box.checked = false;
});

const all = document.querySelector("[data-all]");
if (all) {
  all.parentElement.hidden = false;
  all.addEventListener("change", () => {
    for (const box of document.querySelectorAll(`${ROW} input[name="fact"]:enabled`)) box.checked = all.checked;
  });
}
