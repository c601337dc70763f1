// Sends a recorded turn again with other settings, and compares the results; copies it as curl, Python or a test sample.
import { html, useState } from "console/lib/html.js";
import { duration, plural, visible } from "console/lib/format.js";
import { Loading, Note, TextBlock, useData } from "console/lib/parts.js";
import { DiffView } from "console/lib/diff_view.js";

const SNIPPETS = [["curl", "curl"], ["python", "Python"]];

export function Replay({ turn, summary, source, onChoose, onChange }) {
  if (summary.replay_of) return html`<${Comparison} replay=${turn} source=${source} onChoose=${onChoose} />`;
  return html`<div class="replay">${source.replay ? html`<${ReplayForm} turn=${turn} summary=${summary} source=${source} onChoose=${onChoose} onChange=${onChange} />` : html`<p class="quiet">A replay needs the gateway; this is a file.</p>`}
    ${source.snippets && html`<${Snippets} id=${turn.id} source=${source} />`}</div>`;
}

function ReplayForm({ turn, summary, source, onChoose, onChange }) {
  const [options, error] = useData((signal) => source.replayOptions(signal), []);
  const [choice, setChoice] = useState({ model: "", mode: "", dialect: "", stream: "", retries: "" });
  const [running, setRunning] = useState(false);
  const [problem, setProblem] = useState(null);
  if (error) return html`<${Note} kind="bad">${error.message}<//>`;
  if (!options) return html`<${Loading} />`;
  const set = (name) => (event) => setChoice({ ...choice, [name]: event.target.value });
  const run = async (event) => {
    event.preventDefault();
    setRunning(true);
    setProblem(null);
    const { model, mode, dialect, stream, retries } = choice;
    try {
      const answer = await source.replay(turn.id, {
        model, mode, dialect, stream: stream === "" ? null : stream === "yes", recovery: retries === "" ? {} : { retries: Number(retries) },
      });
      onChange?.();
      onChoose(answer.id);
    } catch (failure) {
      setProblem(failure);
    }
    setRunning(false);
  };
  return html`<form class="replay-form" onSubmit=${run} aria-label="Replay">
    <h3>Send this turn again</h3>
    <p class="quiet">The recorded request goes through the gateway once more, to the upstream, with these settings for this request only. The answer is recorded as a replay in this session; the client gets nothing.</p>
    <div class="fields">
      <label>Model<input list="models" value=${choice.model} placeholder=${visible(summary.model)} onInput=${set("model")} /><datalist id="models">${options.models.map((name) => html`<option value=${name}></option>`)}</datalist></label>
      <label>Mode<select value=${choice.mode} onChange=${set("mode")}><option value="">as configured (was ${summary.mode || "–"})</option>${options.modes.map((name) => html`<option value=${name}>${name}</option>`)}</select></label>
      <label>Dialect<select value=${choice.dialect} onChange=${set("dialect")}><option value="">as configured${summary.dialect ? ` (was ${summary.dialect})` : ""}</option>${options.dialects.map((name) => html`<option value=${name}>${name}</option>`)}</select></label>
      <label>Recovery<select value=${choice.retries} onChange=${set("retries")}><option value="">as configured (${plural(options.retries, "retry", "retries")})</option><option value="0">off</option>${[1, 2, 3, 4, 5].map((number) => html`<option value=${number}>${plural(number, "retry", "retries")}</option>`)}</select></label>
      <label>Streamed<select value=${choice.stream} onChange=${set("stream")}><option value="">as recorded (${summary.stream ? "yes" : "no"})</option><option value="yes">yes</option><option value="no">no</option></select></label>
      <button class="primary" disabled=${running || source.readOnly}>${running ? "Running …" : "Replay"}</button>
    </div>
    ${source.readOnly && html`<${Note}>The console is read-only (<code>console.read_only</code>): nothing can be replayed.<//>`}
    ${problem && html`<${Note} kind="bad">${problem.message}<//>`}
  </form>`;
}

function Snippets({ id, source }) {
  const [snippets, error] = useData((signal) => source.snippets(id, signal), [id]);
  const [open, setOpen] = useState("curl");
  if (error) return html`<${Note} kind="bad">${error.message}<//>`;
  if (!snippets) return html`<${Loading} />`;
  const { samples, ...others } = snippets, names = samples.map((_, at) => (samples.length > 1 ? `test sample, attempt ${at + 1}` : "test sample"));
  const texts = { ...others, ...Object.fromEntries(samples.map((text, at) => [`sample${at}`, text])) };
  const offered = [...SNIPPETS, ...names.map((name, at) => [`sample${at}`, name]), ["tools", "its tools"]].filter(([name]) => texts[name]);
  return html`<section class="snippets" aria-label="Copy this turn"><h3>Copy as</h3>
    <div class="segmented" role="group" aria-label="Form">${offered.map(([name, title]) => html`<button aria-pressed=${open === name} onClick=${() => setOpen(name)}>${title}</button>`)}</div>
    ${open.startsWith("sample") && html`<p class="quiet">Save as <code>tests/data/dialects/DIALECT/NAME.md</code>, and its tools as <code>tests/data/tools/recorded.json</code>.</p>`}
    <${TextBlock} key=${open} text=${texts[open]} format=${false} label=${offered.find(([name]) => name === open)[1]} /></section>`;
}

// A replay beside the turn that it repeats.
function Comparison({ replay, source, onChoose }) {
  const [origin, error] = useData((signal) => source.turn(replay.record.replay_of, signal), [replay.record.replay_of]);
  if (error) return html`<${Note} kind="bad">${error.message}<//>`;
  if (!origin) return html`<${Loading} />`;
  const rows = [
    ["Outcome", (one) => one.record.outcome], ["Error", (one) => visible(one.record.error || "–")], ["Model", (one) => visible(one.record.model)],
    ["Mode", (one) => one.record.mode], ["Dialect", (one) => one.record.dialect || "–"], ["Calls", (one) => visible(one.record.tools.join(", ") || "none")],
    ["Repairs", (one) => one.record.repairs.join(", ") || "none"], ["Rejected", (one) => one.record.rejected.join(", ") || "none"],
    ["Attempts", (one) => String(one.record.attempts.length)], ["Finish", (one) => one.record.finish || "–"], ["Time", (one) => duration(one.record.duration)],
  ];
  return html`<div class="comparison"><table class="compare"><thead><tr><th scope="col"></th><th scope="col"><button class="link" onClick=${() => onChoose(origin.id)}>Original</button></th><th scope="col">Replay</th></tr></thead>
      <tbody>${rows.map(([name, pick]) => html`<tr class=${pick(origin) === pick(replay) ? "" : "different"}><th scope="row">${name}</th><td>${pick(origin)}</td><td>${pick(replay)}</td></tr>`)}</tbody></table>
    <h3>What the client received</h3><${DiffView} before=${write(origin)} after=${write(replay)} label="Original and replay" />
    <h3>What the model wrote</h3><${DiffView} before=${origin.attempts.at(-1)?.text ?? ""} after=${replay.attempts.at(-1)?.text ?? ""} label="Text of the model" />
    <h3>What the upstream was sent</h3><${DiffView} before=${lines(origin)} after=${lines(replay)} label="Requests" /></div>`;
}

function write(turn) {
  let text = "";
  for (const event of turn.events) {
    if (event.kind === "call") text += `\n→ ${event.text} `;
    else if (event.kind === "finish" || event.kind === "failed") text += `\n[${event.kind}: ${event.text}]`;
    else if (event.kind !== "call_end") text += event.text;
  }
  return text || turn.answer;
}

function lines(turn) {
  try {
    return JSON.stringify(JSON.parse(turn.attempts.at(-1)?.request ?? ""), null, 2);
  } catch {
    return turn.attempts.at(-1)?.request ?? "";
  }
}
