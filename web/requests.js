// The requests of the queue with their progress, and one of them with its jobs and its graph.
import {h, said, when, between, duration, number, progress, facts} from "./dom.js";
import {get, query} from "./api.js";
import {table} from "./table.js";
import {actions} from "./actions.js";
import {jobList} from "./jobs.js";
import {graph} from "./dag.js";

const SIZES = [100, 1000, 10000]; // rows of a page
let size = SIZES[0]; // what was chosen last, for all listings

export function counts(r) {
    const waiting = r.waiting || 0;
    return [["completed", r.completed - r.failed], ["failed", r.failed], ["running", r.running], ["held", r.held], ["waiting", waiting],
            ["idle", r.idle - waiting], ["removed", r.removed]];
}

function expected(r) {
    if (r.finished_ms) return ["ended ", when(r.finished_ms)];
    if (r.eta_end_ms) return ["about ", between(r)];
    return "–";
}

/** Buttons for the pages of a listing whose cursors only go forward: those that were passed are kept. */
export function pager(load) {
    const passed = [];
    let next = null, here = null;
    const back = h("button", {type: "button", onclick: () => go(passed.pop())}, "‹ Back");
    const on = h("button", {type: "button", onclick: () => { passed.push(here); go(next); }}, "Next ›");
    const words = h("span", {class: "small", role: "status"});
    const rows = h("select", {"aria-label": "Rows of a page", onchange: () => { size = Number(rows.value); passed.length = 0; go(null); }},
        SIZES.map(n => h("option", {value: n, selected: n === size}, `${number(n)} rows`)));
    const element = h("nav", {class: "pager", "aria-label": "Pages"}, back, words, on, rows);

    function go(cursor) {
        here = cursor ?? null;
        return load(here);
    }
    return {element, get here() { return here; }, get size() { return size; },
        reset() { passed.length = 0; return go(null); },
        shown(count, cursor) {
            next = cursor;
            back.disabled = passed.length === 0;
            on.disabled = !next;
            element.hidden = passed.length === 0 && !next && count <= SIZES[0];
            words.textContent = `page ${passed.length + 1}, ${number(count)} rows`;
        }};
}

export async function requests(root, page) {
    const finished = h("input", {type: "checkbox", id: "finished"});
    const mine = h("input", {type: "checkbox", id: "mine"});
    const list = table({caption: "Requests", quiet: true, empty: "No requests. What you submit is here until it is finished.", key: r => String(r.id), columns: [
        {title: "Request", class: "id", cell: r => h("a", {href: `#/requests/${r.id}`}, r.id), sort: r => r.id},
        {title: "Name", class: "name", cell: r => r.batch ? [said(r.batch), h("div", {class: "small"}, said(r.cmd))] : said(r.cmd), sort: r => r.batch || r.cmd},
        {title: "Owner", cell: r => said(r.owner), sort: r => r.owner},
        {title: "Submitted", cell: r => when(r.submitted_ms), sort: r => r.submitted_ms},
        {title: "Jobs", class: "number", cell: r => number(r.jobs), sort: r => r.jobs},
        {title: "Progress", class: "wide", cell: r => progress(counts(r), r.jobs), sort: r => (r.completed + r.removed) / r.jobs},
        {title: "End", cell: expected, sort: r => r.finished_ms || r.eta_end_ms},
    ]});
    const pages = pager(load);

    async function load(after) {
        const got = await page.guarded(() => get(query("/v1/requests", {limit: pages.size, after, all: finished.checked, owner: mine.checked ? page.session.you : ""}), page.signal));
        if (!got) return;
        list.update(got.requests);
        pages.shown(got.requests.length, got.next);
    }
    finished.addEventListener("change", () => pages.reset());
    mine.addEventListener("change", () => pages.reset());
    root.append(h("h1", {}, "Requests"), h("div", {class: "bar"},
        page.isOperator ? h("label", {class: "check", for: "mine"}, mine, " mine only") : null,
        h("label", {class: "check", for: "finished"}, finished, " finished ones too"),
        h("a", {class: "button main", href: "#/submit"}, "Submit")), list.element, pages.element);
    await pages.reset();
    page.live(() => load(pages.here));
}

export async function request(root, page) {
    const id = page.route.id;
    const head = h("div", {}), picture = h("div", {});
    const buttons = actions(page, () => [id], () => look());
    root.append(h("p", {class: "crumbs"}, h("a", {href: "#/requests"}, "Requests")), h("h1", {}, "Request ", said(id)), head, buttons.element, picture);
    page.title(`Request ${id}`);
    let first = null, at = -Infinity, stale = false;

    async function look() {
        const r = await get(`/v1/requests/${encodeURIComponent(id)}${first ? "" : "?edges=1"}`, page.signal);
        first ||= r;
        head.replaceChildren(progress(counts(r), r.jobs), facts(
            ["Name", r.batch && said(r.batch)], ["Program", r.cmd && said(r.cmd, {class: "said code"})], ["Owner", said(r.owner)], ["Jobs", number(r.jobs)],
            ["Submitted", when(r.submitted_ms)], ["Ended", r.finished_ms && when(r.finished_ms)],
            ["Next start expected", r.eta_start_ms && when(r.eta_start_ms)],
            ["End expected", r.eta_end_ms && [between(r), ` (in ${duration(r.eta_end_ms - Date.now())})`]]));
        buttons.enable(r.completed + r.removed < r.jobs);
        stale = Boolean(first.edges);
        if (stale && performance.now() - at > (r.jobs > 300 ? 8000 : 800)) { // a large graph is drawn every few seconds
            stale = false;
            at = performance.now();
            await graph(picture, page, id, first.edges, r.jobs);
        }
    }
    const mine = changed => !changed || changed.has(Number(id));
    await look();
    const list = jobList(page, {id, all: "1"});
    root.append(h("h2", {}, "Jobs"), list.element);
    await list.load();
    page.live(look, {changed: mine});
    page.every(1000, () => stale ? look() : undefined);
}
