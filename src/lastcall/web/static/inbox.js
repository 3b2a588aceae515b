// Ticks of the inbox: counted, and kept when the list is read again. A row that changed meanwhile is another one, so
// its tick goes: nobody acts on what they did not see.
(() => {
  "use strict";

  const boxes = () => [...document.querySelectorAll("form[data-ticks] input[name='item']")];
  const say = () => {
    const words = document.querySelector("[data-ticked]");
    if (!words) return;
    const ticked = boxes().filter((box) => box.checked).length;
    words.textContent = ticked ? `${ticked} ticked` : "Tick items to act on several at once.";
  };
  const show = () => {
    for (const part of document.querySelectorAll("form[data-ticks] [data-by-script]")) part.hidden = false;
    say();
  };

  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-tick-every]")) {
      for (const box of boxes()) box.checked = event.target.checked;
    }
    if (event.target.closest("form[data-ticks]")) say();
  });

  let kept = new Set();
  let note = "";
  document.body.addEventListener("htmx:beforeSwap", () => {
    kept = new Set(boxes().filter((box) => box.checked).map((box) => box.value));
    note = document.querySelector("form[data-ticks] textarea")?.value ?? "";
  });
  document.body.addEventListener("htmx:afterSettle", () => {
    for (const box of boxes()) box.checked = kept.has(box.value);
    const field = document.querySelector("form[data-ticks] textarea");
    if (field && note && document.activeElement !== field) field.value = note;
    show();
  });
  show();
})();
