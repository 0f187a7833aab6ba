// Stores and the links to them, and transfers that are under way.
import {h, said, badge, when, number, bytes} from "./dom.js";
import {get} from "./api.js";
import {table} from "./table.js";

export async function data(root, page) {
    const stores = table({caption: "Stores", empty: "The server's settings name no stores.", key: s => s.name, columns: [
        {title: "Store", class: "id", cell: s => said(s.name), sort: s => s.name},
        {title: "URLs", class: "name", cell: s => s.urls.map(u => h("div", {}, said(u, {class: "said code"})))},
        {title: "Labels", cell: s => s.labels.length ? said(s.labels.join(", ")) : "–"},
        {title: "Readers at once", class: "number", cell: s => s.concurrency ? number(s.concurrency) : "any", sort: s => s.concurrency},
        {title: "Size", class: "number", cell: s => s.capacity_bytes ? bytes(s.capacity_bytes) : "–", sort: s => s.capacity_bytes},
        {title: "Left", class: "number", cell: s => s.space ? bytes(s.space.left_bytes) : "–", sort: s => s.space ? s.space.left_bytes : 0},
    ]});
    const links = table({caption: "Links, those without an answer first", empty: "No agent has measured a link yet.", key: l => `${l.store}/${l.agent}`, columns: [
        {title: "Store", cell: l => said(l.store), sort: l => l.store}, {title: "Agent", cell: l => said(l.agent), sort: l => l.agent},
        {title: "State", cell: l => l.down_ms ? badge("down", "no answer") : badge("connected", "answers"), sort: l => l.down_ms ? 0 : 1},
        {title: "Latency", class: "number", cell: l => l.latency_us ? `${(l.latency_us / 1000).toFixed(1)} ms` : "–", sort: l => l.latency_us},
        {title: "Rate", class: "number", cell: l => l.bytes_per_s ? `${bytes(l.bytes_per_s)}/s` : "–", sort: l => l.bytes_per_s},
        {title: "Measured", cell: l => when(l.measured_ms), sort: l => l.measured_ms},
        {title: "Note", class: "wide", cell: l => l.down_ms ? ["since ", when(l.down_ms), ": ", said(l.down_why)] : ""},
    ]});
    const moves = table({caption: "Jobs whose files are on their way", empty: "No job's files are on their way.", key: j => j.id, columns: [
        {title: "Job", class: "id", cell: j => h("a", {href: `#/jobs/${j.id}`}, j.id)}, {title: "State", cell: j => badge(j.state)},
        {title: "Place", cell: j => said(`${j.queue || ""}@${j.agent || ""}`)}, {title: "Command", class: "name", cell: j => said(`${j.cmd || ""} ${j.args || ""}`.slice(0, 200), {class: "said code"})},
        {title: "Since", cell: j => when(j.entered_ms)},
    ]});
    const total = h("p", {});
    root.append(h("h1", {}, "Data"), total, stores.element, links.element, moves.element);

    async function look() {
        const [s, server, staging] = await Promise.all([get("/v1/stores", page.signal), get("/v1/server", page.signal), get("/v1/jobs?state=staging&limit=100", page.signal)]);
        total.textContent = `Since the server's start: ${bytes(server.moved.bytes_in)} copied to jobs, ${bytes(server.moved.bytes_out)} from them.`;
        stores.update(s.stores);
        links.update(s.stores.flatMap(one => one.links.map(l => ({...l, store: one.name}))).sort((a, b) => (a.down_ms ? 0 : 1) - (b.down_ms ? 0 : 1)));
        moves.update(staging.jobs);
    }
    await look();
    page.live(look, {every: 5000, changed: () => false});
}
