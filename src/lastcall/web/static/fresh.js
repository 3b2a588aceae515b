// What was read from VRChat a minute ago is no longer shown, nor confirmed by it: rows, links to the next page and the
// confirmation leave, "Refresh to continue." comes. And a read that is awaited is shown as soon as it is there. Without
// this file a page says until when it is good, the server refuses what is confirmed later, and a link looks again.
(() => {
  "use strict";

  // A part is as old as the answer said when its question was sent, by a clock that nobody sets: a whole page was asked
  // for at that clock's zero, a part of it when the nonce was made that comes back with it. An answer to another
  // question (a kept one) has a nonce that nobody knows, and is not fresh.
  const asked = new Map();
  const known = new Map(); // by read: when it is over. The first answer counts; a later one can only shorten it.

  const left = (end) => {
    // The steady clock may stand still while the computer sleeps. The other one counts only where it says more.
    const spent = Math.max(performance.now() - end.at, Date.now() - end.wall);
    return end.left - spent;
  };
  const endOf = (part) => {
    const { fresh, freshMs, nonce } = part.dataset;
    const start = nonce ? asked.get(nonce) : 0;
    const found = { at: performance.now(), wall: Date.now(), left: start === undefined ? 0 : start + Number(freshMs) - performance.now() };
    const earlier = known.get(fresh);
    if (!earlier || left(found) < left(earlier)) known.set(fresh, found);
    return known.get(fresh);
  };

  const ticked = (part) => [...part.querySelectorAll("input[name='people']:checked")].map((box) => box.value);
  const expire = (part) => {
    const again = part.querySelector("a[data-refresh]");
    const chosen = ticked(part);
    if (again && chosen.length) {
      // Who was ticked is ticked again, where the next read still has them.
      const address = new URL(again.href);
      address.searchParams.delete("tick");
      for (const one of chosen) address.searchParams.append("tick", one);
      again.href = address.href;
    }
    const held = part.contains(document.activeElement);
    const own = (selector) => [...part.querySelectorAll(selector)].filter((one) => one.parentElement.closest("[data-fresh]") === part);
    for (const gone of own("[data-fresh-only]")) gone.remove();
    for (const come of own("[data-when-stale]")) come.hidden = false;
    delete part.dataset.fresh;
    if (held && again) again.focus();
  };

  let timer = null;
  const look = () => {
    clearTimeout(timer);
    for (const part of document.querySelectorAll("[data-by-script]")) part.hidden = false;
    let next = Infinity;
    for (const part of document.querySelectorAll("[data-fresh]")) {
      const remaining = left(endOf(part));
      if (remaining <= 0) expire(part);
      else next = Math.min(next, remaining);
    }
    if (next < Infinity) timer = setTimeout(look, next);
  };
  for (const moment of ["visibilitychange", "resume"]) document.addEventListener(moment, look);
  addEventListener("focus", look);
  addEventListener("pageshow", look);
  // What is over must not be sent either, should its timer come late.
  document.addEventListener("submit", (event) => {
    look();
    const button = event.submitter;
    if (button && !button.isConnected) {
      event.preventDefault();
      event.stopImmediatePropagation();
    }
  }, true);

  // One box ticks all of a list.
  document.addEventListener("change", (event) => {
    const all = event.target.closest("[data-tick-all]");
    if (!all) return;
    for (const box of all.form.querySelectorAll("input[name='people']")) box.checked = all.checked;
  });

  let source = null;
  let late = null;
  let pause = 1000;
  const awaited = () => document.querySelector("[data-awaits]");
  const again = () => {
    const part = awaited();
    if (part) htmx.trigger(part, "look");
  };
  const say = (text) => {
    const said = document.querySelector("[data-awaits] [data-stream-says]");
    if (said) said.textContent = text;
  };
  const open = () => {
    const part = awaited();
    if (!part) return;
    source = new EventSource(`${part.dataset.awaits}?seen=${encodeURIComponent(part.dataset.seen)}`);
    source.onopen = () => { pause = 1000; say(""); };
    source.addEventListener("changed", again);
    source.onerror = () => {
      say("Connection lost. Trying again.");
      if (source.readyState !== EventSource.CLOSED) return;
      again();
      setTimeout(open, pause);
      pause = Math.min(pause * 2, 30000);
    };
  };
  const follow = () => {
    const part = awaited();
    if (!part || !window.htmx || !window.EventSource) {
      if (source) source.close();
      source = null;
      return;
    }
    clearTimeout(late);
    if (part.dataset.waitMs) late = setTimeout(again, Number(part.dataset.waitMs));
    if (!source) open();
  };

  if (window.htmx) {
    document.body.addEventListener("htmx:configRequest", (event) => {
      if (!event.detail.elt.closest("[data-awaits]")) return;
      const nonce = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
      asked.set(nonce, performance.now());
      event.detail.headers["X-Fresh-Nonce"] = nonce;
    });
    document.body.addEventListener("htmx:afterSwap", () => { look(); follow(); });
    document.body.addEventListener("htmx:responseError", (event) => {
      if ([401, 403, 404].includes(event.detail.xhr.status)) location.reload();
    });
    for (const failure of ["htmx:sendError", "htmx:timeout"]) {
      document.body.addEventListener(failure, () => { say("Connection lost. Trying again."); setTimeout(again, 2000); });
    }
  }
  look();
  follow();
  addEventListener("pagehide", () => { if (source) source.close(); source = null; });
  addEventListener("pageshow", (event) => { if (event.persisted) follow(); });
})();
