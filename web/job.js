// One job: why it is where it is, where that is, what happened, what it prints and what it used.
import {h, said, clean, cleanLines, when, between, duration, bytes, number, badge, jobState, facts} from "./dom.js";
import {get, query, bytesOf} from "./api.js";
import {table} from "./table.js";
import {actions} from "./actions.js";

const OUTPUT_MAX = 256 * 1024, FILE_MAX = 128 * 1024;

const over = j => ["completed", "removed"].includes(j.state);

function section(words, ...children) {
    return h("section", {"aria-label": words}, h("h2", {}, words), ...children);
}

// ---- what it prints

function decoded(base64) {
    return Uint8Array.from(atob(base64), c => c.charCodeAt(0));
}

/** Follows stdout and stderr while the job runs. */
function output(page, id) {
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
                got = await get(query(`/v1/jobs/${encodeURIComponent(id)}/output`, attempt === null ? {last} : {attempt, stdout: panes.stdout.at, stderr: panes.stderr.at, timeout_ms: 20000}), page.signal);
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

function usage(ad) {
    const cpu = (ad.RemoteUserCpu || 0) + (ad.RemoteSysCpu || 0), wall = ad.RemoteWallClockTime || 0, cpus = ad.RequestCpus || 1;
    const meter = (used, asked, words) => h("span", {}, words, asked ? [" ", h("meter", {min: 0, max: asked, value: Math.min(used, asked), "aria-label": words})] : null);
    return facts(
        ["Processors", ad.RequestCpus !== undefined && wall ? meter(cpu, wall * cpus, `${duration(cpu * 1000)} used in ${duration(wall * 1000)} on ${number(cpus)}`) : ad.RequestCpus],
        ["Memory", ad.MemoryUsage !== undefined && ad.RequestMemory ? meter(ad.MemoryUsage, ad.RequestMemory, `${number(ad.MemoryUsage)} of ${number(ad.RequestMemory)} MiB`) : ad.RequestMemory && `${number(ad.RequestMemory)} MiB asked for`],
        ["Disk", ad.RequestDisk && typeof ad.RequestDisk === "number" && `${bytes(ad.RequestDisk * 1024)} asked for${ad.DiskUsage ? `, ${bytes(ad.DiskUsage * 1024)} used` : ""}`],
        ["Copied in", ad.BytesRecvd ? bytes(ad.BytesRecvd) : null], ["Copied out", ad.BytesSent ? bytes(ad.BytesSent) : null],
        ["Energy", ad.EnergyJoules ? `${number(Math.round(ad.EnergyJoules))} J` : null]);
}

function adOf(ad) {
    const text = Object.entries(ad).map(([k, v]) => `${k} = ${JSON.stringify(v)}`).join("\n");
    return h("details", {}, h("summary", {}, `All ${number(Object.keys(ad).length)} attributes`), h("pre", {class: "output"}, cleanLines(text)));
}

export async function job(root, page) {
    const id = page.route.id, base = `/v1/jobs/${encodeURIComponent(id)}`;
    const head = h("div", {}), why = h("div", {}), path = h("div", {}), log = h("div", {}), used = h("div", {}), kept = h("div", {}), all = h("div", {});
    const buttons = actions(page, () => [id], () => look());
    const printed = output(page, id);
    const request = id.split(".")[0];
    let state = null, ended = false;

    root.append(h("p", {class: "crumbs"}, h("a", {href: "#/requests"}, "Requests"), " › ", h("a", {href: `#/requests/${encodeURIComponent(request)}`}, `Request ${clean(request)}`)),
        h("h1", {}, "Job ", said(id)), head, buttons.element, section("Why", why), section("Where", path), printed.element, kept, section("Resources", used),
        section("What happened", log), section("Attributes", all));
    page.title(`Job ${id}`);

    async function look() {
        const j = await get(base, page.signal);
        const [w, p, l] = await Promise.all(["why", "path", "log"].map(what => get(`${base}/${what}`, page.signal).catch(e => {
            if (e.name === "AbortError") throw e;
            return null; // of a job that is only in history some are not there
        })));
        const s = jobState(j);
        head.replaceChildren(h("p", {class: "state-line"}, badge(s), j.unreachable ? [" ", badge("unreachable", "unreachable: "), said(j.unreachable)] : null,
            j.hold_reason && j.state === "held" ? [" ", said(j.hold_reason)] : null), facts(
            ["Command", said(`${j.cmd || ""} ${j.args || ""}`, {class: "said code"})], ["Owner", said(j.owner)],
            ["Place", j.agent && said(`${j.queue}@${j.agent}`)], ["Submitted", when(j.submitted_ms)], ["Started", j.started_ms && when(j.started_ms)],
            ["Ended", j.ended_ms && when(j.ended_ms)], ["Ran", j.started_ms && duration((j.ended_ms || Date.now()) - j.started_ms)],
            ["Starts", j.starts > 1 ? number(j.starts) : null],
            ["Exit", j.exit_signal ? `signal ${j.exit_signal}` : j.exit_code !== null && j.exit_code !== undefined ? `code ${j.exit_code}` : null],
            ["Start expected", w?.eta_start_ms && when(w.eta_start_ms)], ["End expected", w?.eta_end_ms && !over(j) && between(w)]));
        why.replaceChildren(...(w ? whyOf(w).flat(2).filter(Boolean) : [h("p", {}, "Nothing more is known.")]));
        if (p) path.replaceChildren(pathOf(p));
        if (l) log.replaceChildren(logOf(l));
        used.replaceChildren(usage(j.ad || {}));
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
    }
    await look();
    page.every(5000, lookWhere);
    page.live(look, {changed: c => !c || c.has(Number(request))});
    printed.follow();
}
