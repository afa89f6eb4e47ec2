"use strict";
// A finding highlights its kernels in the module tree, and tells the tables and the timelines of their groups. Whatever is selected later ends it.
(() => {
  const buttons = [...document.querySelectorAll("button.lights")];
  const show = (pressed) => {
    for (const each of buttons) each.setAttribute("aria-pressed", String(each === pressed));
    for (const row of document.querySelectorAll(".tree .lit")) row.classList.remove("lit");
    for (const number of pressed?.dataset.groups.split(" ") ?? []) {
      const row = document.querySelector(`.tree a[href="#group-${number}"]`)?.closest(".leaf");
      row?.classList.add("lit");
      for (let fold = row?.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.querySelector("summary").classList.add("lit");
    }
  };
  for (const button of buttons) {
    button.parentElement.hidden = false;
    button.addEventListener("click", () => {
      const pressed = button.getAttribute("aria-pressed") === "true" ? null : button;
      show(pressed);
      document.dispatchEvent(new CustomEvent("tracekit:groups", { detail: pressed ? pressed.dataset.groups.split(" ").map(Number) : [] }));
    });
  }
  document.addEventListener("tracekit:group", () => show(null));
  document.addEventListener("tracekit:groups", ({ detail }) => { if (!detail.length) show(null); });
})();
