// What is wrong first, then what there is, and how the queue and what it gets done have changed over the last hour or day.
import {h, said, badge, number, when, bytes} from "./dom.js";
import {get, query} from "./api.js";
import {chart} from "./chart.js";

const EVERY_MS = 5000, HELD_LOOKED = 200, POINTS = 240;
const SPANS = [[3600000, "last hour"], [6 * 3600000, "last six hours"], [86400000, "last day"]];
const ENDED = ["submitted", "matched", "ended"]; // counts since the server's start
let samples = []; // they outlive the view

/** What the server has sampled since the last time; it has begun anew when its counts are smaller. */
async function sample(signal) {
    const last = samples[samples.length - 1];
    const got = (await get(query("/v1/series", {since_ms: last?.at_ms}), signal)).samples;
    samples = [...samples, ...got].slice(-2880);
}

/** The samples of a span in at most POINTS points: means, and rates for a minute. */
function points(span) {
    const from = Date.now() - span, width = span / POINTS, out = [];
    let before = null;
    for (const s of samples) {
        if (s.at_ms >= from && before) {
            const slot = Math.floor((s.at_ms - from) / width);
            let p = out[out.length - 1];
            if (!p || p.slot !== slot) out.push(p = {slot, count: 0, ms: 0, at_ms: 0, idle: 0, running: 0, held: 0, submitted: 0, matched: 0, ended: 0, error: 0});
            p.count++;
            p.at_ms = s.at_ms;
            p.ms += Math.max(1, s.at_ms - before.at_ms);
            for (const n of ["idle", "running", "held"]) p[n] += s[n];
            for (const n of ENDED) p[n] += s[n] >= before[n] ? s[n] - before[n] : s[n];
            p.error += (s.eta_error_ms || 0) / 1000;
        }
        before = s;
    }
    return out.map(p => ({at_ms: p.at_ms, idle: p.idle / p.count, running: p.running / p.count, held: p.held / p.count, error: p.error / p.count,
        submitted: 60000 * p.submitted / p.ms, matched: 60000 * p.matched / p.ms, ended: 60000 * p.ended / p.ms}));
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
    const problems = h("ul", {class: "problems"}), tiles = h("div", {class: "tiles"}), charts = h("div", {class: "charts"}), decisions = h("p", {class: "small", id: "decisions"});
    const span = h("select", {id: "span", onchange: () => draw()}, SPANS.map(([ms, words]) => h("option", {value: ms}, words)));
    root.append(h("h1", {}, "Overview"), h("section", {"aria-label": "Problems"}, h("h2", {}, "Problems"), problems), tiles, h("section", {"aria-label": "Over time"}, h("div", {class: "bar"}, h("h2", {}, "Over time"), h("label", {for: "span", class: "small"}, "show the"), span), charts, decisions));

    function tile(state, n, words, href) {
        return h("a", {class: "tile", href}, h("span", {class: "big"}, number(n)), badge(state, words));
    }

    async function look() {
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
        const shown = points(Number(span.value)), [a, b] = samples.slice(-2);
        const rate = b && b.matched >= a.matched ? 1000 * (b.matched - a.matched) / Math.max(1, b.at_ms - a.at_ms) : null;
        decisions.textContent = rate === null ? "" : `Decisions in the last half minute: ${number(Math.round(10 * rate) / 10)} a second.`;
        charts.replaceChildren(chart("Jobs in the queue", shown, [["idle", "idle"], ["running", "running"], ["held", "held"]]),
            chart("Jobs a minute", shown, [["submitted", "submitted"], ["matched", "matched"], ["ended", "ended"]]),
            chart("Error of expected starts, seconds", shown, [["error", "median"]]));
    }

    await Promise.all([look(), page.guarded(() => sample(page.signal))]);
    draw();
    page.live(look, {every: 2 * EVERY_MS, pause: 2000});
    page.every(6 * EVERY_MS, async () => {
        await sample(page.signal);
        draw();
    });
}
