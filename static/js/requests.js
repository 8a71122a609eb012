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
// What the button repeats. If several parts of a page could not be loaded, it repeats all of them.
const retries = new Map();

function isPoll({ elt }) {
  const trigger = elt.getAttribute("hx-trigger") ?? "";
  return trigger === "live" || /\bevery /.test(trigger);
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

// The next poll retries. After two failures, the page says that it is not up to date.
let failedPolls = 0;
let isOutdated = false;

function pollFailed({ elt, xhr }) {
  if (xhr.status === 404) {
    ended.add(elt);
    if (elt.id === "live") document.querySelector("[data-live-switch]").hidden = true;
    text.textContent = "This was deleted, or you no longer have access to it. This page no longer updates.";
  } else {
    failedPolls += 1;
    if (failedPolls !== 2 || !notice.hidden) return;
    isOutdated = true;
    text.textContent = "The server is not responding. This page will update when it responds again.";
  }
  retryButton.hidden = true;
  notice.hidden = false;
}

function pollSucceeded() {
  failedPolls = 0;
  if (isOutdated) notice.hidden = true;
  isOutdated = false;
}

function failureShow({ detail }) {
  if (isPoll(detail)) return void pollFailed(detail);
  const { elt, target, requestConfig, xhr } = detail;
  text.textContent = reason(xhr.status);
  isOutdated = false;
  retries.set(target, () => window.htmx.ajax(requestConfig.verb, requestConfig.path, { source: elt, target }));
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
  retries.clear();
  if (isRejected) retries.set(document.body, () => location.reload());
  isOutdated = false;
  retryButton.hidden = false;
  notice.hidden = !isRejected;
});

function failureHide() {
  retries.clear();
  notice.hidden = true;
  for (const element of document.querySelectorAll(".outdated")) element.classList.remove("outdated");
}

function swapped({ detail }) {
  if (isPoll(detail)) return;
  detail.target.classList.remove("outdated");
  retries.delete(detail.target);
  for (const target of retries.keys()) if (!target.isConnected) retries.delete(target);
  if (!retries.size) failureHide();
}

for (const name of ["htmx:sendError", "htmx:timeout", "htmx:responseError"]) {
  document.addEventListener(name, failureShow);
}
document.addEventListener("htmx:afterSwap", swapped);
document.addEventListener("htmx:afterRequest", ({ detail }) => { if (isPoll(detail) && detail.successful) pollSucceeded(); });
retryButton.addEventListener("click", () => { for (const retry of [...retries.values()]) retry(); });
notice.querySelector("[data-dismiss]").addEventListener("click", failureHide);
