// Lines over time as SVG, with the same numbers as a table for who does not see them. Lines differ by their dashes and by the words at
// their ends, not by colour alone.
import {h, svg, number} from "./dom.js";

const H = 180, LEFT = 46, RIGHT = 84, TOP = 10, BOTTOM = 24;

function nice(max) {
    const step = 10 ** Math.floor(Math.log10(Math.max(max, 1)));
    return [1, 2, 5, 10].map(m => m * step).find(v => v >= max) || 1;
}

/** The time of day; of a short time with seconds, or all would be the same. */
const clock = (ms, span) => new Date(ms).toTimeString().slice(0, span < 600000 ? 8 : 5);

/** points: [{at_ms, NAME: number, …}], names: [[NAME, words], …]. */
export function chart(title, points, names) {
    if (points.length < 2) return h("figure", {class: "chart"}, h("figcaption", {}, title), h("p", {class: "empty"}, "There is nothing to draw yet: the server takes a sample every half a minute."));
    const W = window.innerWidth < 720 ? 360 : 430;
    const first = points[0].at_ms, last = points[points.length - 1].at_ms;
    const most = nice(Math.max(...points.flatMap(p => names.map(([n]) => p[n]))));
    const x = ms => LEFT + (W - LEFT - RIGHT) * (ms - first) / Math.max(1, last - first);
    const y = v => H - BOTTOM - (H - TOP - BOTTOM) * v / most;
    const g = svg("svg", {viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `${title}: ${names.map(([n, words]) => `${words} ${number(Math.round(10 * points[points.length - 1][n]) / 10)}`).join(", ")} now`});
    for (const v of [0, most / 2, most])
        g.append(svg("line", {class: "grid", x1: LEFT, x2: W - RIGHT, y1: y(v), y2: y(v)}), svg("text", {class: "axis", x: LEFT - 6, y: y(v) + 4, "text-anchor": "end"}, number(v)));
    for (const [ms, anchor] of [[first, "start"], [(first + last) / 2, "middle"], [last, "end"]])
        g.append(svg("text", {class: "axis", x: x(ms), y: H - 6, "text-anchor": anchor}, clock(ms, last - first)));
    const ends = names.map(([n, words], i) => ({i, n, words, at: y(points[points.length - 1][n])})).sort((a, b) => a.at - b.at);
    ends.forEach((e, k) => { if (k) e.at = Math.max(e.at, ends[k - 1].at + 13); });
    ends.forEach((e, k) => { e.at = Math.min(e.at, H - BOTTOM - 13 * (ends.length - 1 - k)); }); // those below stay inside
    for (const {i, n, words, at} of ends)
        g.append(svg("polyline", {class: `line l-${i}`, points: points.map(p => `${x(p.at_ms).toFixed(1)},${y(p[n]).toFixed(1)}`).join(" ")}),
                 svg("text", {class: `end l-${i}`, x: W - RIGHT + 6, y: at + 4}, words));
    const shown = points.filter((p, i) => i % Math.ceil(points.length / 12) === 0 || i === points.length - 1);
    return h("figure", {class: "chart"}, h("figcaption", {}, title), g, h("details", {}, h("summary", {}, "As a table"), h("table", {class: "plain"}, h("thead", {}, h("tr", {}, h("th", {scope: "col"}, "Time"), names.map(([, words]) => h("th", {scope: "col"}, words)))),
        h("tbody", {}, shown.map(p => h("tr", {}, h("th", {scope: "row"}, clock(p.at_ms, last - first)), names.map(([n]) => h("td", {}, number(Math.round(10 * p[n]) / 10)))))))));
}
