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

// `x` selects the focused row, as in a mail program.
document.addEventListener("keydown", (event) => {
  if (event.key !== "x" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("input:not([type=checkbox]), select, textarea")) return;
  event.target.closest("[data-row]")?.querySelector('input[name="session"]')?.click();
});
