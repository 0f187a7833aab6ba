// The graph of a request, drawn by levels: each job, or node of jobs, below all that it waits for. A graph that is too large to be
// read is drawn a line for each level.
import {h, svg, clean, number, badge, jobState, progress} from "./dom.js";
import {get, query} from "./api.js";

const JOBS_MAX = 5000, DRAWN_MAX = 250, BOX = {w: 132, h: 40, x: 22, y: 46};
const WORST = ["failed", "held", "running", "removed", "idle", "waiting", "completed"];
const SIGNS = {completed: "✓", failed: "✗", held: "!", running: "▶", removed: "–", idle: "○", waiting: "◌"};

function members(text) {
    const out = [];
    for (const part of text.split(",")) {
        const [from, to] = part.split("-").map(Number);
        for (let i = from; i <= (to ?? from); i++) out.push(i);
    }
    return out;
}

const plainState = j => {
    const s = jobState(j);
    if (["reserved", "authorised"].includes(s)) return "idle";
    return ["matched", "staging", "suspended", "vacating"].includes(s) ? "running" : s;
};

/** Nodes with their jobs, and links between nodes. */
function build(jobs, edges) {
    const nodes = new Map(), of = new Map();
    for (const j of jobs) {
        const name = j.ad?.DAGNodeName ?? String(j.member);
        if (!nodes.has(name)) nodes.set(name, {name, jobs: [], level: 0, parents: new Set(), children: new Set()});
        nodes.get(name).jobs.push(j);
        of.set(j.member, nodes.get(name));
    }
    for (const edge of edges.split(";")) {
        const m = /^\s*([0-9,-]+)\s*>\s*([0-9,-]+)/.exec(edge);
        if (!m) continue;
        for (const p of members(m[1]))
            for (const c of members(m[2])) {
                const a = of.get(p), b = of.get(c);
                if (a && b && a !== b) {
                    a.children.add(b);
                    b.parents.add(a);
                }
            }
    }
    const open = new Map([...nodes.values()].map(n => [n, n.parents.size]));
    const ready = [...nodes.values()].filter(n => n.parents.size === 0);
    for (let n; (n = ready.pop());)
        for (const c of n.children) {
            c.level = Math.max(c.level, n.level + 1);
            open.set(c, open.get(c) - 1);
            if (open.get(c) === 0) ready.push(c);
        }
    for (const n of nodes.values()) {
        const states = new Set(n.jobs.map(plainState));
        n.state = WORST.find(s => states.has(s)) || "idle";
    }
    return [...nodes.values()];
}

function levelsOf(nodes) {
    const levels = [];
    for (const n of nodes) (levels[n.level] ||= []).push(n);
    for (let l = 1; l < levels.length; l++) { // below the middle of what they wait for
        levels[l - 1]?.forEach((n, i) => { n.at = i; });
        const mean = n => [...n.parents].reduce((sum, p) => sum + (p.at || 0), 0) / (n.parents.size || 1);
        levels[l]?.sort((a, b) => mean(a) - mean(b));
    }
    return levels;
}

function draw(levels) {
    const widest = Math.max(...levels.map(l => l.length));
    const width = widest * (BOX.w + BOX.x) + BOX.x, height = levels.length * (BOX.h + BOX.y) - BOX.y + 2 * BOX.x;
    const lines = svg("g", {class: "edges"}), boxes = svg("g", {});
    levels.forEach((level, l) => level.forEach((n, i) => {
        n.x = (width - level.length * (BOX.w + BOX.x) + BOX.x) / 2 + i * (BOX.w + BOX.x);
        n.y = BOX.x + l * (BOX.h + BOX.y);
    }));
    for (const n of levels.flat()) {
        for (const p of n.parents) {
            const x1 = p.x + BOX.w / 2, y1 = p.y + BOX.h, x2 = n.x + BOX.w / 2, y2 = n.y, middle = (y1 + y2) / 2;
            lines.append(svg("path", {d: `M${x1} ${y1} C${x1} ${middle} ${x2} ${middle} ${x2} ${y2}`}));
        }
        const name = clean(n.name), label = name.length > 14 ? `${name.slice(0, 13)}…` : name;
        boxes.append(svg("a", {href: `#/jobs/${n.jobs[n.jobs.length - 1].id}`, "aria-label": `${name}: ${n.state}`}, svg("title", {}, `${name}: ${n.state}, ${n.jobs.length} ${n.jobs.length === 1 ? "job" : "jobs"}`),
            svg("rect", {class: `node n-${n.state}`, x: n.x, y: n.y, width: BOX.w, height: BOX.h, rx: 5}),
            svg("text", {x: n.x + 8, y: n.y + 17, class: "node-name"}, label),
            svg("text", {x: n.x + 8, y: n.y + 33, class: "node-state"}, `${SIGNS[n.state]} ${n.state}${n.jobs.length > 1 ? ` (${n.jobs.length})` : ""}`)));
    }
    return svg("svg", {class: "dag", viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": "Graph of the request's jobs"}, lines, boxes);
}

function levelLines(levels) {
    return h("ol", {class: "levels", start: 0}, levels.map(level => {
        const parts = WORST.map(s => [s, level.filter(n => n.state === s).length]);
        return h("li", {}, progress(parts, level.length));
    }));
}

export async function graph(place, page, id, edges, count) {
    if (count > JOBS_MAX) {
        if (!place.firstChild) place.append(h("h2", {}, "Graph"), h("p", {}, `The graph has ${number(count)} jobs: `, h("span", {class: "code"}, `drover dag show ${id}`), " draws it."));
        return;
    }
    const got = await get(query("/v1/jobs", {id, all: "1", attributes: "DAGNodeName", limit: JOBS_MAX}), page.signal);
    const nodes = build(got.jobs, edges), levels = levelsOf(nodes);
    const old = place.querySelector(".dag-box"), at = old ? [old.scrollLeft, old.scrollTop] : null;
    const focused = old?.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    const key = h("p", {class: "key"}, WORST.filter(s => nodes.some(n => n.state === s)).map(s => [badge(s, `${number(nodes.filter(n => n.state === s).length)} ${s}`), " "]));
    const box = h("div", {class: "dag-box", tabindex: "0", role: "region", "aria-label": "Graph"}, nodes.length > DRAWN_MAX ? levelLines(levels) : draw(levels));
    place.replaceChildren(h("h2", {}, "Graph"), key, box);
    [box.scrollLeft, box.scrollTop] = at || [(box.scrollWidth - box.clientWidth) / 2, 0];
    if (focused) box.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
}
