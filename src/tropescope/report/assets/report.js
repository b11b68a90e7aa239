"use strict";
// Comfort only: everything can be read without this script.
(() => {
  const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));
  const make = (tag, text, attributes = {}) => {
    const element = document.createElement(tag);
    element.textContent = text;
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };

  const number = (text) => {
    const found = text.replace(/−/g, "-").replace(/[,+\s]/g, "").match(/-?\d+(\.\d+)?/);
    return found ? parseFloat(found[0]) : NaN;
  };
  const content = (row, column) => {
    const cell = row.cells[column];
    const own = Array.from(cell.childNodes).filter((node) => node.nodeName !== "SMALL");
    return own.map((node) => node.textContent).join("").trim();
  };
  const sortBy = (table, heading, column) => {
    const up = heading.getAttribute("aria-sort") === "descending";
    const numeric = heading.classList.contains("num");
    const body = table.tBodies[0];
    const rows = Array.from(body.rows).map((row) => [content(row, column), row]);
    rows.sort(([a], [b]) => {
      if (!numeric) return up ? b.localeCompare(a) : a.localeCompare(b);
      const [x, y] = [number(a), number(b)];
      if (isNaN(x) || isNaN(y)) return isNaN(x) - isNaN(y);
      return up ? x - y : y - x;
    });
    all("th[aria-sort]", table).forEach((other) => other.removeAttribute("aria-sort"));
    heading.setAttribute("aria-sort", up ? "ascending" : "descending");
    body.append(...rows.map(([, row]) => row));
  };
  all("table.sortable").forEach((table) => {
    if (table.tBodies[0].rows.length < 3) return;
    all("thead th", table).forEach((heading, column) => {
      if (heading.classList.contains("wide")) return;
      const button = make("button", heading.textContent, { type: "button" });
      button.addEventListener("click", () => sortBy(table, heading, column));
      heading.replaceChildren(button);
    });
  });

  const list = document.getElementById("concept-list");
  const concepts = all("details.concept", list);
  if (concepts.length > 6) {
    const tools = make("div", "", { class: "tools" });
    const field = make("input", "", { type: "search", placeholder: "Find a phrase", "aria-label": "Find a phrase" });
    const names = concepts.map((concept) => concept.querySelector("h3").textContent.toLowerCase());
    field.addEventListener("input", () => {
      const wanted = field.value.trim().toLowerCase();
      concepts.forEach((concept, i) => { concept.hidden = !names[i].includes(wanted); });
    });
    const toggle = make("button", "Open all", { type: "button" });
    toggle.addEventListener("click", () => {
      const open = toggle.textContent === "Open all";
      concepts.forEach((concept) => { concept.open = open; });
      toggle.textContent = open ? "Close all" : "Open all";
    });
    tools.append(field, toggle);
    list.before(tools);
  }

  const reveal = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let at = target; at; at = at.parentElement) if (at.nodeName === "DETAILS") at.open = true;
    target.hidden = false;
    target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  if (location.hash) reveal();

  let closed = [];
  addEventListener("beforeprint", () => {
    closed = all("details:not([open])");
    closed.forEach((details) => { details.open = true; });
  });
  addEventListener("afterprint", () => closed.forEach((details) => { details.open = false; }));
})();
