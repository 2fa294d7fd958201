(() => {
  "use strict";
  const spoken = document.createElement("p");
  spoken.className = "hidden";
  spoken.setAttribute("role", "status");
  document.body.append(spoken);
  const key = (row, place) => row.cells[place].dataset.by ?? row.cells[place].textContent.trim();
  const order = (a, b, down) => {
    if (a === "" || b === "") return (a === "") - (b === "");
    const x = Number(a), y = Number(b);
    const found = Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b) : x - y;
    return down ? -found : found;
  };
  for (const table of document.querySelectorAll("table[data-sortable]")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, place) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const body = table.tBodies[0];
        body.append(...[...body.rows].sort((a, b) => order(key(a, place), key(b, place), down)));
        spoken.textContent = `Sorted by ${button.textContent.trim()}, ${down ? "descending" : "ascending"}.`;
      });
    });
  }
})();
