// The view KPIs: how well calls are made out of text, over time and by model.
import { html, useEffect, useRef, useState } from "console/lib/html.js";
import { get } from "console/lib/api.js";
import { count, duration, plural, visible, when } from "console/lib/format.js";
import { Badge, Facts, Loading, Note, useData } from "console/lib/parts.js";
import { theme } from "console/lib/theme.js";
import uPlot from "uplot";

const RANGES = [["1 h", 3600], ["24 h", 86_400], ["7 d", 604_800], ["30 d", 2_592_000]];
const COLORS = ["--info", "--accent", "--warn", "--s-reasoning", "--good", "--s-call", "--quiet"]; // not that of the target
const REFRESH = 15_000;
const NONE = "-"; // stands for a model or dialect without a name
const OUTCOME_COLORS = { ok: "--good", failed: "--bad", refused: "--warn", abandoned: "--quiet" };

function KpisView() {
  const [seconds, setSeconds] = useState(86_400);
  const [chosen, setChosen] = useState(null); // {model, dialect}, or null for all
  const query = new URLSearchParams({ seconds, ...(chosen && { model: chosen.model || NONE, dialect: chosen.dialect || NONE }) });
  const [found, error, reload] = useData((signal) => get(`/kpis?${query}`, { signal }), [String(query)]);
  useEffect(() => {
    const timer = setInterval(() => document.hidden || reload(), REFRESH);
    return () => clearInterval(timer);
  }, [String(query)]);
  return html`<section class="view kpis" aria-label="KPIs"><div class="scroll">
    <div class="toolbar"><h1>KPIs</h1>
      <div class="segmented" role="group" aria-label="Time span">${RANGES.map(([name, value]) => html`<button aria-pressed=${value === seconds} onClick=${() => setSeconds(value)}>${name}</button>`)}</div>
      ${found && html`<${Chooser} models=${found.models} chosen=${chosen} onChoose=${setChosen} />`}
      ${found && html`<span class="quiet total">${plural(found.requests, "request")}${found.complete ? "" : ", the newest ones only"}</span>`}
    </div>
    ${error && html`<div class="pad"><${Note} kind="bad">${error.message}<//></div>`}
    ${!found && !error && html`<${Loading} />`}
    ${found && !found.requests && html`<p class="empty">No request in this time.</p>`}
    ${found?.requests > 0 && html`<${Measures} found=${found} onChoose=${setChosen} />`}
  </div></section>`;
}

// Which requests are measured: those of all models, or of one model and dialect.
function Chooser({ models, chosen, onChoose }) {
  const at = chosen ? models.findIndex((one) => isSame(one, chosen)) : -1;
  return html`<select aria-label="Model and dialect" value=${at} onChange=${(event) => onChoose(models[event.target.value] ?? null)}>
    <option value="-1">${chosen && at < 0 ? `${chosen.model || "–"} · ${chosen.dialect || "–"}` : "all models and dialects"}</option>
    ${chosen && at < 0 && html`<option value="-2">all models and dialects</option>`}
    ${models.map((one, place) => html`<option value=${place}>${one.model || "–"} · ${one.dialect || "–"}</option>`)}</select>`;
}

function isSame(one, other) {
  return one.model === other.model && one.dialect === other.dialect;
}

function Measures({ found, onChoose }) {
  const total = found.total, series = found.series;
  const success = lines(series, (one) => rates(one, "success rate"));
  const arms = Object.entries(total.transformations).filter(([name]) => !name.startsWith("none/"));
  return html`<div class="pad">
    <${Facts} items=${[
      ["answered", share(total.outcomes.ok ?? 0, found.requests)],
      ...Object.entries(total.faults).filter(([name]) => name !== "none").map(([name, number]) => [`fault: ${name}`, count(number)]),
      ["first chunk p50, p95, p99", percentiles(total.first_chunk)], ["end", percentiles(total.duration)], ["overhead", percentiles(total.overhead)],
    ]} />
    <div class="plots">
      <${Plot} title="Success rate" note=${`calls delivered without a complaint, of calls attempted; target ${percent(found.target)}`} found=${found} data=${success} top=${1} mark=${found.target} format=${percent} />
      <${Plot} title="Tool recognition" note="calls delivered, of calls that were meant" found=${found} data=${lines(series, (one) => rates(one, "tool recognition"))} top=${1} format=${percent} />
      <${Plot} title="Transformation rate" note="answers with a call, of all answers" found=${found} data=${lines(series, (one) => rates(one, "transformation rate"))} top=${1} format=${percent} />
      <${Plot} title="Error rate" note="the other attempts: rejected, missed, or complained about" found=${found} data=${lines(series, (one) => rates(one, "error rate"))} top=${1} mark=${1 - found.target} format=${percent} />
      <${Plot} title="Requests by end" found=${found} data=${lines(series, (one) => one.outcomes, 0)} colors=${OUTCOME_COLORS} format=${count} />
      <${Plot} title="Who was at fault" note="errors, rejected calls and near misses" found=${found} data=${lines(series, (one) => without(one.faults, "none"), 0)} format=${count} />
      <${Plot} title="Latency" note="to the first chunk and to the end" found=${found} data=${lines(series, latencies)} format=${duration} />
      <${Plot} title="Overhead" note="time that the gateway itself took" found=${found} data=${lines(series, (one) => one.overhead)} format=${duration} />
    </div>
    <${Arms} arms=${arms} target=${found.target} />
    <${Models} models=${found.models} target=${found.target} onChoose=${onChoose} />
    <${NearMisses} misses=${found.near_misses} all=${found.near_miss_count} />
  </div>`;
}

function Arms({ arms, target }) {
  if (!arms.length) return null;
  const names = ["transformation rate", "success rate", "error rate", "tool recognition", "without complaint"];
  return html`<h2>Arms side by side</h2><div class="wide" tabindex="0" role="region" aria-label="Arms side by side"><table class="measures"><thead><tr><th scope="col">transformation</th><th scope="col">arm</th><th scope="col">answers</th><th scope="col">attempts</th>${names.map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
    <tbody>${arms.map(([name, one]) => html`<tr><th scope="row">${visible(name.split("/")[0])}</th><td>${visible(name.split("/")[1])}</td><td>${count(one.answers)}</td><td>${count(one.attempts)}</td>
      ${names.map((rate) => html`<td>${cell(one.rates[rate], rate === "success rate" ? target : null)}</td>`)}</tr>`)}</tbody></table></div>`;
}

function Models({ models, target, onChoose }) {
  return html`<h2>Models and dialects</h2><div class="wide" tabindex="0" role="region" aria-label="Models and dialects"><table class="measures"><thead><tr><th scope="col">model</th><th scope="col">dialect</th><th scope="col">requests</th><th scope="col">calls</th><th scope="col">repairs</th><th scope="col">rejected</th><th scope="col">retries</th><th scope="col">success</th><th scope="col">errors</th><th scope="col">recognised</th><th scope="col">transformed</th><th scope="col" class="names">most frequent</th></tr></thead>
    <tbody>${models.map((one) => html`<tr><th scope="row"><button class="link" title="Measures of this model and dialect only" onClick=${() => onChoose(one)}><code>${visible(one.model) || "–"}</code></button></th><td>${one.dialect || "–"}</td><td>${count(one.requests)}</td><td>${count(one.calls)}</td><td>${count(sum(one.repairs))}</td><td>${count(sum(one.rejected))}</td><td>${count(one.retries)}</td>
      <td>${cell(one.rates["success rate"], target)}</td><td>${cell(one.rates["error rate"])}</td><td>${cell(one.rates["tool recognition"])}</td><td>${cell(one.rates["transformation rate"])}</td><td class="names">${most({ ...one.repairs, ...one.rejected })}</td></tr>`)}</tbody></table></div>`;
}

function NearMisses({ misses, all }) {
  if (!misses.length) return html`<h2>Near misses</h2><p class="quiet">None: no text looked like a call and stayed text.</p>`;
  return html`<h2>Near misses <span class="quiet">${misses.length < all ? `${misses.length} of ${count(all)}` : ""}</span></h2>
    <ul class="misses">${misses.map((one) => html`<li key=${one.record}>
      <div>${one.session ? html`<a href=${`#/sessions/${encodeURIComponent(one.session)}`}>${when(Date.parse(one.time))}</a>` : when(Date.parse(one.time))} <code>${visible(one.model)}</code> <${Badge}>${one.dialect || "–"}<//></div>
      ${one.text ? html`<pre class="code wrap" tabindex="0" aria-label="End of the model's text">${visible(one.text)}</pre>` : html`<p class="quiet">The text was not recorded (store.bodies).</p>`}
    </li>`)}</ul>`;
}

// A plot with one line per name. uPlot draws on a canvas, so the values are in a table for screen readers, too.
function Plot({ title, note, found, data, colors = {}, top, mark, format }) {
  const place = useRef(null);
  const names = Object.keys(data.lines);
  const shade = theme.value;
  useEffect(() => {
    const target = place.current;
    if (!target || !names.length) return undefined;
    const style = getComputedStyle(document.documentElement), read = (name) => style.getPropertyValue(name).trim();
    const axis = { stroke: read("--quiet"), grid: { stroke: read("--line"), width: 1 }, ticks: { stroke: read("--line"), width: 1 }, font: "11px system-ui" };
    const show = (_, value) => (value === null || value === undefined ? "–" : format(value));
    const series = names.map((name, at) => ({ label: visible(name), stroke: read(colors[name] ?? COLORS[at % COLORS.length]), width: 2, spanGaps: true, points: { show: true, size: 5 }, value: show }));
    const values = names.map((name) => [null, ...data.lines[name], null]);
    if (mark) {
      series.push({ label: "target", stroke: read("--bad"), width: 1, dash: [5, 4], points: { show: false }, value: show });
      values.push(values[0].map(() => mark));
    }
    const options = {
      width: target.clientWidth, height: 190, series: [{}, ...series],
      scales: { x: { range: [found.begin, found.end] }, y: { range: top ? [0, top] : (_, least, most) => [0, most * 1.05 || 1] } },
      axes: [{ ...axis, values: (_, ticks) => ticks.map((tick) => moment(tick, found)) }, { ...axis, size: 56, values: (_, ticks) => ticks.map(format) }],
      cursor: { drag: { x: false, y: false } }, legend: { live: true },
    };
    const plot = new uPlot(options, [[found.begin, ...data.times.map((time) => Math.min(Math.max(time, found.begin), found.end)), found.end], ...values], target);
    const observer = new ResizeObserver(() => plot.setSize({ width: target.clientWidth, height: 190 }));
    observer.observe(target);
    return () => { observer.disconnect(); plot.destroy(); };
  }, [found, shade]);
  return html`<figure class="plot"><figcaption><h2>${title}</h2>${note && html`<span class="quiet">${note}</span>`}</figcaption>
    ${names.length ? html`<div class="canvas" ref=${place} aria-hidden="true"></div>` : html`<p class="quiet none">nothing was counted</p>`}
    <table class="unseen"><caption>${title}</caption><tbody>${names.map((name) => html`<tr><th scope="row">${visible(name)}</th><td>latest ${format(last(data.lines[name]))}</td></tr>`)}</tbody></table>
  </figure>`;
}

// The values of each name over time; `missing` stands for a name that is not in a bucket.
function lines(series, read, missing = null) {
  const rows = series.map(read), names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const found = {};
  for (const name of names) {
    const values = rows.map((row) => row[name] ?? missing);
    if (values.some((value) => value !== null)) found[name] = values;
  }
  return { times: series.map((one) => one.time), lines: found };
}

function rates(bucket, rate) {
  return Object.fromEntries(Object.entries(bucket.transformations).map(([name, one]) => [name, one.rates[rate]]));
}

function latencies(bucket) {
  return { "first p50": bucket.first_chunk.p50, "first p95": bucket.first_chunk.p95, "end p50": bucket.duration.p50, "end p95": bucket.duration.p95 };
}

function percentiles(found) {
  return [found.p50, found.p95, found.p99].map(duration).join(", ");
}

function without(counts, name) {
  return Object.fromEntries(Object.entries(counts).filter(([one]) => one !== name));
}

function last(values) {
  return values.findLast((value) => value !== null) ?? 0;
}

function sum(counts) {
  return Object.values(counts).reduce((all, number) => all + number, 0);
}

function most(counts) {
  return Object.entries(counts).sort((one, other) => other[1] - one[1]).slice(0, 3).map(([name, number]) => `${visible(name)} ${count(number)}`).join(", ");
}

// A time on an axis: the hour within a day, else the day.
function moment(seconds, found) {
  const at = new Date(seconds * 1000), two = (number) => String(number).padStart(2, "0");
  const hour = `${two(at.getHours())}:${two(at.getMinutes())}`;
  return found.end - found.begin <= 90_000 ? hour : `${two(at.getMonth() + 1)}-${two(at.getDate())} ${hour === "00:00" ? "" : hour}`;
}

function percent(value) {
  return `${(100 * value).toFixed(value === 1 || value === 0 ? 0 : 1)} %`;
}

function share(part, whole) {
  return whole ? percent(part / whole) : "–";
}

function cell(value, target = null) {
  if (value === null || value === undefined) return "–";
  return target !== null && value < target ? html`<b class="low">${percent(value)}</b>` : percent(value);
}

export const view = { name: "kpis", title: "KPIs", path: /^\/kpis$/, href: "#/kpis", Component: KpisView };
