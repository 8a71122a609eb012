// Logs dropped on the upload form, and the size of the files that are chosen.

const MEGABYTE = 2 ** 20;

for (const form of document.querySelectorAll("[data-drop]")) {
  const input = form.querySelector("input[type=file]");
  const state = form.querySelector("[data-drop-state]");
  const initial = state.textContent;

  const describe = () => {
    const size = [...input.files].reduce((sum, file) => sum + file.size, 0);
    const isTooLarge = size > Number(form.dataset.limit);
    const isTooMany = input.files.length > Number(form.dataset.files);
    const count = `${input.files.length} file${input.files.length === 1 ? "" : "s"}`;
    state.textContent = input.files.length ? `${count}, ${(size / MEGABYTE).toFixed(1)} MB` : initial;
    const problem = isTooMany ? "These are too many files." : isTooLarge ? "These files are too large." : "";
    input.setCustomValidity(problem && `${problem} ${initial}`);
  };

  form.addEventListener("dragover", (event) => {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    form.classList.add("dropping");
  });
  form.addEventListener("dragleave", (event) => {
    if (!form.contains(event.relatedTarget)) form.classList.remove("dropping");
  });
  form.addEventListener("drop", (event) => {
    event.preventDefault();
    form.classList.remove("dropping");
    if (!event.dataTransfer.files.length) return;
    input.files = event.dataTransfer.files;
    describe();
  });
  input.addEventListener("change", describe);
}
