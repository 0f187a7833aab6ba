// Signing in, the way from one view to another, and what all views have around them.
import {h, note, clean} from "./dom.js";
import * as api from "./api.js";
import {overview} from "./overview.js";
import {requests, request} from "./requests.js";
import {jobs} from "./jobs.js";
import {job} from "./job.js";
import {submit} from "./submit.js";
import {places} from "./places.js";
import {data} from "./data.js";
import {shares} from "./shares.js";

const main = document.getElementById("main"), top_ = document.getElementById("top");
const VIEWS = [
    ["overview", "Overview", overview], ["requests", "Requests", requests], ["jobs", "Jobs", jobs], ["submit", "Submit", submit],
    ["places", "Places", places], ["data", "Data", data], ["shares", "Shares and limits", shares],
];
const ONE = {requests: request, jobs: job};
let leaving = null; // AbortController of the view that is shown

function decoded(text) {
    try {
        return decodeURIComponent(text);
    } catch {
        return text; // somebody typed it
    }
}

function route() {
    const hash = location.hash.startsWith("#/") ? location.hash.slice(2) : "overview";
    const [path, text] = hash.split("?");
    const [name, id] = path.split("/");
    return {name, id: id ? decoded(id) : null, query: new URLSearchParams(text || "")};
}

async function show(byUser) {
    leaving?.abort();
    const r = route();
    const why = r.name === "not-signed-in" ? NOT_SIGNED_IN.get(r.id) || NOT_SIGNED_IN.get("provider") : null;
    if (why) history.replaceState(null, "", "/");
    if (!api.session) {
        showSignIn(why, byUser);
        return;
    }
    const entry = VIEWS.find(v => v[0] === r.name) || VIEWS[0];
    const view = r.id !== null && ONE[r.name] ? ONE[r.name] : entry[2];
    const mine = leaving = new AbortController();
    const root = h("div", {class: `view v-${entry[0]}`});
    for (const a of top_.querySelectorAll("nav a"))
        a.hash === `#/${entry[0]}` ? a.setAttribute("aria-current", "page") : a.removeAttribute("aria-current");
    const page = {
        signal: mine.signal, session: api.session, route: r,
        isOperator: api.session.role !== "user",
        title(text) { document.title = `${clean(text)} – Drover`; },
        every(ms, fn) { // while this view is shown and seen
            const timer = setInterval(() => { if (!document.hidden) guarded(fn); }, ms);
            mine.signal.addEventListener("abort", () => clearInterval(timer));
        },
        live(fn, options) { keepLive(page, fn, options); },
        guarded,
    };
    async function guarded(fn) {
        try {
            return await fn();
        } catch (e) {
            if (!mine.signal.aborted && e.name !== "AbortError" && e.code !== "unreachable") note(e.message, true);
            return undefined;
        }
    }
    page.title(entry[1]);
    main.replaceChildren(root);
    if (document.activeElement === document.body || top_.contains(document.activeElement)) main.focus({preventScroll: true});
    window.scrollTo(0, 0);
    try {
        await view(root, page);
    } catch (e) {
        if (!mine.signal.aborted && e.name !== "AbortError" && api.session) root.replaceChildren(h("h1", {}, "This cannot be shown"), h("p", {role: "alert"}, clean(e.message)));
    }
}

/** Calls fn when jobs have changed (changed, if given, says whether these requests matter; null is any) and every so often, while the
 *  view is seen: never twice at once, and for a tenth of the time at most, so that a large answer is asked for seldom. */
function keepLive(page, fn, {every = 0, pause = 0, changed = () => true} = {}) {
    let due = false, busy = false, next = 0, last = performance.now();
    async function run() {
        const begun = performance.now();
        due = false;
        busy = true;
        await page.guarded(fn);
        busy = false;
        last = performance.now();
        next = last + Math.max(pause, 10 * (last - begun));
    }
    api.onChange(requests_ => { due ||= changed(requests_); tick(); }, page.signal);
    function tick() {
        const now = performance.now();
        if (!page.signal.aborted && !document.hidden && !busy && now >= next && (due || (every && now - last >= every))) run();
    }
    const timer = setInterval(tick, 250);
    page.signal.addEventListener("abort", () => clearInterval(timer));
}

// ---- around the views

function showTop() {
    const list = h("ul", {}, VIEWS.map(([name, words]) => h("li", {}, h("a", {href: `#/${name}`}, words))));
    const state = h("span", {id: "live", class: "live", role: "status"}, "live");
    top_.replaceChildren(
        h("a", {class: "brand", href: "#/overview"}, "Drover"),
        h("nav", {"aria-label": "Views"}, list),
        h("div", {class: "who"}, state, h("span", {class: "you"}, clean(api.session.you), h("span", {class: "small"}, ` (${api.session.role})`)),
            h("button", {type: "button", id: "sign-out", onclick: leave}, "Sign out")));
    top_.hidden = false;
    api.startFeed(ok => {
        state.textContent = ok ? "live" : "no connection";
        state.classList.toggle("lost", !ok);
    });
}

async function leave() {
    await api.signOut().catch(e => note(e.message, true));
    signedOut(true);
}

function signedOut(byUser) {
    api.stopFeed();
    top_.hidden = true;
    top_.replaceChildren();
    show(byUser);
}

const NOT_SIGNED_IN = new Map([ // why a sign-in by OpenID Connect failed, by the word that the server sends the browser back with
    ["stale", "This sign-in is too old, was used already, or was begun in another browser: begin again."],
    ["denied", "The provider did not sign you in."],
    ["provider", "The provider does not answer as it should. The server's log says more."],
    ["untrusted", "The provider's answer could not be verified. The server's log says more."],
    ["not-allowed", "The provider knows you, but this server's settings do not admit you: ask its admin."],
    ["busy", "Too many people are signing in: try again in a moment."],
    ["server", "The server cannot open a session now. Its log says more."],
]);

/** The way in by OpenID Connect, if the server has one, and after signing out the way out of the provider's session. */
async function addProvider(place, byUser) {
    const {openid} = await api.waysIn().catch(() => ({}));
    if (!openid) return;
    const name = clean(openid.name);
    place.replaceChildren(h("p", {class: "buttons"}, h("a", {class: "button main", id: "sign-in-openid", href: "/page/openid/begin"}, `Sign in with ${name}`)),
        byUser && openid.sign_out?.startsWith("https://") ? h("p", {class: "small"}, "You may still be signed in there: ", h("a", {href: openid.sign_out, rel: "noreferrer"}, `sign out of ${name}`), ".") : "",
        h("p", {class: "small"}, "or"));
    place.nextElementSibling.querySelector("button").classList.remove("main"); // one main way
}

function showSignIn(why, byUser) {
    const token = h("input", {id: "token", type: "password", required: true, autocomplete: "off", spellcheck: "false", maxlength: 300, "aria-describedby": "token-help sign-in-error"});
    const wrong = h("p", {id: "sign-in-error", role: "alert", class: "error-text"}, why || "");
    const button = h("button", {type: "submit", class: "main"}, "Sign in");
    const provider = h("div", {});
    document.title = "Sign in – Drover";
    top_.hidden = true;
    main.replaceChildren(h("div", {class: "sign-in"}, h("h1", {}, "Drover"), wrong, provider, h("form", {onsubmit: enter},
        h("p", {class: "field"}, h("label", {for: "token"}, "User token"), token),
        h("p", {id: "token-help", class: "small"}, "“drover token user” on the server's machine makes one. It is exchanged for a session of at most twelve hours, and not kept in this browser."),
        h("p", {class: "buttons"}, button))));
    token.focus();
    addProvider(provider, byUser);

    async function enter(e) {
        e.preventDefault();
        button.disabled = true;
        wrong.textContent = "";
        try {
            await api.signIn(token.value.trim());
            token.value = "";
            start();
        } catch (err) {
            wrong.textContent = clean(err.message);
            token.select();
        } finally {
            button.disabled = false;
        }
    }
}

function start() {
    showTop();
    show();
}

window.addEventListener("hashchange", () => {
    if (!location.hash || location.hash.startsWith("#/")) show(); // others are places on this page
});
window.addEventListener("signed-out", () => {
    signedOut();
    document.getElementById("sign-in-error").textContent = "The session is over: sign in again.";
});
try {
    if (await api.resume()) start();
    else show();
} catch (e) {
    main.replaceChildren(h("p", {role: "alert", class: "error-text"}, clean(e.message)));
}
