// Composers: the world that an event fills in, and a look at the server's clock before a time is confirmed. Without
// this file a person types the world, and the server alone refuses a time that has passed.
(() => {
  "use strict";

  // An event's confirmed world fills an empty field, and leaves it again with the event. What a person typed stays.
  const world = document.querySelector("input[name='world']");
  const events = document.querySelector("select[name='event']");
  if (world && events) {
    const derived = () => (events.selectedOptions[0] && events.selectedOptions[0].dataset.world) || "";
    let filled = world.value === derived() ? world.value : null;
    world.addEventListener("input", () => { filled = world.value === "" ? "" : null; });
    if (world.value === "") filled = "";
    events.addEventListener("change", () => {
      if (filled === null) return;
      filled = derived();
      world.value = filled;
    });
  }

  const form = document.querySelector("form[data-clock][data-due]");
  if (!form) return;
  const said = form.querySelector("[data-clock-says]");
  const say = (text) => {
    said.textContent = text;
    said.hidden = false;
    said.scrollIntoView({ block: "center" });
  };
  const fresh = async () => {
    const nonce = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
    const answer = await fetch(`${form.dataset.clock}?nonce=${nonce}`, { cache: "no-store", signal: AbortSignal.timeout(8000) });
    const told = answer.ok ? await answer.json() : {};
    if (told.nonce !== nonce) throw new Error("stale");
    return Date.parse(told.now);
  };
  let isChecked = false;
  form.addEventListener("submit", async (event) => {
    const button = event.submitter;
    if (isChecked || !button || button.value !== "confirm") return;
    event.preventDefault();
    event.stopPropagation();
    if (form.dataset.asking) return;
    form.dataset.asking = "yes";
    try {
      if (await fresh() > Date.parse(form.dataset.due)) {
        say("By the server's clock that time has passed. Change it, or take Now.");
      } else {
        isChecked = true;
        form.requestSubmit(button);
      }
    } catch {
      say("The server's clock could not be read, so nothing was queued. Confirm again.");
    } finally {
      delete form.dataset.asking;
    }
  });
  addEventListener("pageshow", () => { isChecked = false; });
})();
