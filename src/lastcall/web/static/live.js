// Live pages: follow the server's event stream, ask for the page again when something changed, say so when the
// stream broke, and keep relative times true while the page is open.
(() => {
  "use strict";

  // The viewer's zone, so that the server can write times in it. It decides nothing else.
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (zone && !document.cookie.split("; ").includes(`lastcall-zone=${zone}`)) {
    document.cookie = `lastcall-zone=${zone}; Path=/; Max-Age=31536000; SameSite=Lax`;
  }

  // The server's clock counts, not this computer's: remember how far apart they were when the page came.
  let made = performance.now();
  let madeAt = Date.parse(document.body.dataset.now || "") || Date.now();
  const now = () => madeAt + (performance.now() - made);

  // The same words as web/times.py.
  const relative = (moment) => {
    const ahead = moment >= now();
    const seconds = Math.abs(moment - now()) / 1000;
    if (seconds < 10) return "now";
    if (seconds < 60) return ahead ? "in under a minute" : "a moment ago";
    const [amount, unit] = seconds < 3600 ? [seconds / 60, "min"] : seconds < 86400 ? [seconds / 3600, "h"] : [seconds / 86400, "days"];
    const whole = Math.floor(amount);
    const word = unit === "days" && whole === 1 ? "day" : unit;
    return ahead ? `in ${whole} ${word}` : `${whole} ${word} ago`;
  };
  const tick = () => {
    for (const part of document.querySelectorAll("[data-relative]")) {
      const text = relative(Date.parse(part.dataset.relative));
      if (part.textContent !== text) part.textContent = text;
    }
  };
  setInterval(tick, 5000);

  const region = () => document.querySelector("[data-stream]");
  const say = (state, text) => {
    const badge = document.querySelector("#stream");
    if (badge && badge.dataset.state !== state) {
      badge.dataset.state = state;
      badge.textContent = text;
    }
  };
  if (!region() || !window.htmx || !window.EventSource) return;

  let source = null;
  let seen = region().dataset.seen;
  let pause = 1000;
  const refresh = () => htmx.trigger(region(), "refresh");

  const open = () => {
    source = new EventSource(`${region().dataset.stream}?seen=${encodeURIComponent(seen)}`);
    source.onopen = () => {
      pause = 1000;
      say("live", "Live");
    };
    source.addEventListener("changed", (event) => {
      seen = event.data;
      refresh();
    });
    source.onerror = () => {
      say("broken", "Connection lost. Trying again.");
      // A refused stream is closed for good by the browser; a broken one it opens again by itself, within a second.
      // Asking for the page tells whether it was refused because the session is over.
      if (source.readyState === EventSource.CLOSED) {
        refresh();
        setTimeout(open, pause);
        pause = Math.min(pause * 2, 30000);
      }
    };
  };
  open();
  addEventListener("pagehide", () => source && source.close());
  addEventListener("pageshow", (event) => event.persisted && open());

  document.body.addEventListener("htmx:afterSwap", () => {
    const fresh = region();
    if (fresh && fresh.dataset.now) {
      made = performance.now();
      madeAt = Date.parse(fresh.dataset.now);
    }
    tick();
  });
  // The page could not be read again: the stream may be well, so try once more shortly.
  for (const failure of ["htmx:sendError", "htmx:timeout"]) {
    document.body.addEventListener(failure, () => {
      say("broken", "Connection lost. Trying again.");
      setTimeout(() => {
        if (source.readyState === EventSource.OPEN) refresh();
      }, 2000);
    });
  }
  document.body.addEventListener("htmx:afterRequest", (event) => {
    if (event.detail.successful && source.readyState === EventSource.OPEN) say("live", "Live");
  });
  // Signed out, or no longer on the staff: the whole page says so better than a part of it.
  document.body.addEventListener("htmx:responseError", (event) => {
    if ([401, 403, 404].includes(event.detail.xhr.status)) location.reload();
  });
})();
