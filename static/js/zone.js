// The viewer's time zone, which the server learns from a cookie: days in filters and charts are the viewer's.

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const wasKnown = document.cookie.split("; ").includes(`zone=${zone}`);
if (!wasKnown) document.cookie = `zone=${zone}; path=/; max-age=31536000; samesite=lax`;

// The server sums by days in the viewer's time zone. Reload once it knows the zone.
const pageZone = document.querySelector("[data-zone]")?.dataset.zone ?? zone;
export const isReloading = !wasKnown && pageZone !== zone && !new URLSearchParams(location.search).has("zone");
if (isReloading) location.reload();
