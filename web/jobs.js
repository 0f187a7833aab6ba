// Listings of jobs: a page at a time, however many there are. The filters are the server's; the heads of the columns sort the page.
import {h, said, when, duration, number, badge, jobState, clean} from "./dom.js";
import {get, query} from "./api.js";
import {table} from "./table.js";
import {actions} from "./actions.js";
import {pager} from "./requests.js";

function where(j) {
    if (j.unreachable) return [badge("unreachable", "unreachable"), " ", said(j.agent)];
    return j.agent ? said(`${j.queue}@${j.agent}`) : "–";
}

function outcome(j) {
    if (j.state === "held") return said(j.hold_reason);
    if (j.waits_for) return said(j.waits_for); // it is a sentence
    if (j.exit_signal) return `signal ${j.exit_signal}`;
    if (j.exit_code !== null && j.exit_code !== undefined) return `exit code ${j.exit_code}`;
    return "";
}

function took(j) {
    if (!j.started_ms) return "–";
    return duration((j.ended_ms || Date.now()) - j.started_ms);
}

/** The jobs that the filter (parameters of GET /v1/jobs, or of /v1/history with `history`) names, with marks and buttons. */
export function jobList(page, filter, {history = false} = {}) {
    const marked = new Set();
    const buttons = actions(page, () => [...marked], () => { marked.clear(); showMarks(); return load(pages.here); });
    const said_ = h("span", {class: "small", role: "status"});
    const list = table({caption: history ? "Finished jobs, the latest first" : "Jobs", quiet: !history, empty: "No jobs.", key: j => j.id, select: history ? null : marked, onSelect: showMarks, label: k => `job ${k}`, columns: [
        {title: "Job", class: "id", cell: j => h("a", {href: `#/jobs/${j.id}`}, j.id), sort: j => j.request * 1e8 + j.member},
        {title: "State", cell: j => badge(jobState(j)), sort: jobState},
        {title: "Command", class: "name", cell: j => said(`${j.cmd || ""} ${j.args || ""}`.slice(0, 300), {class: "said code"}), sort: j => `${j.cmd} ${j.args}`},
        {title: "Owner", cell: j => said(j.owner), sort: j => j.owner},
        {title: "Place", cell: where, sort: j => j.agent || ""},
        {title: "Submitted", cell: j => when(j.submitted_ms), sort: j => j.submitted_ms},
        {title: "Ran", class: "number", cell: took, sort: j => j.started_ms ? (j.ended_ms || Date.now()) - j.started_ms : null},
        {title: "Note", class: "wide", cell: outcome, sort: outcome_text},
    ]});
    const pages = pager(load);
    const bar = history ? null : h("div", {class: "bar"}, said_, buttons.element);
    const element = h("div", {}, bar, list.element, pages.element);
    let rows = [];

    function outcome_text(j) {
        return j.hold_reason || j.waits_for || String(j.exit_signal || j.exit_code || "");
    }

    function showMarks() {
        said_.textContent = marked.size ? `${number(marked.size)} marked` : "Mark jobs to change them.";
        buttons.enable(marked.size > 0);
        list.draw();
    }

    async function load(cursor) {
        const got = await page.guarded(() => get(query(history ? "/v1/history" : "/v1/jobs", {...filter, limit: pages.size, [history ? "before" : "after"]: cursor}), page.signal));
        if (!got) return;
        rows = got.jobs;
        list.update(rows);
        pages.shown(rows.length, got.next);
    }
    showMarks();
    if (!history)
        page.live(() => load(pages.here), {changed: c => !c || rows.length < pages.size || rows.some(j => c.has(j.request))});
    page.every(5000, () => list.draw());
    return {element, load: () => pages.reset()};
}

const STATES = ["", "idle", "reserved", "authorised", "matched", "staging", "running", "suspended", "vacating", "held", "completed", "removed"];

export async function jobs(root, page) {
    const q = page.route.query;
    const field = (id, words, e) => h("p", {class: "field"}, h("label", {for: id}, words), e);
    const from = h("select", {id: "from"}, h("option", {value: "queue"}, "in the queue"), h("option", {value: "history", selected: q.get("from") === "history"}, "finished, latest first"));
    const state = h("select", {id: "state"}, STATES.map(s => h("option", {value: s, selected: q.get("state") === s}, s || "any")));
    const ids = h("input", {id: "ids", value: q.get("id") || "", placeholder: "7, 7.42 or 7.0-99", maxlength: 1000, autocomplete: "off"});
    const owner = h("input", {id: "owner", value: q.get("owner") || "", maxlength: 300, autocomplete: "off"});
    const constraint = h("input", {id: "constraint", value: q.get("constraint") || "", placeholder: "RequestMemory > 4096", maxlength: 4000, autocomplete: "off", spellcheck: "false"});
    const place = h("div", {});

    root.append(h("h1", {}, "Jobs"), h("form", {class: "filter", role: "search", "aria-label": "Filter jobs", onsubmit: e => { e.preventDefault(); go(); }},
        field("from", "Jobs", from), field("state", "State", state), field("ids", "Numbers", ids),
        page.isOperator ? field("owner", "Owner", owner) : null, field("constraint", "Condition (ClassAd)", constraint),
        h("p", {class: "field"}, h("button", {type: "submit", class: "main"}, "Filter"))), place);

    function go() {
        const wanted = query("#/jobs", {from: from.value === "history" ? "history" : "", state: state.value, id: ids.value.trim(), owner: owner.value.trim(), constraint: constraint.value.trim()});
        if (location.hash === wanted) window.dispatchEvent(new HashChangeEvent("hashchange"));
        else location.hash = wanted;
    }
    from.addEventListener("change", () => { state.disabled = from.value === "history"; });
    state.disabled = from.value === "history";
    const history = q.get("from") === "history";
    const list = jobList(page, {id: q.get("id"), owner: q.get("owner"), constraint: q.get("constraint"), state: history ? "" : q.get("state")}, {history});
    place.append(list.element);
    page.title(q.get("state") ? `Jobs: ${clean(q.get("state"))}` : "Jobs");
    await list.load();
}
