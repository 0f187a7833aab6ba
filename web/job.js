// One job: why it is where it is, where that is, what happened, what it prints and what it used.
import {h, said, clean, cleanLines, when, between, duration, bytes, number, badge, jobState, facts} from "./dom.js";
import {get, query, bytesOf} from "./api.js";
import {table} from "./table.js";
import {actions} from "./actions.js";
import {chart} from "./chart.js";

const OUTPUT_MAX = 256 * 1024, FILE_MAX = 128 * 1024, SAMPLES_MAX = 720;

const over = j => ["completed", "removed"].includes(j.state);

function section(words, ...children) {
    return h("section", {"aria-label": words}, h("h2", {}, words), ...children);
}

// ---- what it prints

function decoded(base64) {
    return Uint8Array.from(atob(base64), c => c.charCodeAt(0));
}

/** Follows stdout and stderr while the job runs; measured(used, attempt) gets what each answer says of its resources. */
function output(page, id, measured) {
    const panes = {};
    const words = h("p", {class: "small", role: "status"}, "");
    const element = section("Output", words);
    for (const name of ["stdout", "stderr"]) {
        const pre = h("pre", {class: "output", tabindex: "0", "aria-label": name, id: `out-${name}`});
        panes[name] = {pre, at: 0, decoder: new TextDecoder(), box: h("div", {class: "pane", hidden: true}, h("h3", {}, name), pre)};
        element.append(panes[name].box);
    }

    function add(name, part) {
        const p = panes[name];
        if (!part) return;
        if (part.offset > p.at) p.pre.append(`\n[${number(part.offset - p.at)} bytes are not kept]\n`);
        const text = cleanLines(p.decoder.decode(decoded(part.data), {stream: true}));
        const end = p.pre.scrollHeight - p.pre.scrollTop - p.pre.clientHeight < 30;
        p.at = part.next;
        if (text) p.pre.append(text);
        while (p.pre.textContent.length > OUTPUT_MAX && p.pre.firstChild !== p.pre.lastChild) p.pre.firstChild.remove();
        if (end) p.pre.scrollTop = p.pre.scrollHeight;
        p.box.hidden = p.pre.textContent === "";
    }

    async function follow() {
        let attempt = null, last = OUTPUT_MAX;
        while (!page.signal.aborted) {
            let got;
            try {
                got = await get(query(`/v1/jobs/${encodeURIComponent(id)}/output`, attempt === null ? {last} : {attempt, stdout: panes.stdout.at, stderr: panes.stderr.at, timeout_ms: 5000}), page.signal);
            } catch (e) {
                if (e.name === "AbortError") return;
                words.textContent = clean(e.message);
                if (e.status !== 409 && e.status !== 503 && e.status !== 0) return;
                await new Promise(done => setTimeout(done, 3000));
                continue;
            }
            if (attempt !== null && got.attempt !== attempt)
                for (const p of Object.values(panes)) {
                    p.pre.append(`\n[attempt ${got.attempt}]\n`);
                    p.at = 0;
                }
            else if (attempt === null)
                for (const name of ["stdout", "stderr"]) panes[name].at = got[name]?.offset || 0;
            attempt = got.attempt;
            if (got.used) measured(got.used, attempt);
            add("stdout", got.stdout);
            add("stderr", got.stderr);
            const nothing = panes.stdout.box.hidden && panes.stderr.box.hidden;
            words.textContent = got.ended ? "The job has ended; this is the end of what it printed." : nothing ? "Nothing is printed yet; what comes is shown here." : "Following what the job prints.";
            if (got.ended) {
                if (nothing) words.textContent = "Nothing that the job printed is kept here.";
                return;
            }
        }
    }
    return {element, follow};
}

// ---- files that the server keeps

function files(id, list, page) {
    const shown = h("div", {});
    const url = f => `/v1/jobs/${encodeURIComponent(id)}/files/${f.name.split("/").map(encodeURIComponent).join("/")}`;
    const rows = table({caption: "Files that the server keeps", key: f => f.name, columns: [
        {title: "Name", class: "name", cell: f => said(f.name, {class: "said code"}), sort: f => f.name},
        {title: "Size", class: "number", cell: f => bytes(f.size), sort: f => f.size},
        {title: "Get", cell: f => h("span", {class: "buttons"}, h("button", {type: "button", onclick: () => page.guarded(() => view(f)), "aria-label": `View ${clean(f.name)}`}, "View"),
            h("a", {class: "button", href: url(f), download: f.name.split("/").pop(), "aria-label": `Download ${clean(f.name)}`}, "Download"))},
    ]});
    rows.update(list);

    async function view(f) {
        const got = await bytesOf(url(f), FILE_MAX, page.signal);
        const text = cleanLines(new TextDecoder().decode(got.bytes));
        shown.replaceChildren(h("h3", {}, said(f.name)), h("pre", {class: "output file", tabindex: "0", "aria-label": "Content of the file"}, text, got.more ? "\n[the file goes on: download it]" : ""));
        shown.scrollIntoView({block: "nearest"});
    }
    return section("Files", rows.element, shown);
}

// ---- where, why, what happened

function pathOf(path) {
    return h("ol", {class: "path"}, path.hops.map(hop => h("li", {}, h("div", {}, badge(hop.state), " at ", said(hop.domain), " as ", said(hop.job)),
        hop.agent ? h("div", {class: "small"}, "given to ", said(`${hop.queue}@${hop.agent}`), hop.runner ? [" (", said(hop.runner), hop.native ? [" ", said(hop.native)] : null, ")"] : null) : null,
        hop.word || hop.said ? h("div", {class: "small"}, said(hop.word), hop.said ? [": ", said(hop.said)] : null) : null,
        hop.doing ? h("div", {class: "small"}, said(hop.doing), hop.doing_bytes_all ? ` (${bytes(hop.doing_bytes)} of ${bytes(hop.doing_bytes_all)})` : null) : null,
        hop.error ? h("div", {class: "error-text"}, said(hop.error)) : null)));
}

function whyOf(why) {
    const places = table({caption: "What each place says", key: a => `${a.name}/${a.queue}`, columns: [
        {title: "Place", cell: a => said(`${a.queue}@${a.name}`)},
        {title: "Verdict", cell: a => badge(a.verdict === "store down" ? "down" : a.verdict, a.verdict)},
        {title: "In words", class: "wide", cell: a => [said(a.text), a.clause && !a.text.includes(a.clause) ? h("div", {class: "small"}, said(a.clause, {class: "said code"})) : null]},
    ]});
    places.update(why.agents);
    return [why.text.map(t => h("p", {}, said(t))), why.agents.length ? h("details", {open: why.agents.length < 6}, h("summary", {}, why.agents.length === 1 ? "1 place" : `${number(why.agents.length)} places`), places.element) : null];
}

function logOf(log) {
    const rows = table({caption: "What happened", quiet: true, key: e => String(e.seq), columns: [
        {title: "When", cell: e => when(e.at_ms)}, {title: "Event", cell: e => said(e.event)},
        {title: "Place", cell: e => e.agent ? said(`${e.queue || ""}@${e.agent}`) : "–"},
        {title: "Note", class: "wide", cell: e => e.text || e.reason ? said(e.text || e.reason) : ""},
    ]});
    rows.update(log.events);
    return rows.element;
}

/** now: of a job that runs, what was measured last, if anything; what its ad has is of attempts that have ended. */
function usage(ad, now) {
    const cpu = now ? now.cpu_ms / 1000 : (ad.RemoteUserCpu || 0) + (ad.RemoteSysCpu || 0), wall = now ? now.wall_ms / 1000 : ad.RemoteWallClockTime || 0, cpus = ad.RequestCpus || 1;
    const memory = now ? Math.round(now.memory_bytes / 1048576) : ad.MemoryUsage;
    const meter = (used, asked, words) => h("span", {}, words, asked ? [" ", h("meter", {min: 0, max: asked, value: Math.min(used, asked), "aria-label": words})] : null);
    return facts(
        ["Processors", ad.RequestCpus !== undefined && wall ? meter(cpu, wall * cpus, `${duration(cpu * 1000)} used in ${duration(wall * 1000)} on ${number(cpus)}`) : ad.RequestCpus],
        ["Memory", memory !== undefined && ad.RequestMemory ? meter(memory, ad.RequestMemory, `${number(memory)} of ${number(ad.RequestMemory)} MiB`) : ad.RequestMemory && `${number(ad.RequestMemory)} MiB asked for`],
        ["Disk", ad.RequestDisk && typeof ad.RequestDisk === "number" && `${bytes(ad.RequestDisk * 1024)} asked for${ad.DiskUsage ? `, ${bytes(ad.DiskUsage * 1024)} used` : ""}`],
        ["Copied in", ad.BytesRecvd ? bytes(ad.BytesRecvd) : null], ["Copied out", ad.BytesSent ? bytes(ad.BytesSent) : null],
        ["Energy", ad.EnergyJoules ? `${number(Math.round(ad.EnergyJoules))} J` : null]);
}

/** Charts of what a running job uses, from when the page was opened. */
function usageNow() {
    const element = h("div", {class: "charts"}), points = [];
    let last = null;

    function measured(used, attempt) {
        const now = {at_ms: Date.now(), cpu_ms: used.cpu_ms, attempt};
        if (last && now.at_ms - last.at_ms < 1000) return;
        if (last?.attempt !== attempt || last.cpu_ms > now.cpu_ms) points.length = 0; // another attempt, or its next step
        else points.push({at_ms: now.at_ms, cpus: (now.cpu_ms - last.cpu_ms) / (now.at_ms - last.at_ms), memory: used.memory_bytes / 1048576});
        if (points.length > SAMPLES_MAX) points.shift();
        last = now;
        if (points.length > 1 && !element.querySelector("details[open]"))
            element.replaceChildren(chart("Processors in use", points, [["cpus", "used"]]), chart("Memory in use, MiB", points, [["memory", "used"]]));
    }
    return {element, measured};
}

const TERMS = [["wait_ms", "Wait for room"], ["link_ms", "Wait for links"], ["fetch_ms", "Inputs"], ["image_ms", "Images"], ["environment_ms", "Environments"], ["run_ms", "Run"], ["send_ms", "Outputs"], ["price_ms", "Price"]];

/** What the job would cost at each place that could run it; the cheapest first. */
function costsOf(agents) {
    const priced = agents.filter(a => a.cost);
    const columns = TERMS.filter(([name]) => priced.some(a => a.cost[name])).map(([name, title]) => ({title, class: "number", cell: a => a.cost[name] ? duration(a.cost[name]) : "–", sort: a => a.cost[name]}));
    const rows = table({caption: "What it would take at each place; the smallest sum is chosen", key: a => `${a.name}/${a.queue}`, columns: [
        {title: "Place", cell: a => said(`${a.queue}@${a.name}`)}, ...columns,
        {title: "In all", class: "number", cell: a => duration(a.cost.total_ms), sort: a => a.cost.total_ms},
    ]});
    rows.update([...priced].sort((a, b) => a.cost.total_ms - b.cost.total_ms));
    return priced.length ? h("details", {}, h("summary", {}, "Cost at each place"), rows.element) : null;
}

/** The points that give an idle job its place in the order. */
function orderOf(p) {
    const rows = table({caption: p.ahead === 1 ? "1 job goes before it" : `${number(p.ahead)}${p.ahead_more ? " or more" : ""} jobs go before it`, key: c => c.name, columns: [
        {title: "Of", cell: c => said(c.name.replace("_", " "))}, {title: "Points", class: "number", cell: c => number(Math.round(100 * c.points) / 100), sort: c => c.points},
        {title: "For", class: "wide", cell: c => [said(c.of), `: ${number(Math.round(100 * c.value) / 100)}`]},
    ]});
    rows.update([...p.components, {name: "sum", points: p.total, of: "all of them", value: p.total}]);
    return h("details", {}, h("summary", {}, "Its place in the order"), rows.element);
}

function adOf(ad) {
    const text = Object.entries(ad).map(([k, v]) => `${k} = ${JSON.stringify(v)}`).join("\n");
    return h("details", {}, h("summary", {}, `All ${number(Object.keys(ad).length)} attributes`), h("pre", {class: "output"}, cleanLines(text)));
}

export async function job(root, page) {
    const id = page.route.id, base = `/v1/jobs/${encodeURIComponent(id)}`;
    const head = h("div", {}), why = h("div", {}), path = h("div", {}), log = h("div", {}), used = h("div", {}), kept = h("div", {}), all = h("div", {});
    const buttons = actions(page, () => [id], () => look());
    const usedNow = usageNow(), printed = output(page, id, (u, attempt) => {
        measured = u;
        usedNow.measured(u, attempt);
        drawUsed();
    });
    const request = id.split(".")[0];
    let state = null, ended = false, shown = null, measured = null;

    root.append(h("p", {class: "crumbs"}, h("a", {href: "#/requests"}, "Requests"), " › ", h("a", {href: `#/requests/${encodeURIComponent(request)}`}, `Request ${clean(request)}`)),
        h("h1", {}, "Job ", said(id)), head, buttons.element, section("Why", why), section("Where", path), printed.element, kept, section("Resources", used, usedNow.element),
        section("What happened", log), section("Attributes", all));
    page.title(`Job ${id}`);

    function drawHead() {
        const {j, w} = shown, s = jobState(j);
        head.replaceChildren(h("p", {class: "state-line"}, badge(s), j.unreachable ? [" ", badge("unreachable", "unreachable: "), said(j.unreachable)] : null,
            j.hold_reason && j.state === "held" ? [" ", said(j.hold_reason)] : null), facts(
            ["Command", said(`${j.cmd || ""} ${j.args || ""}`, {class: "said code"})], ["Owner", said(j.owner)],
            ["Place", j.agent && said(`${j.queue}@${j.agent}`)], ["Submitted", when(j.submitted_ms)], ["Started", j.started_ms && when(j.started_ms)],
            ["Ended", j.ended_ms && when(j.ended_ms)], ["Ran", j.started_ms && duration((j.ended_ms || Date.now()) - j.started_ms)],
            ["Starts", j.starts > 1 ? number(j.starts) : null],
            ["Exit", j.exit_signal ? `signal ${j.exit_signal}` : j.exit_code !== null && j.exit_code !== undefined ? `code ${j.exit_code}` : null],
            ["Start expected", w?.eta_start_ms && !j.started_ms && when(w.eta_start_ms)], ["End expected", w?.eta_end_ms && !over(j) && between(w)]));
    }

    function drawUsed() {
        const j = shown?.j;
        if (j) used.replaceChildren(usage(j.ad || {}, j.state === "running" && measured ? {...measured, wall_ms: Date.now() - j.started_ms} : null));
    }

    async function look() {
        const j = await get(base, page.signal);
        const [w, p, l, order] = await Promise.all(["why", "path", "log", ...j.state === "idle" ? ["priority"] : []].map(what => get(`${base}/${what}`, page.signal).catch(e => {
            if (e.name === "AbortError") throw e;
            return null; // of a job that is only in history some are not there
        })));
        shown = {j, w};
        drawHead();
        why.replaceChildren(...(w ? [...whyOf(w), costsOf(w.agents), order && orderOf(order)].flat(2).filter(Boolean) : [h("p", {}, "Nothing more is known.")]));
        if (p) path.replaceChildren(pathOf(p));
        if (l) log.replaceChildren(logOf(l));
        drawUsed();
        all.replaceChildren(adOf(j.ad || {}));
        buttons.enable(!over(j));
        if (over(j) && !kept.firstChild) {
            const list = await get(`${base}/files`, page.signal).catch(() => null);
            if (list?.files.length) kept.replaceChildren(files(id, list.files, page));
        }
        if (state !== j.state && !over(j)) kept.replaceChildren();
        state = j.state;
        ended = over(j);
    }

    // what another server or a batch system does with the job is no event here
    async function lookWhere() {
        const p = ended ? null : await get(`${base}/path`, page.signal).catch(e => {
            if (e.name === "AbortError") throw e;
            return null;
        });
        if (p) path.replaceChildren(pathOf(p));
        if (shown && !ended) drawHead(); // how long it has run
    }
    await look();
    page.every(5000, lookWhere);
    page.live(look, {changed: c => !c || c.has(Number(request))});
    printed.follow();
}
