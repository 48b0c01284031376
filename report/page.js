"use strict";
/* Sorts a table by the column whose heading is pressed: numbers by their exact value in data-value,
 * other cells as text. */
for (const table of document.querySelectorAll("main table")) {
	const body = table.tBodies[0];
	const value = (row, i) => {
		const cell = row.cells[i];
		return cell.dataset.value !== undefined ? Number(cell.dataset.value) : cell.textContent;
	};
	const compare = (a, b) => {
		if (typeof a === "number" && typeof b === "number")
			return a - b;
		return typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? -1 : 1;
	};
	for (const th of table.tHead.rows[0].cells) {
		const button = document.createElement("button");
		button.type = "button";
		button.append(...th.childNodes);
		th.append(button);
		button.addEventListener("click", () => {
			const down = th.getAttribute("aria-sort") === "ascending";
			for (const other of table.tHead.rows[0].cells)
				other.removeAttribute("aria-sort");
			th.setAttribute("aria-sort", down ? "descending" : "ascending");
			const rows = [...body.rows];
			rows.sort((a, b) => (down ? -1 : 1) * compare(value(a, th.cellIndex), value(b, th.cellIndex)));
			body.append(...rows);
		});
	}
}
