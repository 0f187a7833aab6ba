// Tables that change in place: a row keeps its element as long as its key is there, a cell as long as it looks the same, so that
// focus and what is marked stay. On a narrow screen each row is a card (style.css).
import {h} from "./dom.js";

/** columns: [{title, cell: row => text or element, sort: row => value, class, always}]; key: row => text. select: a set of keys
 *  that are marked, kept up to date; or nothing. quiet: the caption is for screen readers, as a heading says it already. */
export function table({caption, columns, key, empty = "Nothing.", quiet = false, select, onSelect, label}) {
    const state = {by: null, down: false, rows: []};
    const shown = new Map();
    const body = h("tbody", {role: "rowgroup"});
    const nothing = h("p", {class: "empty"}, empty);
    const all = select ? h("input", {type: "checkbox", "aria-label": "Mark all rows of this page", onchange: () => mark(all.checked)}) : null;
    const heads = columns.map(c => h("th", {scope: "col", role: "columnheader", class: c.class},
        c.sort ? h("button", {type: "button", class: "plain sort", onclick: () => sortBy(c)}, c.title, h("span", {"aria-hidden": "true", class: "arrow"}, " ↕")) : c.title));
    const element = h("div", {class: "table"}, h("table", {role: "table"},
        h("caption", {class: quiet ? "quiet" : null}, caption), h("thead", {role: "rowgroup"}, h("tr", {role: "row"}, all ? h("th", {scope: "col", role: "columnheader", class: "mark"}, all) : null, heads)), body), nothing);

    function mark(on) {
        for (const row of state.rows) on ? select.add(key(row)) : select.delete(key(row));
        for (const tr of shown.values()) tr.box.checked = on;
        onSelect?.();
    }

    function sortBy(c) {
        state.down = state.by === c ? !state.down : false;
        state.by = c;
        columns.forEach((other, i) => {
            heads[i].setAttribute("aria-sort", other !== c ? "none" : state.down ? "descending" : "ascending");
            const arrow = heads[i].querySelector(".arrow");
            if (arrow) arrow.textContent = other !== c ? " ↕" : state.down ? " ▼" : " ▲";
        });
        draw();
    }

    function sorted() {
        if (!state.by) return state.rows;
        const value = state.by.sort, sign = state.down ? -1 : 1;
        return [...state.rows].sort((a, b) => {
            const x = value(a), y = value(b);
            return sign * (x === y ? 0 : x === null || x === undefined ? 1 : y === null || y === undefined ? -1 : x < y ? -1 : 1);
        });
    }

    function makeRow(k) {
        const tr = h("tr", {role: "row"});
        const box = select ? h("input", {type: "checkbox", "aria-label": `Mark ${label ? label(k) : k}`,
            onchange: () => { box.checked ? select.add(k) : select.delete(k); onSelect?.(); }}) : null;
        if (box) tr.append(h("td", {role: "cell", class: "mark"}, box));
        return {tr, box, cells: []};
    }

    function fillRow(r, row) {
        columns.forEach((c, i) => {
            const fresh = h("td", {role: "cell", class: c.class, "data-label": c.title}, h("div", {}, c.cell(row)));
            if (!r.cells[i]) r.tr.append(fresh);
            else if (r.cells[i].isEqualNode(fresh)) return;
            else r.cells[i].replaceWith(fresh);
            r.cells[i] = fresh;
        });
    }

    function draw() {
        const rows = sorted(), keys = new Set(rows.map(key));
        for (const [k, r] of shown)
            if (!keys.has(k)) {
                r.tr.remove();
                shown.delete(k);
            }
        let at = body.firstChild;
        for (const row of rows) {
            const k = key(row), r = shown.get(k) || makeRow(k);
            shown.set(k, r);
            fillRow(r, row);
            if (r.box) r.box.checked = select.has(k);
            if (r.tr === at) at = at.nextSibling;
            else body.insertBefore(r.tr, at);
        }
        nothing.hidden = rows.length > 0;
        element.firstChild.hidden = rows.length === 0;
        if (all) all.checked = rows.length > 0 && rows.every(row => select.has(key(row)));
    }

    return {element, update(rows) { state.rows = rows; draw(); }, draw, rows: () => state.rows};
}
