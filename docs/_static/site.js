// The theme's buttons that open parts of the list of pages have a picture only: name them for readers of screens.
document.addEventListener("DOMContentLoaded", () => {
  for (const button of document.querySelectorAll("summary:has(> .toctree-toggle)")) {
    const page = button.closest("li").querySelector("a");
    button.setAttribute("aria-label", `Pages below ${page ? page.textContent.trim() : "this"}`);
  }
});
