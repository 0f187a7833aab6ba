// Submitting: a command with files, or a submit file as it is written for the command line. Check asks the server what it would say
// and what the jobs would take; nothing is submitted by it.
import {h, said, clean, cleanLines, note, number, bytes, when, duration, badge} from "./dom.js";
import {get, change, query} from "./api.js";
import {table} from "./table.js";

const PIECE = 4 << 20, DATASET_MAX = 100000, TYPED_MS = 700;
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

/** The URLs of a dataset, as the form has it: lines, of which some are queries of the server's catalog. */
async function urlsOf(text, signal) {
    const urls = [];
    for (const line of text.split("\n").map(l => l.trim()).filter(Boolean)) {
        if (!line.startsWith("catalog:")) {
            if (!/^[a-z][a-z0-9+.-]*:\/\/\S+$/i.test(line)) throw new Error(`“${line.slice(0, 100)}” is no URL, such as https://data.example.org/a.txt, and no catalog:QUERY`);
            urls.push(line);
            continue;
        }
        const [, name, words] = /^catalog:(?:([^?]*)\?)?(.*)$/.exec(line);
        for (let after; after !== null && urls.length <= DATASET_MAX;) {
            const page = await get(query("/v1/catalog/files", {catalog: name, query: words, limit: 10000, after}), signal);
            for (const f of page.files) {
                const url = f.replicas?.map(r => r.url.replace(/^file:\/(?!\/)/, "file:///")).find(u => u.includes("://"));
                if (!url) throw new Error(`The catalog has no URL of ${f.name}.`);
                urls.push(url);
            }
            after = page.next;
        }
    }
    if (text.trim() && !urls.length) throw new Error("The dataset has no files.");
    if (urls.length > DATASET_MAX) throw new Error(`The dataset has more than ${number(DATASET_MAX)} files. “drover submit” takes datasets of any size: drover-submit-file(5), dataset.`);
    return urls;
}

/** Makes a part have a job for each URL, whose file is an input, and its name is in the job's environment. */
function forEachFile(part, urls) {
    const rows = urls.map(given => {
        const url = given.replaceAll(",", "%2C"), path = url.replace(/^[^:]*:\/\/[^/?#]*/, ""), name = (/#name=(.+)$/.exec(url) || [])[1] || path.split(/[?#]/)[0].split("/").pop();
        if (!name || /['"\s$]/.test(name)) throw new Error(`“${url.slice(0, 100)}” does not end with the name of a file; #name=NAME behind the URL gives it one`);
        return `${url.replace(/#name=.*$/, "")}#name=${name}\x1f${name}\n`;
    });
    part.values.TransferInput = [part.values.TransferInput, "$(url)"].filter(Boolean).join(",");
    part.values.Environment = "FILE='$(file)'";
    return {...part, late: ["TransferInput", "Environment"], variables: ["url", "file"], items: rows.join(""), rows: rows.length};
}

const field = (id, words, input, help) => h("p", {class: "field"}, h("label", {for: id}, words), input, help ? h("span", {class: "small", id: `${id}-help`}, help) : null);

/** What the form says as a request of the API, without the contents of its files. */
function document_(form, files, urls) {
    const values = {JobUniverse: 5, Cmd: "/bin/sh", Arguments: `-c '${form.command.value.replaceAll("'", "''")}'`, TransferExecutable: false, Iwd: "/",
        ShouldTransferFiles: "YES", WhenToTransferOutput: "ON_EXIT", Requirements: null, RequestCpus: Number(form.cpus.value || 1)};
    delete values.Requirements;
    if (form.memory.value) values.RequestMemory = Number(form.memory.value);
    if (form.disk.value) values.RequestDisk = Number(form.disk.value) * 1024;
    if (form.outputs.value.trim()) values.TransferOutput = form.outputs.value.split(",").map(s => s.trim()).filter(Boolean).join(",");
    if (files.length) values.TransferInput = files.map(f => f.name).join(",");
    const name = form.name_.value.trim();
    if (name) values.JobBatchName = name;
    const part = {values, steps: Number(form.count.value || 1), rows: 1};
    return {parts: [urls.length ? forEachFile(part, urls) : part], hold: form.hold.checked, ...(name ? {batch: name} : {})};
}

export async function submit(root, page) {
    const input = (id, attributes) => h("input", {id, autocomplete: "off", spellcheck: "false", ...attributes});
    const form = {
        command: h("textarea", {id: "command", rows: 3, maxlength: 20000, spellcheck: "false", required: true, "aria-describedby": "command-help"}),
        name_: input("name", {maxlength: 200}), files: h("input", {id: "files", type: "file", multiple: true, "aria-describedby": "files-help"}),
        dataset: h("textarea", {id: "dataset", rows: 2, spellcheck: "false", "aria-describedby": "dataset-help"}),
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
            field("dataset", "A job for each file of a dataset", form.dataset, "URLs, one in each line, or catalog: and a query of the server's catalog, as in catalog:production=P04. Each job has one of the files; $FILE in the command is its name."),
            h("p", {}, h("label", {class: "check", for: "hold"}, form.hold, " submit on hold"))),
        text: h("div", {role: "tabpanel", id: "panel-text", "aria-labelledby": "tab-text"},
            field("text", "Submit file", text, "As drover-submit-file(5) has it. The server reads no files for it: inputs are URLs, or files that are where the jobs run.")),
    };
    const send = h("button", {type: "submit", class: "main", id: "send"}, "Submit"), look = h("button", {type: "button", id: "check", onclick: () => run(check)}, "Check");
    const valid = h("p", {id: "valid", class: "small", role: "status"});
    let chosen = "form", uuid = null, typing = 0, looks = 0;

    root.append(h("h1", {}, "Submit"), h("div", {class: "tabs", role: "tablist", "aria-label": "What to submit", onkeydown: e => {
        if (e.key !== "ArrowLeft" && e.key !== "ArrowRight") return;
        choose(chosen === "form" ? "text" : "form");
        document.getElementById(`tab-${chosen}`).focus();
    }}, tabs), h("form", {novalidate: true, onsubmit: e => { e.preventDefault(); run(go); }, oninput: typed}, Object.values(panels), valid, h("p", {class: "buttons"}, send, look)), told);
    page.signal.addEventListener("abort", () => clearTimeout(typing));
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
        valid.textContent = "";
        looks++;
        clearTimeout(typing);
    }

    function typed() {
        uuid = null;
        looks++; // what is being asked is of an older text
        clearTimeout(typing);
        typing = setTimeout(validate, TYPED_MS);
    }

    /** Says what is wrong so far, or that it could be submitted. A catalog is asked only when somebody wants it. */
    async function validate() {
        const mine = ++looks;
        let words = "", wrong = false;
        if (chosen === "text" || (form.command.value.trim() && !/^\s*catalog:/m.test(form.dataset.value)))
            try {
                const dry = await post("/v1/requests?dry_run=1", chosen === "text" ? text.value : document_(form, [], await urls()));
                words = [`Valid: ${number(dry.jobs)} ${dry.jobs === 1 ? "job" : "jobs"}.`, ...(dry.warnings || [])].join(" ");
            } catch (e) {
                [words, wrong] = [e.message, true];
            }
        if (mine !== looks || page.signal.aborted) return;
        valid.textContent = cleanLines(words);
        valid.classList.toggle("error-text", wrong);
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

    const urls = () => urlsOf(form.dataset.value, page.signal);
    const post = (path, body) => chosen === "text" ? change("POST", path, body, "text/plain") : change("POST", path, body);

    async function check() {
        const body = chosen === "text" ? text.value : document_(form, [], await urls());
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
            const files = [...form.files.files], spooled = [], each = await urls();
            for (const f of files) spooled.push(await upload(f, words => told.replaceChildren(h("p", {}, clean(words)))));
            done = await post("/v1/requests", {uuid, ...document_(form, files, each), ...(spooled.length ? {spooled} : {})});
        }
        note(`Request ${done.id}: ${number(done.jobs)} ${done.jobs === 1 ? "job" : "jobs"}`);
        for (const w of done.warnings || []) note(w, true);
        location.hash = `#/requests/${done.id}`;
    }
    await get("/v1/server", page.signal).then(s => { if (!s.accepting) told.replaceChildren(h("p", {class: "error-text"}, `The server takes no work now: ${clean(s.reason)}`)); });
}
