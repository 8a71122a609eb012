// What htmx leaves out: a progress bar while a request runs, and a message with a retry when one fails.

const SLOW_MS = 250;
const running = new Set();
const bar = document.getElementById("progress");

function progressUpdate() {
  bar.hidden = running.size === 0;
}

document.addEventListener("htmx:beforeSend", ({ detail }) => {
  if (isPoll(detail)) return;
  // Most requests end before a progress bar would be anything but a flicker.
  const timer = setTimeout(() => { running.add(detail.xhr); progressUpdate(); }, SLOW_MS);
  detail.xhr.addEventListener("loadend", () => {
    clearTimeout(timer);
    running.delete(detail.xhr);
    progressUpdate();
  });
});

const notice = document.getElementById("request-error");
const text = notice.querySelector("p");
const retryButton = notice.querySelector("[data-retry]");
let retry = null;

function isPoll({ elt }) {
  const trigger = elt.getAttribute("hx-trigger") ?? "";
  return trigger === "live" || trigger.startsWith("every ");
}

function reason(status) {
  if (!status) return "The server did not respond. Check your connection.";
  if (status === 403) return "You do not have permission to do this.";
  if (status === 404) return "This page has changed or no longer exists. Reload the page.";
  if (status === 413) return "The text is too long. Shorten it and submit it again.";
  if (status === 503) return "The database did not respond in time.";
  if (status >= 500) return "Something went wrong on the server. We logged the error.";
  return `The server rejected the request (HTTP ${status}).`;
}

// The polls of something that was deleted while its page was open, such as a session.
const ended = new WeakSet();
document.addEventListener("htmx:beforeRequest", (event) => {
  if (ended.has(event.detail.elt)) event.preventDefault();
});

function pollFailed({ elt, xhr }) {
  if (xhr.status !== 404) return; // the next poll retries
  ended.add(elt);
  if (elt.id === "live") document.querySelector("[data-live-switch]").hidden = true;
  text.textContent = "This was deleted, or you no longer have access to it. This page no longer updates.";
  retryButton.hidden = true;
  notice.hidden = false;
}

function failureShow({ detail }) {
  if (isPoll(detail)) return void pollFailed(detail);
  const { elt, target, requestConfig, xhr } = detail;
  text.textContent = reason(xhr.status);
  retry = () => window.htmx.ajax(requestConfig.verb, requestConfig.path, { source: elt, target });
  for (const hint of target.querySelectorAll("[data-loading]")) hint.textContent = "Could not be loaded.";
  // Results that do not match the filters above them must not look current.
  target.classList.add("outdated");
  retryButton.hidden = false;
  notice.hidden = false;
}

// A poll must not leave the page if the login has expired: the user may be writing.
let isLoggedOut = false;
document.addEventListener("htmx:beforeOnLoad", (event) => {
  if (!isPoll(event.detail)) return;
  const isRejected = Boolean(event.detail.xhr.getResponseHeader("HX-Redirect")?.startsWith("/login/"));
  if (isRejected) event.preventDefault();
  if (isRejected === isLoggedOut) return;
  isLoggedOut = isRejected;
  text.textContent = "You were logged out. Submit what you are writing, or reload the page, to log in again.";
  retry = () => location.reload();
  notice.hidden = !isRejected;
});

function failureHide() {
  notice.hidden = true;
  for (const element of document.querySelectorAll(".outdated")) element.classList.remove("outdated");
}

for (const name of ["htmx:sendError", "htmx:timeout", "htmx:responseError"]) {
  document.addEventListener(name, failureShow);
}
document.addEventListener("htmx:afterSwap", ({ detail }) => { if (!isPoll(detail)) failureHide(); });
retryButton.addEventListener("click", () => retry?.());
notice.querySelector("[data-dismiss]").addEventListener("click", failureHide);
