// Tables that change in place: a row keeps its element as long as its key is there, a cell as long as it looks the same, so that
// focus and what is marked stay. On a narrow screen each row is a card (style.css). Of a long table only the rows near those that are
// seen are elements, with gaps as high as the others would be.
import {h} from "./dom.js";

const LONG = 300, AROUND = 30; // rows

/** columns: [{title, cell: row => text or element, sort: row => value, class, always}]; key: row => text. select: a set of keys
 *  that are marked, kept up to date; or nothing. quiet: the caption is for screen readers, as a heading says it already. */
export function table({caption, columns, key, empty = "Nothing.", quiet = false, select, onSelect, label}) {
    const state = {by: null, down: false, rows: [], sorted: [], first: 0, last: 0, height: 0, redraw: 0};
    const gap = () => h("tr", {class: "gap", "aria-hidden": "true"}, h("td", {colspan: columns.length + (select ? 1 : 0)}));
    const above = gap(), below = gap();
    const shown = new Map();
    const body = h("tbody", {role: "rowgroup"});
    const nothing = h("p", {class: "empty"}, empty);
    const all = select ? h("input", {type: "checkbox", "aria-label": "Mark all rows of this page", onchange: () => mark(all.checked)}) : null;
    const heads = columns.map(c => h("th", {scope: "col", role: "columnheader", class: c.class},
        c.sort ? h("button", {type: "button", class: "plain sort", onclick: () => sortBy(c)}, c.title, h("span", {"aria-hidden": "true", class: "arrow"}, " ↕")) : c.title));
    const whole = h("table", {role: "table"},
        h("caption", {class: quiet ? "quiet" : null}, caption), h("thead", {role: "rowgroup"}, h("tr", {role: "row"}, all ? h("th", {scope: "col", role: "columnheader", class: "mark"}, all) : null, heads)), body);
    const element = h("div", {class: "table"}, whole, nothing);

    function mark(on) {
        for (const row of state.rows) on ? select.add(key(row)) : select.delete(key(row));
        for (const r of shown.values()) r.box.checked = on;
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

    /** The numbers of the rows that are to be elements: [first, last). */
    function near() {
        const count = state.sorted.length;
        if (count <= LONG) return [0, count];
        const height = state.height || 36, top = -body.getBoundingClientRect().top;
        const first = Math.min(Math.max(0, Math.floor(top / height) - AROUND), count - 1);
        return [first, Math.min(count, first + Math.ceil(innerHeight / height) + 2 * AROUND)];
    }

    /** Makes rows [first, last) the elements of the table; those that are there already are filled only if `again`. */
    function place(first, last, again) {
        const rows = state.sorted.slice(first, last), keys = new Set(rows.map(key)), long = state.sorted.length > LONG;
        for (const [k, r] of shown)
            if (!keys.has(k)) {
                r.tr.remove();
                shown.delete(k);
            }
        if (long && !above.parentNode) body.prepend(above);
        if (!long) above.remove(), below.remove();
        let at = long ? above.nextSibling : body.firstChild;
        rows.forEach((row, i) => {
            const k = key(row), old = shown.get(k), r = old || makeRow(k);
            shown.set(k, r);
            if (again || !old) fillRow(r, row);
            if (r.box) r.box.checked = select.has(k);
            if (long) r.tr.setAttribute("aria-rowindex", first + i + 2); // the head is the first
            else r.tr.removeAttribute("aria-rowindex");
            if (r.tr === at) at = at.nextSibling;
            else body.insertBefore(r.tr, at);
        });
        if (long) {
            body.append(below);
            const from = above.nextSibling.getBoundingClientRect().top, to = below.getBoundingClientRect().top;
            if (rows.length) state.height = (to - from) / rows.length;
            above.firstChild.style.height = `${first * state.height}px`;
            below.firstChild.style.height = `${(state.sorted.length - last) * state.height}px`;
        }
        [state.first, state.last] = [first, last];
    }

    function onScroll() {
        if (state.sorted.length <= LONG || state.redraw) return;
        state.redraw = requestAnimationFrame(() => {
            state.redraw = 0;
            const [first, last] = near();
            // within half of what is around them there is nothing to do
            if (element.isConnected && (Math.abs(first - state.first) > AROUND / 2 || Math.abs(last - state.last) > AROUND / 2)) place(first, last, false);
        });
    }

    function draw() {
        const rows = state.sorted = sorted(), long = rows.length > LONG;
        for (const name of ["scroll", "resize"]) (long ? addEventListener : removeEventListener)(name, watch, {passive: true});
        whole.setAttribute("aria-rowcount", rows.length + 1);
        place(...near(), true);
        nothing.hidden = rows.length > 0;
        whole.hidden = rows.length === 0;
        if (all) all.checked = rows.length > 0 && rows.every(row => select.has(key(row)));
    }

    function watch() {
        if (element.isConnected) return onScroll();
        for (const name of ["scroll", "resize"]) removeEventListener(name, watch); // the view has gone
    }

    return {element, update(rows) { state.rows = rows; draw(); }, draw, rows: () => state.rows};
}
