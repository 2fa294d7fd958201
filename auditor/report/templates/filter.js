(() => {
  "use strict";
  for (const table of document.querySelectorAll("table[data-filter]")) {
    const label = document.createElement("label");
    label.className = "filter";
    label.append(table.dataset.filter);
    const box = document.createElement("input");
    box.type = "search";
    label.append(" ", box);
    table.before(label);
    const spoken = document.createElement("p");
    spoken.className = "hidden";
    spoken.setAttribute("role", "status");
    table.after(spoken);
    box.addEventListener("input", () => {
      const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
      let left = 0;
      for (const row of table.tBodies[0].rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
        left += row.hidden ? 0 : 1;
      }
      spoken.textContent = `${left} of ${table.tBodies[0].rows.length} rows match.`;
    });
  }
})();
