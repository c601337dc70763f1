// The view Routes: what is known of each model, the rollout, and the effective settings.
import { html, useEffect, useState } from "console/lib/html.js";
import { get, send, state } from "console/lib/api.js";
import { count, plural, visible, when } from "console/lib/format.js";
import { Badge, Loading, Note, Tabs, useData } from "console/lib/parts.js";

const TABS = [{ id: "models", title: "Models" }, { id: "rollout", title: "Rollout" }, { id: "settings", title: "Settings" }];

function RoutesView({ match }) {
  const open = match[1] || "models";
  return html`<section class="view routes" aria-label="Routes and rollout"><div class="scroll">
    <${Tabs} tabs=${TABS} open=${open} onOpen=${(id) => { location.hash = `#/routes/${id}`; }} label="Routes and rollout">
      ${open === "models" && html`<${Models} />`}${open === "rollout" && html`<${RolloutTab} />`}${open === "settings" && html`<${Settings} />`}
    <//>
  </div></section>`;
}

function Models() {
  const [found, error] = useData((signal) => get("/routes", { signal }), []);
  const [changed, setChanged] = useState(null);
  const [problem, setProblem] = useState(null);
  const shown = (changed ?? found)?.routes;
  const change = async (action, model) => {
    try {
      setChanged(await send("POST", `/routes/${action}`, { model }));
      setProblem(null);
    } catch (failure) {
      setProblem(failure);
    }
  };
  if (error) return html`<${Note} kind="bad">${error.message}<//>`;
  if (!shown) return html`<${Loading} />`;
  if (!shown.length) return html`<p class="empty">No model is configured by name, and none was asked for in the last day.</p>`;
  return html`${problem && html`<${Note} kind="bad">${problem.message}<//>`}
    <div class="wide" tabindex="0" role="region" aria-label="Models"><table class="measures routes-table"><thead><tr><th scope="col">model</th><th scope="col">upstream</th><th scope="col" class="names">tools are</th><th scope="col" class="names">dialect</th><th scope="col" class="names">why</th><th scope="col">requests</th><th scope="col"><span class="unseen">change</span></th></tr></thead>
    <tbody>${shown.map((one) => html`<tr key=${one.model}><th scope="row"><code>${visible(one.model)}</code></th>
      ${one.problem ? html`<td colspan="4" class="names">${visible(one.problem)}</td>` : html`<td class="names">${visible(one.upstream)} <span class="quiet">${visible(one.address)}</span></td>
      <td class="names"><${Badge} kind=${one.decided === "native" ? "good" : "info"}>${one.decided}<//> ${one.mode !== "auto" && html`<span class="quiet">set</span>`}</td><td class="names">${one.dialect || "–"}</td>
      <td class="why">${one.learned ? html`<b>${one.learned.pinned ? "pinned" : "learned"}: ${visible(one.learned.kind)}</b> ${visible(one.learned.evidence)} <span class="quiet">${one.learned.pinned ? "" : `until ${when(one.learned.expires * 1000)}`}</span>` : visible(one.mode === "auto" ? one.rule : `mode = ${one.mode} in the settings`)}</td>`}
      <td>${count(one.requests)}</td>
      <td>${!one.problem && !state.value.read_only && html`${(!one.learned || !one.learned.pinned) && html`<button class="button" onClick=${() => change("pin", one.model)} title="Send tools as text to this model until it is unpinned">Pin text</button>`} ${one.learned && html`<button class="button" onClick=${() => change("forget", one.model)} title="Forget what was learned; native tools are tried again">${one.learned.pinned ? "Unpin" : "Forget"}</button>`}`}</td></tr>`)}</tbody></table></div>`;
}

function RolloutTab() {
  const [found, error] = useData((signal) => get("/rollout", { signal }), []);
  const [changed, setChanged] = useState(null);
  const shown = changed ?? found;
  if (error) return html`<${Note} kind="bad">${error.message}<//>`;
  if (!shown) return html`<${Loading} />`;
  return html`<p class="quiet gap">${shown.shared ? "A change applies to all gateways with this store, within a second." : "There is no store: a change applies to this process until it ends."}</p>
    <div class="plans">${shown.plans.map((plan) => html`<${PlanCard} key=${`${plan.name} ${plan.plan}`} plan=${plan} onChange=${setChanged} />`)}</div>`;
}

function PlanCard({ plan, onChange }) {
  const [percent, setPercent] = useState(plan.percent);
  const [dryRun, setDryRun] = useState(plan.dry_run);
  const [preview, setPreview] = useState(null);
  const [problem, setProblem] = useState(null);
  const wanted = percent === 0 ? "off" : percent === 100 ? (dryRun ? "shadow" : "full") : `${dryRun ? "shadow" : "canary"}-${percent}`;
  const isNew = percent !== plan.percent || (percent > 0 && dryRun !== plan.dry_run);
  useEffect(() => {
    const abort = new AbortController();
    const timer = setTimeout(async () => {
      try {
        setPreview(await send("POST", "/rollout/preview", { name: plan.name, plan: wanted }, { signal: abort.signal }));
        setProblem(null);
      } catch (failure) {
        if (!abort.signal.aborted) setProblem(failure);
      }
    }, 200);
    return () => { clearTimeout(timer); abort.abort(); };
  }, [wanted]);
  const apply = async () => {
    try {
      onChange(await send("POST", "/rollout", { name: plan.name, plan: wanted }));
    } catch (failure) {
      setProblem(failure);
    }
  };
  return html`<article class="plan"><h2>${plan.name} <${Badge} kind=${plan.stage === "off" ? "bad" : plan.stage === "full" ? "good" : "warn"}>${plan.plan}<//></h2><p class="quiet">${plan.about}</p>
    <label class="check">Conversations <input type="range" min="0" max="100" value=${percent} disabled=${state.value.read_only} aria-label=${`${plan.name}: share of conversations`} aria-valuetext=${`${percent} percent`} onInput=${(event) => setPercent(Number(event.target.value))} /> <b class="num">${percent} %</b></label>
    <label class="check"><input type="checkbox" checked=${dryRun} disabled=${state.value.read_only} onChange=${(event) => setDryRun(event.target.checked)} /> dry run: record what would be done, deliver nothing</label>
    ${preview && html`<p class="quiet">${describe(preview, isNew)}</p>`}
    ${problem && html`<${Note} kind="bad">${problem.message}<//>`}
    ${isNew && !state.value.read_only && html`<div><button class="primary" onClick=${apply}>Apply ${wanted}</button></div>`}</article>`;
}

function describe(preview, isNew) {
  if (!preview.conversations) return "No conversation in the last day.";
  const arms = Object.entries(preview.arms).map(([arm, number]) => `${arm.replace("_", " ")} ${count(number)}`).join(", ");
  const all = `${plural(preview.conversations, "conversation")} in the last day: ${arms}.`;
  if (!isNew) return all;
  const clients = preview.clients.map((one) => `${visible(one.client)} ${count(one.conversations)}`).join(", ");
  return `${all} ${preview.exact ? "" : "About "}${plural(preview.changed, "conversation")} would change${clients ? ` (${clients})` : ""}.`;
}

function Settings() {
  const [found, error] = useData((signal) => get("/settings", { signal }), []);
  const [text, setText] = useState("");
  if (error) return html`<${Note} kind="bad">${error.message}<//>`;
  if (!found) return html`<${Loading} />`;
  const rows = Object.entries(found.settings).filter(([name, one]) => `${name} ${show(one.value)} ${one.source}`.toLowerCase().includes(text.toLowerCase()));
  return html`<div class="toolbar"><input type="search" id="search" placeholder="Filter settings" aria-label="Filter settings" onInput=${(event) => setText(event.target.value)} /><span class="quiet total">${plural(rows.length, "setting")}</span></div>
    ${found.notes.map((note) => html`<${Note} kind="warn">${visible(note)}<//>`)}
    <div class="wide" tabindex="0" role="region" aria-label="Settings"><table class="measures settings-table"><thead><tr><th scope="col">setting</th><th scope="col">value</th><th scope="col">from</th></tr></thead>
    <tbody>${rows.map(([name, one]) => html`<tr key=${name}><th scope="row"><code>${name.split(/(?<=[._])/).map((part) => html`${part}<wbr />`)}</code></th><td class="names value">${visible(show(one.value))}</td><td class="names">${one.source === "default" ? html`<span class="quiet">default</span>` : visible(one.source)}</td></tr>`)}</tbody></table></div>
    <h2 class="gap">Upstreams</h2>${found.upstreams.map((one) => html`<pre class="code wrap" tabindex="0" aria-label=${`Upstream ${one.name}`}>${visible(list(one))}</pre>`)}
    <h2 class="gap">Models</h2>${found.models.map((one) => html`<pre class="code wrap" tabindex="0" aria-label=${`Model ${one.name}`}>${visible(list(one))}</pre>`)}`;
}

function show(value) {
  if (Array.isArray(value)) return value.join(", ") || "–";
  if (value === null || value === "") return "–";
  return String(value);
}

function list(fields) {
  return Object.entries(fields).filter(([, value]) => value !== "" && value !== null && !(typeof value === "object" && !Object.keys(value).length)).map(([name, value]) => `${name} = ${JSON.stringify(value)}`).join("\n");
}

export const view = { name: "routes", title: "Routes", path: /^\/routes(?:\/(models|rollout|settings))?$/, href: "#/routes", Component: RoutesView };
