// Making elements, and texts for people. Every text of a user goes into a text node: nothing here, or in any other module,
// reads a text as HTML, and the policy that the server sends has the browser refuse to.

const SVG = "http://www.w3.org/2000/svg";

function fill(e, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) {
        if (value === null || value === undefined || value === false) continue;
        if (name.startsWith("on")) e.addEventListener(name.slice(2), value);
        else e.setAttribute(name, value === true ? "" : value);
    }
    for (const child of children.flat(Infinity)) {
        if (child === null || child === undefined || child === false) continue;
        e.append(child instanceof Node ? child : document.createTextNode(String(child)));
    }
    return e;
}

/** An element: h("a", {href: "#/jobs"}, "Jobs"). on… attributes are functions. */
export function h(tag, attributes, ...children) {
    return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes, ...children) {
    return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** A user's text on one line: control characters and those that turn the direction of writing are made visible. */
export function clean(text) {
    return String(text ?? "").replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, "\ufffd");
}

/** The same for several lines of output. */
export function cleanLines(text) {
    // eslint-disable-next-line no-control-regex
    return String(text ?? "").replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
}

/** A user's text, apart from the direction of writing around it. */
export function said(text, attributes) {
    return h("bdi", {class: "said", ...attributes}, clean(text));
}

const STATES = { // the sign tells states apart without colour
    idle: "○", waiting: "◌", matched: "◔", staging: "⇣", running: "▶", suspended: "‖", vacating: "↺", completed: "✓",
    failed: "✗", held: "!", removed: "–", connected: "●", away: "✗", busy: "▶", booting: "◔", draining: "↓", drained: "‖",
    down: "✗", retired: "–", unreachable: "?", closed: "‖", problem: "!", fits: "✓", refuses: "✗", refused: "✗",
};

/** A state as a sign and a word. */
export function badge(state, words) {
    const known = STATES[state] ? state.replace(" ", "-") : "other";
    return h("span", {class: `badge s-${known}`}, h("span", {"aria-hidden": "true", class: "sign"}, STATES[state] || "•"), words || state);
}

/** The word for a job's state that tells success from failure. */
export function jobState(j) {
    if (j.state === "completed" && (j.exit_code || j.exit_signal)) return "failed";
    if (j.state === "idle" && j.waits_for) return "waiting";
    return j.state;
}

export function number(n) {
    return n === null || n === undefined ? "–" : Number(n).toLocaleString("en");
}

export function bytes(n) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let u = 0;
    for (n = Number(n || 0); n >= 1024 && u < units.length - 1; u++) n /= 1024;
    return `${n >= 100 || u === 0 ? Math.round(n) : n.toFixed(1)} ${units[u]}`;
}

export function duration(ms) {
    const s = Math.max(0, Math.round(ms / 1000));
    if (ms < 1000 && ms > 0) return `${Math.round(ms)} ms`;
    if (s < 60) return `${s} s`;
    if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60 ? `${s % 60} s` : ""}`.trim();
    if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor(s % 3600 / 60)} min`;
    return `${Math.floor(s / 86400)} d ${Math.floor(s % 86400 / 3600)} h`;
}

const two = n => String(n).padStart(2, "0");

/** When: the time of day for today, else with the date. */
export function when(ms) {
    if (!ms) return "–";
    const d = new Date(ms), now = new Date();
    const time = `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
    const date = `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}`;
    return h("time", {datetime: d.toISOString(), title: `${date} ${time}`}, d.toDateString() === now.toDateString() ? time : `${date} ${time.slice(0, 5)}`);
}

/** When half of the jobs like this one (or like the last of a request) would have ended, and nine in ten, if it is known. */
export function between(r) {
    return r.eta_end_most_ms - r.eta_end_ms > 60000 ? [when(r.eta_end_ms), " – ", when(r.eta_end_most_ms)] : when(r.eta_end_ms);
}

/** Parts of a whole as a bar, with the same in words beside it for who does not see it. */
export function progress(parts, total) {
    const bar = svg("svg", {class: "progress", viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true"});
    let at = 0;
    bar.append(svg("rect", {class: "f-track", x: 0, y: 0, width: 100, height: 8}));
    for (const [name, n] of parts) {
        if (!n) continue;
        const width = Math.max(100 * n / total, 1);
        bar.append(svg("rect", {class: `f-${name}`, x: Math.min(at, 99), y: 0, width: Math.min(width, 100 - at), height: 8}));
        at += width;
    }
    const words = parts.filter(p => p[1]).map(([name, n]) => `${number(n)} ${name}`).join(", ");
    return h("div", {class: "parts"}, bar, h("span", {class: "small"}, words || "no jobs"));
}

/** Name and value beside each other: facts(["Owner", "ann"], …). Rows without a value are left out. */
export function facts(...rows) {
    return h("dl", {class: "facts"}, rows.filter(r => r && ![null, undefined, false, ""].includes(r[1])).map(
        ([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

/** A line for the screen and for a screen reader; errors stay until they are closed. */
export function note(text, isError) {
    const line = h("div", {class: isError ? "note error" : "note"}, h("span", {}, clean(text)),
                   h("button", {type: "button", class: "plain", "aria-label": "Close this message", onclick: () => line.remove()}, "×"));
    document.getElementById("notes").append(line);
    if (!isError) setTimeout(() => line.remove(), 8000);
}

/** Asks in a dialog. fields: [{name, label, value, type}]. The answers by name, or null. */
export function ask({title, text, fields = [], action = "OK", danger = false}) {
    return new Promise(done => {
        const inputs = fields.map(f => ({f, id: `ask-${f.name}`, e: h("input", {id: `ask-${f.name}`, type: f.type || "text", value: f.value || "", maxlength: 500, autocomplete: "off"})}));
        const close = answer => { dialog.close(); dialog.remove(); done(answer); };
        const answers = () => Object.fromEntries(inputs.map(i => [i.f.name, i.e.value]));
        const dialog = h("dialog", {"aria-labelledby": "ask-title", oncancel: e => { e.preventDefault(); close(null); }},
            h("form", {onsubmit: e => { e.preventDefault(); close(answers()); }},
                h("h2", {id: "ask-title"}, title), text ? h("p", {}, text) : null,
                inputs.map(i => h("p", {class: "field"}, h("label", {for: i.id}, i.f.label), i.e)),
                h("p", {class: "buttons"}, h("button", {type: "submit", class: danger ? "danger" : "main", name: "ok"}, action),
                    h("button", {type: "button", onclick: () => close(null)}, "Cancel"))));
        document.body.append(dialog);
        dialog.showModal();
        (inputs[0]?.e || dialog.querySelector("button")).focus();
    });
}
