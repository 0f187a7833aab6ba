// Hold, release and remove: the same buttons at listings, requests and jobs.
import {h, ask, note, number} from "./dom.js";
import {change} from "./api.js";

const ACTIONS = [
    ["hold", "Hold", "Jobs that are held do not run; those that run are stopped.", true],
    ["release", "Release", "", false],
    ["remove", "Remove", "Jobs that are removed do not come back. What they have done so far is lost.", true],
];

async function act(action, words, text, wantsReason, ids, page, done) {
    const what = ids.length === 1 ? (ids[0].includes(".") ? `job ${ids[0]}` : `request ${ids[0]}`) : `${number(ids.length)} jobs`;
    let reason = "";
    if (wantsReason) {
        const answer = await ask({title: `${words} ${what}?`, text, action: words, danger: action === "remove",
            fields: [{name: "reason", label: "Reason (kept with the jobs)"}]});
        if (!answer) return;
        reason = answer.reason;
    }
    await page.guarded(async () => {
        const told = await change("POST", "/v1/actions", reason ? {action, ids, reason} : {action, ids});
        for (const e of told.errors) note(`${e.id}: ${e.message}`, true);
        note(`${words}: ${number(told.affected)} ${told.affected === 1 ? "job" : "jobs"}`);
        await done?.();
    });
}

/** Buttons for what ids() names at the time. */
export function actions(page, ids, done) {
    const buttons = ACTIONS.map(([action, words, text, wantsReason]) => h("button", {type: "button", class: action === "remove" ? "danger" : null, "data-action": action,
        onclick: () => act(action, words, text, wantsReason, ids(), page, done)}, words));
    const element = h("div", {class: "buttons", role: "group", "aria-label": "Change"}, buttons);
    return {element, enable(on) { for (const b of buttons) b.disabled = !on; }};
}
