// What is wrong first, then what there is, and how the queue and what it gets done have changed while this page was open.
import {h, said, badge, number, when, bytes} from "./dom.js";
import {get, query} from "./api.js";
import {chart} from "./chart.js";

const SAMPLES = 720, EVERY_MS = 5000, HELD_LOOKED = 1000;
const samples = []; // they outlive the view

/** The values of Prometheus's text: name → sum over all labels, and name{state} by state. */
function metrics(text) {
    const out = {};
    for (const line of text.split("\n")) {
        const m = /^([a-z_]+)(?:\{([^}]*)\})? (\S+)$/.exec(line);
        if (!m) continue;
        out[m[1]] = (out[m[1]] || 0) + Number(m[3]);
        const state = /(?:^|,)(state|outcome)="([a-z_]+)"/.exec(m[2] || "");
        if (state) out[`${m[1]} ${state[2]}`] = (out[`${m[1]} ${state[2]}`] || 0) + Number(m[3]);
    }
    return out;
}

async function sample(signal) {
    const response = await fetch("/metrics", {credentials: "same-origin", cache: "no-store", signal});
    if (!response.ok) return;
    const m = metrics(await response.text()), before = samples[samples.length - 1], at_ms = Date.now();
    const seconds = before ? (at_ms - before.at_ms) / 1000 : 0;
    if (before && seconds < 1) return;
    const rate = (name, field) => before && m[name] >= before[field] ? (m[name] - before[field]) / seconds * 60 : 0;
    samples.push({at_ms, idle: m["drover_jobs idle"] || 0, running: m["drover_jobs running"] || 0, held: m["drover_jobs held"] || 0,
        ended: m["drover_attempts_ended_total exited"] || 0, submitted: m.drover_jobs_submitted_total || 0, matched: m.drover_jobs_matched_total || 0,
        ended_rate: rate("drover_attempts_ended_total exited", "ended"), submitted_rate: rate("drover_jobs_submitted_total", "submitted"), matched_rate: rate("drover_jobs_matched_total", "matched")});
    if (samples.length > SAMPLES) samples.shift();
}

function placeProblems(agents) {
    const out = [];
    for (const a of agents) {
        const link = h("a", {href: "#/places"}, said(a.name));
        if (a.state === "away") out.push([badge("away", "away"), link, ["not heard of since ", when(a.seen_ms)]]);
        if (a.revoked) out.push([badge("problem", "revoked"), link, "its certificates were revoked"]);
        if (a.drained) out.push([badge("draining", "drained"), link, said(a.drained)]);
        for (const q of a.state === "away" ? [] : a.queues) {
            if (q.unreachable) out.push([badge("unreachable", "unreachable"), link, [said(q.name), ": ", said(q.unreachable)]]);
            if (q.closed) out.push([badge("closed", "closed"), link, [said(q.name), ": ", said(q.closed)]]);
        }
    }
    return out;
}

function storeProblems(stores) {
    return stores.flatMap(s => s.links.filter(l => l.down_ms).map(l => [badge("down", "no answer"), h("a", {href: "#/data"}, said(s.name)),
        ["to ", said(l.agent), " since ", when(l.down_ms), ": ", said(l.down_why)]]));
}

async function heldProblems(signal) {
    const got = await get(query("/v1/jobs", {state: "held", limit: HELD_LOOKED}), signal);
    const reasons = new Map();
    for (const j of got.jobs) {
        const why = (j.hold_reason || "").replace(/\d+/g, "N").slice(0, 120);
        if (!reasons.has(why)) reasons.set(why, {count: 0, job: j});
        reasons.get(why).count++;
    }
    return [...reasons.values()].sort((a, b) => b.count - a.count).slice(0, 10).map(r => [badge("held", "held"),
        h("a", {href: "#/jobs?state=held"}, `${got.next ? "more than " : ""}${number(r.count)} ${r.count === 1 ? "job" : "jobs"}`), [said(r.job.hold_reason), " (", h("a", {href: `#/jobs/${r.job.id}`}, r.job.id), ")"]]);
}

export async function overview(root, page) {
    const problems = h("ul", {class: "problems"}), tiles = h("div", {class: "tiles"}), charts = h("div", {class: "charts"});
    root.append(h("h1", {}, "Overview"), h("section", {"aria-label": "Problems"}, h("h2", {}, "Problems"), problems), tiles, h("section", {"aria-label": "Over time"}, h("h2", {}, "While this page is open"), charts));
    let looked = 0;

    function tile(state, n, words, href) {
        return h("a", {class: "tile", href}, h("span", {class: "big"}, number(n)), badge(state, words));
    }

    async function look() {
        looked = performance.now();
        const [server, agents, stores, held] = await Promise.all([get("/v1/server", page.signal), get("/v1/agents", page.signal), get("/v1/stores", page.signal), heldProblems(page.signal)]);
        const list = [...(server.accepting ? [] : [[badge("problem", "no new work"), "the server", said(server.reason)]]), ...placeProblems(agents.agents), ...storeProblems(stores.stores), ...held];
        if (!agents.agents.some(a => a.state === "connected")) list.unshift([badge("problem", "no place"), h("a", {href: "#/places"}, "Places"), "no agent is connected: nothing runs"]);
        problems.replaceChildren(...(list.length ? list.map(p => h("li", {}, p[0], h("span", {class: "what"}, p[1]), h("span", {}, p[2]))) : [h("li", {class: "fine"}, badge("completed", "none"), h("span", {}, "No place, store or job needs anybody."))]));
        const j = server.jobs;
        tiles.replaceChildren(tile("running", j.running, "running", "#/jobs?state=running"), tile("idle", j.idle, "idle", "#/jobs?state=idle"), tile("held", j.held, "held", "#/jobs?state=held"),
            tile("completed", j.completed - j.failed, "done well", "#/jobs?from=history"), tile("failed", j.failed, "failed", "#/jobs?from=history&constraint=ExitCode+%21%3D+0"),
            tile("connected", agents.agents.filter(a => a.state === "connected").length, "places", "#/places"));
        tiles.append(h("p", {class: "small moved"}, `Copied to jobs ${bytes(server.moved.bytes_in)}, from them ${bytes(server.moved.bytes_out)}. Server ${server.version} at ${server.domain}.`));
    }

    function draw() {
        if (charts.querySelector("details[open]")) return; // somebody reads it
        charts.replaceChildren(chart("Jobs in the queue", samples, [["idle", "idle"], ["running", "running"], ["held", "held"]]),
            chart("Jobs a minute", samples, [["submitted_rate", "submitted"], ["matched_rate", "matched"], ["ended_rate", "ended"]]));
    }

    await Promise.all([look(), page.guarded(() => sample(page.signal))]);
    draw();
    page.onChange(() => { if (performance.now() - looked > 2000) return look(); return undefined; });
    page.every(EVERY_MS, async () => {
        await sample(page.signal);
        draw();
        if (performance.now() - looked > 2 * EVERY_MS) await look();
    });
}
