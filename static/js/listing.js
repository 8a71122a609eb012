// The session list: selected rows and hidden columns.

const YEAR = 365 * 24 * 3600;
const list = document.getElementById("list");
const boxes = () => [...list.querySelectorAll('input[name="session"]')];

function update() {
  const all = list.querySelector("[data-select-all]");
  if (!all) return;
  const count = boxes().filter((box) => box.checked).length;
  all.checked = count > 0 && count === boxes().length;
  all.indeterminate = count > 0 && !all.checked;
  list.querySelector("[data-selected]").textContent = count ? `${count} selected` : "";
}

function hide() {
  const columns = [...list.querySelectorAll("[data-column]")];
  const hidden = columns.filter((box) => !box.checked).map((box) => box.value);
  list.querySelector("table").dataset.hidden = hidden.join(" ");
  document.cookie = `hidden_columns=${hidden.join(".")}; path=/; max-age=${YEAR}; SameSite=Lax`;
}

list.addEventListener("change", (event) => {
  if (event.target.matches("[data-select-all]")) for (const box of boxes()) box.checked = event.target.checked;
  if (event.target.matches("[data-column]")) hide();
  else update();
});

// The order is a field of the filter, so that each request has both, even if the response to the previous one is pending.
// Capture runs before htmx reads the fields.
list.addEventListener("click", (event) => {
  const link = event.target.closest("a.sort");
  if (link) document.getElementById("filter").elements.sort.value = new URL(link.href).searchParams.get("sort") ?? "";
}, { capture: true });

// `x` selects the focused row, as in a mail program.
document.addEventListener("keydown", (event) => {
  if (event.key !== "x" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("input:not([type=checkbox]), select, textarea")) return;
  event.target.closest("[data-row]")?.querySelector('input[name="session"]')?.click();
});
