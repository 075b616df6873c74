document.addEventListener("DOMContentLoaded", () => {
  // The theme's buttons that open parts of the list of pages have a picture only: name them for readers of screens.
  for (const button of document.querySelectorAll("summary:has(> .toctree-toggle)")) {
    const page = button.closest("li").querySelector("a");
    button.setAttribute("aria-label", `Pages below ${page ? page.textContent.trim() : "this"}`);
  }
  // On a phone a row of a wide table is a list: each cell has its head before it, and stays a cell for readers of screens.
  for (const table of document.querySelectorAll("table.table:has(thead th:nth-child(3))")) {
    const heads = [...table.querySelectorAll("thead th")].map((head) => head.textContent.trim());
    table.classList.add("stacked");
    table.setAttribute("role", "table");
    for (const row of table.querySelectorAll("tbody tr")) {
      row.setAttribute("role", "row");
      [...row.cells].forEach((cell, at) => {
        cell.setAttribute("role", "cell");
        cell.classList.toggle("empty", !cell.textContent.trim());
        if (heads[at]) cell.dataset.head = heads[at];
      });
    }
  }
});
