// Small comforts of every page. Nothing here is needed: without it, dialogs are pages and keys are links.
(() => {
  "use strict";

  const dialog = document.querySelector("#dialog");
  const keys = document.querySelector("#keys");
  let opener = null;

  document.body.addEventListener("htmx:beforeRequest", (event) => {
    if (event.detail.target === dialog) opener = document.activeElement;
  });
  document.body.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target === dialog && !dialog.open) dialog.showModal();
  });
  if (dialog) {
    dialog.addEventListener("close", () => {
      dialog.replaceChildren();
      if (opener && opener.isConnected) opener.focus();
    });
  }

  document.addEventListener("click", (event) => {
    const close = event.target.closest("[data-close]");
    if (close && close.closest("dialog")) {
      event.preventDefault();
      close.closest("dialog").close();
    }
    const copy = event.target.closest("[data-copy]");
    if (copy && navigator.clipboard) {
      navigator.clipboard.writeText(copy.dataset.copy).then(() => {
        const label = copy.getAttribute("aria-label");
        copy.setAttribute("aria-label", "Copied");
        copy.title = "Copied";
        setTimeout(() => { copy.setAttribute("aria-label", label); copy.title = label; }, 1500);
      });
    }
    if (event.target.closest("[data-keys]") && keys) keys.showModal();
  });

  // On a narrow screen the tabs are a strip that scrolls: the one that is open is in sight. Only the strip moves, not
  // the page, which may stand at an anchor.
  const tab = document.querySelector(".tabs [aria-current]");
  const strip = tab?.closest(".tabs");
  if (strip) strip.scrollLeft += Math.max(0, tab.getBoundingClientRect().right - strip.getBoundingClientRect().right);

  // A form is sent once: a second click while the answer is on its way does nothing.
  document.addEventListener("submit", (event) => {
    if (event.target.method === "dialog") return;
    if ("again" in event.target.dataset) return; // A download leaves the page as it is.
    if (event.target.dataset.sent) event.preventDefault();
    event.target.dataset.sent = "yes";
  });
  addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
  });

  // Single-key shortcuts can be turned off in their own dialog (people who dictate press keys by accident).
  const setting = document.querySelector("#keys-on");
  const isOn = () => localStorage.getItem("lastcall-keys") !== "off";
  if (setting) {
    setting.checked = isOn();
    setting.addEventListener("change", () => localStorage.setItem("lastcall-keys", setting.checked ? "on" : "off"));
  }

  const rows = () => [...document.querySelectorAll(".row")];
  const step = (by) => {
    const all = rows();
    if (!all.length) return;
    const at = all.indexOf(document.activeElement.closest(".row"));
    const next = all[Math.max(0, Math.min(all.length - 1, at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by))];
    next.focus();
    next.scrollIntoView({ block: "nearest" });
  };
  document.addEventListener("keydown", (event) => {
    const field = event.target.closest("input, textarea, select, [contenteditable], dialog");
    if (field || event.ctrlKey || event.metaKey || event.altKey || !isOn()) return;
    const row = document.activeElement.closest(".row");
    const press = (selector, root = document) => {
      const found = root && root.querySelector(selector);
      if (found) { event.preventDefault(); found.click(); }
    };
    switch (event.key.toLowerCase()) {
      case "j": step(1); break;
      case "k": step(-1); break;
      case "c": press("[data-key='cancel']", row); break;
      case "o": press("[data-key='open'], a.quiet", row); break;
      case "e": press("[data-key='edit']", row); break;
      case "x": press("[data-key='tick']", row); break;
      case "a": press("[data-key='archive']", row); break;
      case "i": press("[data-key='inbox']"); break;
      case "n": press("[data-key='new']"); break;
      case "u": press("[data-key='upcoming']"); break;
      case "h": press("[data-key='history']"); break;
      case "?": if (keys) { event.preventDefault(); keys.showModal(); } break;
    }
  });
})();
