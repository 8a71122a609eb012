// The viewer's time zone, which the server learns from a cookie: days in filters and charts are the viewer's.

export const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
export const wasKnown = document.cookie.split("; ").includes(`zone=${zone}`);
if (!wasKnown) document.cookie = `zone=${zone}; path=/; max-age=31536000; samesite=lax`;
