// Accounts with their shares, and limits with who uses them.
import {h, said, number, duration, badge, bytes} from "./dom.js";
import {get} from "./api.js";
import {table} from "./table.js";

const percent = part => `${(100 * part).toFixed(part < 0.1 ? 1 : 0)} %`;

export async function shares(root, page) {
    const accounts = table({caption: "Accounts and users", empty: "Nobody has had anything yet.", key: a => a.name, columns: [
        {title: "Account", class: "name", cell: a => a.user ? said(a.name) : h("strong", {}, said(a.name)), sort: a => a.name},
        {title: "Shares", class: "number", cell: a => number(a.shares), sort: a => a.shares},
        {title: "Part of the pool", class: "number", cell: a => percent(a.part), sort: a => a.part},
        {title: "Has had", class: "number", cell: a => duration(a.usage_s * 1000), sort: a => a.usage_s},
        {title: "Processors now", class: "number", cell: a => number(a.cpus), sort: a => a.cpus},
        {title: "Running", class: "number", cell: a => number(a.running), sort: a => a.running},
        {title: "Waiting", class: "number", cell: a => number(a.waiting), sort: a => a.waiting},
    ]});
    const limits = table({caption: "Limits, those that are full first", empty: "No limit is in use.", key: l => l.name, columns: [
        {title: "Limit", class: "name", cell: l => said(l.name), sort: l => l.name},
        {title: "In use", cell: l => h("span", {class: "load"}, l.max ? h("meter", {min: 0, max: l.max, value: Math.min(l.used, l.max), "aria-label": `${l.used} of ${l.max}`}) : null, h("span", {class: "small"}, l.max === null ? `${number(l.used)}, without a bound` : `${number(l.used)} of ${number(l.max)}`)), sort: l => l.max ? l.used / l.max : 0},
        {title: "State", cell: l => l.max !== null && l.used >= l.max ? badge("busy", "full") : badge("idle", "free")},
        {title: "Jobs that wait for it", class: "number", cell: l => number(l.waiting), sort: l => l.waiting},
        {title: "By whom", class: "wide", cell: l => (l.users || []).slice(0, 8).map(u => h("div", {class: "small"}, said(u.owner), `: ${number(u.units)} in ${number(u.jobs)} ${u.jobs === 1 ? "job" : "jobs"}`))},
    ]});
    const spool = table({caption: "Uploaded files", empty: "Nobody has uploaded files.", key: u => u.owner, columns: [
        {title: "Owner", class: "name", cell: u => said(u.owner), sort: u => u.owner},
        {title: "Bytes", class: "number", cell: u => bytes(u.bytes), sort: u => u.bytes}, {title: "At most", class: "number", cell: u => u.max ? bytes(u.max) : "–", sort: u => u.max},
    ]});
    const bank = table({caption: "Accounts in the bank, in credits", empty: "You are a member of no account.", key: a => a.name, columns: [
        {title: "Account", class: "name", cell: a => [said(a.name), a.description ? h("div", {class: "small"}, said(a.description)) : null], sort: a => a.name},
        {title: "To spend", class: "number", cell: a => number(a.available), sort: a => a.available},
        {title: "Balance", class: "number", cell: a => number(a.balance), sort: a => a.balance},
        {title: "Held for jobs", class: "number", cell: a => number(a.held), sort: a => a.held},
        {title: "Charged", class: "number", cell: a => number(a.charged), sort: a => a.charged},
        {title: "Refunded", class: "number", cell: a => number(a.refunded), sort: a => a.refunded},
        {title: "State", cell: a => a.unpaid ? badge("problem", `${number(a.unpaid)} unpaid`) : a.available > 0 ? badge("idle", "in credit") : badge("busy", "empty")},
        {title: "You are", cell: a => said(a.rights)},
    ]});
    const books = h("div", {hidden: true}, bank.element);
    root.append(h("h1", {}, "Shares and limits"), books, accounts.element, limits.element, spool.element);

    async function look() {
        const [a, l, b] = await Promise.all(["/v1/accounts", "/v1/limits", "/v1/bank"].map(path => get(path, page.signal)));
        const full = x => x.max !== null && x.used >= x.max;
        books.hidden = !b.on && b.accounts.length === 0;
        bank.update(b.accounts);
        accounts.update(a.accounts);
        limits.update([...l.limits].sort((x, y) => full(y) - full(x) || (y.waiting || 0) - (x.waiting || 0)));
        spool.update(l.spool || []);
    }
    await look();
    page.live(look, {every: 5000, changed: () => false});
}
