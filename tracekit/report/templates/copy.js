"use strict";
// Buttons that copy what stands beside them. Pages opened from a file may have no clipboard: a selection is copied then.
(() => {
  const said = document.createElement("span");
  said.className = "unseen";
  said.setAttribute("role", "status");
  document.body.append(said);

  const write = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const field = document.createElement("textarea"), before = document.activeElement;
      field.className = "unseen";
      field.value = text;
      document.body.append(field);
      field.select();
      const done = document.execCommand("copy");
      field.remove();
      before?.focus({ preventScroll: true });
      if (!done) throw new Error("nothing was copied");
    }
  };
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button.copy");
    if (!button) return;
    const text = button.dataset.text ?? button.parentElement.querySelector("pre, code").textContent.trim();
    let told = "Copied";
    await write(text).catch(() => { told = "Not copied"; });
    const before = button.dataset.label ??= button.textContent;
    button.textContent = said.textContent = told;
    setTimeout(() => { button.textContent = before; said.textContent = ""; }, 1500);
  });
  for (const button of document.querySelectorAll("button.copy")) button.hidden = false;
})();
