// Agents and their queues: state, load, what they run; drain and resume for operators and admins.
import {h, said, badge, when, number, bytes, ask, note} from "./dom.js";
import {get, change, query} from "./api.js";
import {table} from "./table.js";

function stateOf(a, node) {
    if (a.revoked) return "retired";
    if (a.state === "away") return "away";
    if (node && ["booting", "draining", "drained", "failed", "down", "retired"].includes(node.state)) return node.state;
    if (a.drained) return a.running ? "draining" : "drained";
    return node?.state || "connected";
}

const RANK = {away: 0, failed: 0, down: 0, retired: 1, draining: 2, drained: 2};

function load(used, total, words) {
    if (!total) return "–";
    return h("span", {class: "load"}, h("meter", {min: 0, max: total, value: Math.min(used, total), "aria-label": words}), h("span", {class: "small"}, words));
}

function queueLine(q) {
    const state = q.unreachable ? badge("unreachable", "unreachable") : q.closed ? badge("closed", "closed") : q.offer ? badge("idle", "open") : badge("busy", "full");
    const free = q.free || {cpus: 0, memory_mib: 0}, total = q.total || {cpus: 0, memory_mib: 0};
    return h("li", {}, h("span", {class: "queue-name"}, said(q.name), q.ad?.Runner ? h("span", {class: "small"}, " ", said(q.ad.Runner)) : null), state, h("span", {}, `${number(q.running)} running`),
        load(total.cpus - free.cpus, total.cpus, `${number(total.cpus - free.cpus)} of ${number(total.cpus)} processors`),
        load(total.memory_mib - free.memory_mib, total.memory_mib, `${bytes((total.memory_mib - free.memory_mib) * 1048576)} of ${bytes(total.memory_mib * 1048576)}`),
        q.unreachable || q.closed ? h("span", {class: "small"}, said(q.unreachable || q.closed)) : null);
}

/** The number of its jobs, which leads to them. */
function runs(a) {
    if (!a.running) return "0";
    return h("a", {href: query("#/jobs", {state: "running", constraint: `split(RemoteHost, "@")[1] == "${a.name}"`}), "aria-label": `${a.running} running at ${a.name}`}, number(a.running));
}

export async function places(root, page) {
    const list = table({caption: "Places, those with problems first", empty: "No agent has joined. “drover agent” on a machine with a token of “drover token agent” adds one.", key: r => r.agent.name, columns: [
        {title: "Agent", class: "id", cell: r => [said(r.agent.name), r.agent.hostname && r.agent.hostname !== r.agent.name ? h("div", {class: "small"}, said(r.agent.hostname)) : null], sort: r => r.agent.name},
        {title: "State", cell: r => [badge(r.state), h("div", {class: "small"}, r.state === "away" ? ["last heard of ", when(r.agent.seen_ms)] : r.agent.drained ? said(r.agent.drained) : r.node?.reason ? said(r.node.reason) : null)], sort: r => r.state},
        {title: "Runs", class: "number", cell: r => runs(r.agent), sort: r => r.agent.running},
        {title: "Completed", class: "number", cell: r => number(r.agent.completed), sort: r => r.agent.completed},
        {title: "Queues", class: "wide", cell: r => h("ul", {class: "queues"}, r.agent.queues.map(queueLine))},
        ...page.isOperator ? [{title: "Change", cell: r => r.agent.revoked || !r.agent.state ? "–" : r.agent.drained
            ? h("button", {type: "button", "data-action": "resume", "aria-label": `Resume ${r.agent.name}`, onclick: () => resume(r.agent.name)}, "Resume")
            : h("button", {type: "button", "data-action": "drain", "aria-label": `Drain ${r.agent.name}`, onclick: () => drain(r.agent.name)}, "Drain")}] : [],
    ]});
    root.append(h("h1", {}, "Places"), list.element);

    const order = (name, verb, body) => page.guarded(async () => {
        await change("POST", `/v1/agents/${encodeURIComponent(name)}/${verb}`, body);
        note(verb === "drain" ? `${name} is given no more jobs; what it has goes on.` : `${name} is given jobs again.`);
        await look();
    });

    async function drain(name) {
        const answer = await ask({title: "Drain this place?", text: [said(name), " is given no more jobs, also after a restart of the server. What it runs goes on."], fields: [{name: "reason", label: "Reason"}], action: "Drain"});
        if (answer) await order(name, "drain", answer.reason ? {reason: answer.reason} : {});
    }

    function resume(name) {
        return order(name, "resume", {});
    }

    async function look() {
        const [agents, nodes] = await Promise.all([get("/v1/agents", page.signal), get("/v1/nodes", page.signal)]);
        const byName = new Map(nodes.nodes.map(n => [n.name, n]));
        const rows = agents.agents.map(agent => ({agent, node: byName.get(agent.name), state: stateOf(agent, byName.get(agent.name))}));
        const joined = new Set(agents.agents.map(a => a.name));
        for (const node of nodes.nodes) // machines that are being started, or never came
            if (!joined.has(node.name) && node.state !== "retired") rows.push({agent: {name: node.name, queues: [], running: 0, completed: 0}, node, state: node.state});
        rows.sort((a, b) => (RANK[a.state] ?? 9) - (RANK[b.state] ?? 9) || (a.agent.name < b.agent.name ? -1 : 1));
        list.update(rows);
    }
    await look();
    page.live(look, {every: 5000, pause: 2000});
}
