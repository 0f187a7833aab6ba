// Submitting: a command with files, or a submit file as it is written for the command line. Check asks the server what it would say
// and what the jobs would take; nothing is submitted by it.
import {h, said, clean, cleanLines, note, number, bytes, when, duration, badge} from "./dom.js";
import {get, change, query} from "./api.js";
import {table} from "./table.js";

const PIECE = 4 << 20;
const EXAMPLE = "executable = /bin/sh\narguments = \"-c 'echo hello $(name)'\"\nrequest_memory = 64 MB\nqueue name in (Ada, Grace)\n";

async function upload(file, told) {
    const {id} = await change("POST", "/v1/uploads");
    for (let at = 0; at < file.size; at += PIECE) {
        told(`${file.name}: ${bytes(at)} of ${bytes(file.size)}`);
        await change("PUT", `/v1/uploads/${encodeURIComponent(id)}?offset=${at}`, file.slice(at, at + PIECE), "application/octet-stream");
    }
    const done = await change("POST", `/v1/uploads/${encodeURIComponent(id)}/finish`, {name: file.name});
    return {name: file.name, sha256: done.sha256, size: done.size};
}

const field = (id, words, input, help) => h("p", {class: "field"}, h("label", {for: id}, words), input, help ? h("span", {class: "small", id: `${id}-help`}, help) : null);

/** What the form says as a request of the API, without its files. */
function document_(form, files) {
    const values = {JobUniverse: 5, Cmd: "/bin/sh", Arguments: `-c '${form.command.value.replaceAll("'", "''")}'`, TransferExecutable: false, Iwd: "/",
        ShouldTransferFiles: "YES", WhenToTransferOutput: "ON_EXIT", Requirements: null, RequestCpus: Number(form.cpus.value || 1)};
    delete values.Requirements;
    if (form.memory.value) values.RequestMemory = Number(form.memory.value);
    if (form.disk.value) values.RequestDisk = Number(form.disk.value) * 1024;
    if (form.outputs.value.trim()) values.TransferOutput = form.outputs.value.split(",").map(s => s.trim()).filter(Boolean).join(",");
    if (files.length) values.TransferInput = files.map(f => f.name).join(",");
    const name = form.name_.value.trim();
    if (name) values.JobBatchName = name;
    return {parts: [{values, steps: Number(form.count.value || 1), rows: 1}], hold: form.hold.checked, ...(name ? {batch: name} : {})};
}

export async function submit(root, page) {
    const input = (id, attributes) => h("input", {id, autocomplete: "off", spellcheck: "false", ...attributes});
    const form = {
        command: h("textarea", {id: "command", rows: 3, maxlength: 20000, spellcheck: "false", required: true, "aria-describedby": "command-help"}),
        name_: input("name", {maxlength: 200}), files: h("input", {id: "files", type: "file", multiple: true, "aria-describedby": "files-help"}),
        outputs: input("outputs", {maxlength: 4000, placeholder: "result.csv, plots", "aria-describedby": "outputs-help"}),
        cpus: input("cpus", {type: "number", min: 1, max: 4096, value: 1}), memory: input("memory", {type: "number", min: 1, placeholder: "as the server says"}),
        disk: input("disk", {type: "number", min: 1, placeholder: "as the server says"}), count: input("count", {type: "number", min: 1, max: 10000000, value: 1}),
        hold: h("input", {id: "hold", type: "checkbox"}),
    };
    const text = h("textarea", {id: "text", rows: 16, maxlength: 65536, spellcheck: "false", class: "code", "aria-describedby": "text-help"}, EXAMPLE);
    const told = h("div", {id: "told", role: "status", "aria-live": "polite"});
    const tabs = [["form", "A command"], ["text", "A submit file"]].map(([name, words]) => h("button", {type: "button", role: "tab", id: `tab-${name}`, "aria-controls": `panel-${name}`, onclick: () => choose(name)}, words));
    const panels = {
        form: h("div", {role: "tabpanel", id: "panel-form", "aria-labelledby": "tab-form"},
            field("command", "Command", form.command, "For /bin/sh, in a folder of the job's own that has the files below. What it prints and writes is kept by the server."),
            h("div", {class: "columns"}, field("name", "Name", form.name_), field("count", "Jobs", form.count), field("cpus", "Processors of each", form.cpus),
                field("memory", "Memory of each, MiB", form.memory), field("disk", "Disk of each, MiB", form.disk)),
            h("div", {class: "columns"}, field("files", "Input files", form.files, "They are sent when you submit."),
                field("outputs", "Outputs to keep", form.outputs, "Names separated by commas; without any, all new files.")),
            h("p", {}, h("label", {class: "check", for: "hold"}, form.hold, " submit on hold"))),
        text: h("div", {role: "tabpanel", id: "panel-text", "aria-labelledby": "tab-text"},
            field("text", "Submit file", text, "As drover-submit-file(5) has it. The server reads no files for it: inputs are URLs, or files that are where the jobs run.")),
    };
    const send = h("button", {type: "submit", class: "main", id: "send"}, "Submit"), look = h("button", {type: "button", id: "check", onclick: () => run(check)}, "Check");
    let chosen = "form", uuid = null;

    root.append(h("h1", {}, "Submit"), h("div", {class: "tabs", role: "tablist", "aria-label": "What to submit", onkeydown: e => {
        if (e.key !== "ArrowLeft" && e.key !== "ArrowRight") return;
        choose(chosen === "form" ? "text" : "form");
        document.getElementById(`tab-${chosen}`).focus();
    }}, tabs), h("form", {novalidate: true, onsubmit: e => { e.preventDefault(); run(go); }, oninput: () => { uuid = null; }}, Object.values(panels), h("p", {class: "buttons"}, send, look)), told);
    choose("form");

    function choose(name) {
        chosen = name;
        uuid = null;
        for (const tab of tabs) {
            tab.setAttribute("aria-selected", String(tab.id === `tab-${name}`));
            tab.tabIndex = tab.id === `tab-${name}` ? 0 : -1;
        }
        for (const [n, panel] of Object.entries(panels)) panel.hidden = n !== name;
        told.replaceChildren();
    }

    async function run(fn) {
        told.replaceChildren();
        if (chosen === "form" && !form.command.value.trim()) {
            told.replaceChildren(h("p", {class: "error-text"}, "Say a command first."));
            form.command.focus();
            return;
        }
        send.disabled = look.disabled = true;
        try {
            await fn();
        } catch (e) {
            if (!page.signal.aborted) told.replaceChildren(h("p", {class: "error-text", role: "alert"}, cleanLines(e.message)));
        } finally {
            send.disabled = look.disabled = false;
        }
    }

    const post = (path, body) => chosen === "text" ? change("POST", path, body, "text/plain") : change("POST", path, body);

    async function check() {
        const body = chosen === "text" ? text.value : document_(form, []);
        const dry = await post("/v1/requests?dry_run=1", body);
        const quote = await post("/v1/quote", body);
        const places = table({caption: "Place by place", key: p => `${p.part}/${p.name}/${p.queue}`, columns: [
            {title: "Place", cell: p => said(`${p.queue}@${p.name}`)},
            {title: "Verdict", cell: p => badge(p.verdict === "store down" ? "down" : p.verdict, p.verdict)},
            {title: "Start", cell: p => when(p.start_ms)}, {title: "End", cell: p => when(p.end_ms)},
            {title: "In words", class: "wide", cell: p => said(p.text)},
        ]});
        places.update(quote.places);
        told.replaceChildren(h("h2", {}, "It can be submitted"), h("p", {}, `${number(dry.jobs)} ${dry.jobs === 1 ? "job" : "jobs"}. `,
            quote.start_ms ? ["The first would start ", when(quote.start_ms), quote.end_ms ? [", the last end ", when(quote.end_ms), ` (in ${duration(quote.end_ms - Date.now())})`] : ", and how long they run is not known yet", "."]
                : "No place would take it now: see what each says.", quote.price ? ` The price would be ${number(quote.price)}.` : ""),
            dry.warnings?.length ? h("ul", {}, dry.warnings.map(w => h("li", {}, said(w)))) : "", quote.places.length ? places.element : "");
    }

    async function go() {
        uuid ||= crypto.randomUUID(); // the same one for a second try: nothing is submitted twice
        let done;
        if (chosen === "text") {
            done = await post(query("/v1/requests", {uuid}), text.value);
        } else {
            const files = [...form.files.files], spooled = [];
            for (const f of files) spooled.push(await upload(f, words => told.replaceChildren(h("p", {}, clean(words)))));
            done = await post("/v1/requests", {uuid, ...document_(form, files), ...(spooled.length ? {spooled} : {})});
        }
        note(`Request ${done.id}: ${number(done.jobs)} ${done.jobs === 1 ? "job" : "jobs"}`);
        for (const w of done.warnings || []) note(w, true);
        location.hash = `#/requests/${done.id}`;
    }
    await get("/v1/server", page.signal).then(s => { if (!s.accepting) told.replaceChildren(h("p", {class: "error-text"}, `The server takes no work now: ${clean(s.reason)}`)); });
}
