// The server's API, with the cookie of this browser's session as the credential. The token that the user signs in with is sent
// once, and kept nowhere.

export class ApiError extends Error {
    constructor(status, code, message) {
        super(message);
        this.status = status;
        this.code = code;
    }
}

export let session = null; // {you, role, csrf, expires_ms}, or null

async function answer(response) {
    let document_;
    try {
        document_ = await response.json();
    } catch {
        throw new ApiError(response.status, "not_json", `the server's answer (status ${response.status}) is no JSON`);
    }
    if (!response.ok)
        throw new ApiError(response.status, document_.error?.code, document_.error?.message || `status ${response.status}`);
    return document_;
}

function checkSession(e) {
    if (e instanceof ApiError && e.status === 401 && session) {
        session = null;
        window.dispatchEvent(new Event("signed-out"));
    }
    throw e;
}

async function send(path, options) {
    try {
        return await fetch(path, {credentials: "same-origin", cache: "no-store", redirect: "error", referrerPolicy: "no-referrer", ...options});
    } catch (e) {
        if (e.name === "AbortError") throw e;
        throw new ApiError(0, "unreachable", "the server cannot be reached");
    }
}

/** GET: the document. */
export async function get(path, signal) {
    return answer(await send(path, {signal})).catch(checkSession);
}

/** A change. body: an object, sent as JSON; or text or bytes, with their type. */
export async function change(method, path, body, type) {
    const headers = {"X-Drover-Csrf": session?.csrf || ""};
    const plain = typeof body === "string" || body instanceof Blob;
    if (body !== undefined) headers["Content-Type"] = type || "application/json";
    return answer(await send(path, {method, headers, body: body === undefined || plain ? body : JSON.stringify(body)})).catch(checkSession);
}

/** At most so many bytes of what a URL has, and whether there is more. */
export async function bytesOf(path, most, signal) {
    const response = await send(path, {signal});
    if (!response.ok) await answer(response).catch(checkSession);
    const reader = response.body.getReader(), parts = [];
    let size = 0, more = false;
    for (let part; size < most && !(part = await reader.read()).done;) {
        parts.push(part.value);
        size += part.value.length;
    }
    if (size >= most) {
        more = true;
        await reader.cancel();
    }
    return {bytes: new Uint8Array(await new Blob(parts).arrayBuffer()).subarray(0, most), more};
}

export function query(path, parameters) {
    const q = new URLSearchParams();
    for (const [name, value] of Object.entries(parameters))
        if (value !== null && value !== undefined && value !== "" && value !== false) q.set(name, value === true ? "1" : value);
    const text = q.toString();
    return text ? `${path}?${text}` : path;
}

/** Exchanges a token for a session. */
export async function signIn(token) {
    const response = await send("/page/session", {method: "POST", headers: {Authorization: `Bearer ${token}`}});
    session = await answer(response);
}

/** The session that this browser has already; false: none. */
export async function resume() {
    try {
        session = await answer(await send("/page/session", {}));
    } catch (e) {
        if (e.status !== 401) throw e;
        session = null;
    }
    return session !== null;
}

/** How users sign in here: {openid: {name, sign_out} or null}. */
export async function waysIn() {
    return answer(await send("/page/sign-in", {}));
}

export async function signOut() {
    try {
        await change("DELETE", "/page/session");
    } finally {
        session = null;
    }
}

// ---- what changes, from the server's log

const PAGE = 1000, WAIT_MS = 25000, PAUSE_MS = 1000;
const listeners = new Set();
let feed = null;

/** Calls fn with the numbers of the requests that have changed, or with null: anything may have. Once a second at most. */
export function onChange(fn, signal) {
    listeners.add(fn);
    signal.addEventListener("abort", () => listeners.delete(fn));
}

function tell(requests) {
    for (const fn of [...listeners]) fn(requests);
}

const pause = ms => new Promise(done => setTimeout(done, ms));
const visible = () => new Promise(done => {
    if (!document.hidden) done();
    else document.addEventListener("visibilitychange", () => done(), {once: true});
});

async function follow(stop, state) {
    let after = (await get("/v1/server", stop)).seq, failures = 0;
    while (!stop.aborted) {
        try {
            await visible();
            const page = await get(query("/v1/events", {after, timeout_ms: WAIT_MS, limit: PAGE}), stop);
            if (failures) tell(null);
            state(true);
            failures = 0;
            after = page.next;
            if (page.events.length >= PAGE) { // more happens than a page can show: go to its end
                after = (await get("/v1/server", stop)).seq;
                tell(null);
            } else if (page.events.length) {
                tell(new Set(page.events.map(e => e.request)));
            }
            await pause(page.events.length ? PAUSE_MS : 0);
        } catch (e) {
            if (stop.aborted || e.status === 401) return;
            state(false);
            await pause(Math.min(30000, 1000 * 2 ** failures++));
            if (e.status === 410) after = (await get("/v1/server", stop).catch(() => ({seq: after}))).seq;
        }
    }
}

/** Follows the log until stopFeed. state(true or false): whether the server answers. */
export function startFeed(state) {
    stopFeed();
    feed = new AbortController();
    follow(feed.signal, state).catch(() => state(false));
}

export function stopFeed() {
    feed?.abort();
    feed = null;
}
