// The graph of a request, drawn by levels: each job, or node of jobs, below all that it waits for. A graph that is too large to be
// read is drawn a line for each level.
import {h, svg, clean, number, badge, jobState, progress} from "./dom.js";
import {get, query} from "./api.js";

const JOBS_MAX = 5000, LINKS_MAX = 1000000, DRAWN_MAX = 250, BENDS_MAX = 2000, BOX = {w: 132, h: 40, x: 22, y: 46};
const WORST = ["failed", "held", "running", "removed", "idle", "waiting", "completed"];
const SIGNS = {completed: "✓", failed: "✗", held: "!", running: "▶", removed: "–", idle: "○", waiting: "◌"};

/** The numbers of "1,3-5"; null: they are more than `most`. */
function members(text, most) {
    const out = [];
    for (const part of text.split(",")) {
        const [from, to] = part.split("-").map(Number);
        for (let i = from; i <= (to ?? from); i++) if (out.push(i) > most) return null;
    }
    return out;
}

const plainState = j => {
    const s = jobState(j);
    if (["reserved", "authorised"].includes(s)) return "idle";
    return ["matched", "staging", "suspended", "vacating"].includes(s) ? "running" : s;
};

/** Nodes with their jobs, and links between nodes; null: there are more links than a browser has time for. */
function build(jobs, edges) {
    const nodes = new Map(), of = new Map();
    let left = LINKS_MAX;
    for (const j of jobs) {
        const name = j.ad?.DAGNodeName ?? String(j.member);
        if (!nodes.has(name)) nodes.set(name, {name, jobs: [], level: 0, parents: new Set(), children: new Set()});
        nodes.get(name).jobs.push(j);
        of.set(j.member, nodes.get(name));
    }
    for (const edge of edges.split(";")) {
        const m = /^\s*([0-9,-]+)\s*>\s*([0-9,-]+)/.exec(edge);
        if (!m) continue;
        const parents = members(m[1], left), children = parents && members(m[2], left);
        if (!children || (left -= Math.max(parents.length * children.length, parents.length + children.length)) < 0) return null;
        for (const p of parents)
            for (const c of children) {
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

/** Gives each node the links from its parents. A link that passes levels has a bend in each of them, where it goes between the
 *  boxes; if there are too many of these, there are none. Returns the bends. */
function bends(nodes) {
    const passed = nodes.reduce((sum, n) => sum + [...n.parents].reduce((s, p) => s + n.level - p.level - 1, 0), 0), all = [];
    for (const n of nodes)
        n.links = [...n.parents].map(from => {
            const via = [];
            for (let level = from.level + 1; level < n.level && passed <= BENDS_MAX; level++)
                via.push({level, links: [{from: via[via.length - 1] || from, via: []}]});
            all.push(...via);
            return {from, via};
        });
    return all;
}

function levelsOf(nodes) {
    const levels = [], above = link => link.via[link.via.length - 1] || link.from;
    for (const n of nodes) (levels[n.level] ||= []).push(n);
    for (let l = 1; l < levels.length; l++) { // below the middle of what they wait for
        levels[l - 1]?.forEach((n, i) => { n.at = i; });
        const mean = n => n.links.reduce((sum, link) => sum + (above(link).at || 0), 0) / (n.links.length || 1);
        levels[l]?.sort((a, b) => mean(a) - mean(b));
    }
    return levels;
}

function draw(levels) {
    const span = n => (n.jobs ? BOX.w : 0) + BOX.x, long = level => level.reduce((sum, n) => sum + span(n), 0);
    const width = Math.max(...levels.map(long)) + BOX.x, height = levels.length * (BOX.h + BOX.y) - BOX.y + 2 * BOX.x;
    const lines = svg("g", {class: "edges"}), boxes = svg("g", {});
    levels.forEach((level, l) => {
        let x = (width - long(level) + BOX.x) / 2;
        for (const n of level) {
            [n.x, n.y, n.middle] = [x, BOX.x + l * (BOX.h + BOX.y), x + (span(n) - BOX.x) / 2];
            x += span(n);
        }
    });
    for (const n of levels.flat().filter(n => n.jobs)) {
        for (const {from, via} of n.links) {
            let d = `M${from.middle} ${from.y + BOX.h}`, last = from;
            for (const to of [...via, n]) {
                const half = (last.y + BOX.h + to.y) / 2;
                d += ` C${last.middle} ${half} ${to.middle} ${half} ${to.middle} ${to.y}${to === n ? "" : ` v${BOX.h}`}`;
                last = to;
            }
            lines.append(svg("path", {d}));
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
    const tooLarge = what => {
        if (!place.firstChild) place.append(h("h2", {}, "Graph"), h("p", {}, `The graph has ${what}: `, h("span", {class: "code"}, `drover dag show ${id}`), " draws it."));
    };
    if (count > JOBS_MAX) return tooLarge(`${number(count)} jobs`);
    const got = await get(query("/v1/jobs", {id, all: "1", attributes: "DAGNodeName", limit: JOBS_MAX}), page.signal);
    const nodes = build(got.jobs, edges);
    if (!nodes) return tooLarge(`more than ${number(LINKS_MAX)} links`);
    const between = bends(nodes), drawn = nodes.length <= DRAWN_MAX, levels = levelsOf(drawn ? [...nodes, ...between] : nodes);
    const old = place.querySelector(".dag-box"), at = old ? [old.scrollLeft, old.scrollTop] : null;
    const focused = old?.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    const key = h("p", {class: "key"}, WORST.filter(s => nodes.some(n => n.state === s)).map(s => [badge(s, `${number(nodes.filter(n => n.state === s).length)} ${s}`), " "]));
    const box = h("div", {class: "dag-box", tabindex: "0", role: "region", "aria-label": "Graph"}, drawn ? draw(levels) : levelLines(levels));
    place.replaceChildren(h("h2", {}, "Graph"), key, box);
    [box.scrollLeft, box.scrollTop] = at || [(box.scrollWidth - box.clientWidth) / 2, 0];
    if (focused) box.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
}
