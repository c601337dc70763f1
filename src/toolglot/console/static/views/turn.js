// One turn: what was asked, what the model wrote, what the client got, attempts, changes since the turn before, replay.
import { html, useMemo, useState } from "console/lib/html.js";
import { bytes, count, duration, pretty, visible, when } from "console/lib/format.js";
import { Badge, Facts, Legend, Loading, LongText, Note, Segments, Tabs, TextBlock, useData } from "console/lib/parts.js";
import { commonPrefix, firstDifferentByte } from "console/lib/diff.js";
import { DiffView } from "console/lib/diff_view.js";
import { Replay } from "console/views/replay.js";

export function TurnDetail({ summary, turns, source, onChoose, onChange }) {
  const [turn, error] = useData((signal) => source.turn(summary.id, signal), [summary.id]);
  const [open, setOpen] = useState(remembered());
  const main = turns.filter((one) => !one.replay_of);
  const origin = summary.replay_of ? turns.find((one) => one.id === summary.replay_of) : null;
  const before = origin ?? main[main.indexOf(summary) - 1];
  const tabs = [
    { id: "answer", title: "Answer" }, { id: "request", title: "Client request" }, { id: "upstream", title: "Upstream request" },
    { id: "attempts", title: "Attempts", badge: summary.attempts?.length > 1 ? summary.attempts.length : "" },
    { id: "changes", title: "Changes", badge: summary.unstable_at ? "!" : "" }, { id: "replay", title: "Replay" }, { id: "record", title: "Record" },
  ];
  const choose = (id) => { setOpen(id); remember(id); };
  return html`<article class="turn-detail" aria-label="Turn">
    <${Overview} summary=${summary} origin=${origin} onChoose=${onChoose} />
    <${Tabs} tabs=${tabs} open=${open} onOpen=${choose} label="Parts of the turn">
      ${error ? html`<${Note} kind="bad">${error.message}<//>` : !turn ? html`<${Loading} />`
        : open === "record" ? html`<${TextBlock} text=${JSON.stringify(turn.record)} label="record" />`
        : !turn.recorded ? html`<${NotRecorded} bodies=${source.bodies} />`
        : html`<${Panel} open=${open} turn=${turn} summary=${summary} before=${before} source=${source} onChoose=${onChoose} onChange=${onChange} />`}
    <//>
  </article>`;
}

function Panel({ open, turn, summary, before, source, onChoose, onChange }) {
  if (open === "answer") return html`<${Answer} turn=${turn} />`;
  if (open === "request") return html`<${TextBlock} text=${turn.request} label="what the client sent" />`;
  if (open === "upstream") return html`<${TextBlock} text=${turn.attempts.at(-1)?.request ?? ""} label="what the upstream was sent" />`;
  if (open === "attempts") return html`<${Attempts} turn=${turn} summary=${summary} />`;
  if (open === "changes") return html`<${Changes} turn=${turn} summary=${summary} before=${before} source=${source} />`;
  return html`<${Replay} turn=${turn} summary=${summary} source=${source} onChoose=${onChoose} onChange=${onChange} />`;
}

function Overview({ summary, origin, onChoose }) {
  const usage = summary.usage;
  const cache = summary.prompt_bytes && summary.stable_bytes !== null ? `${Math.round((100 * summary.stable_bytes) / summary.prompt_bytes)} % of ${bytes(summary.prompt_bytes)} as before` : "";
  return html`<div class="overview">
    <${Facts} items=${[
      ["Time", when(Date.parse(summary.time))], ["Wire", summary.wire], ["Mode", summary.mode], ["Dialect", summary.dialect],
      ["Upstream", visible(`${summary.upstream}${summary.upstream_model && summary.upstream_model !== summary.model ? ` (${summary.upstream_model})` : ""}`)],
      ["First byte", duration(summary.first_chunk)], ["Total", duration(summary.duration)], ["Finish", summary.finish], ["Status", summary.status],
      ["Tokens", usage ? `${count(usage.input_tokens)} in, ${count(usage.output_tokens)} out` : ""], ["Prompt", cache],
      ["Tools offered", summary.offered || ""], ["Error", visible(summary.error || "")],
    ]} />
    ${origin && html`<p class="quiet">A replay of <button class="link" onClick=${() => onChoose(origin.id)}>an earlier turn</button>; it was not sent to the client.</p>`}
    ${summary.notes?.length > 0 && html`<ul class="notes">${summary.notes.map((note) => html`<li>${visible(note)}</li>`)}</ul>`}
  </div>`;
}

function NotRecorded({ bodies }) {
  return html`<div class="empty"><h2>The texts of this turn were not recorded</h2>
    <p>Only its record is kept. ${bodies === "failures" ? "With store.bodies = \"failures\", texts are kept if a request failed, or a call was repaired, rejected or missed." : "Nothing but figures is kept unless the gateway is told to."}</p>
    <p>To see requests, the model's own text and the answer, start the gateway with <code>TOOLGLOT_STORE_BODIES=all</code> (or <code>bodies = "all"</code> under <code>[store]</code>). Keys are redacted before anything is stored.</p></div>`;
}

// -- the answer: the model's own text beside what the client got --------------------------------------------------------

function Answer({ turn }) {
  const last = turn.attempts.at(-1);
  const segments = turn.attempts.length > 1 ? turn.attempts.flatMap((attempt, at) => [...(at ? [["mark", `\n— attempt ${at + 1} —\n`, ""]] : []), ...attempt.segments]) : last?.segments ?? [];
  const hasText = segments.length > 0;
  return html`<div class="columns">
    <section aria-label="The model's own text"><h3>Model wrote</h3><${Legend} />
      ${turn.reasoning && html`<details class="reasoning" open><summary>Reasoning (${count(turn.reasoning.length)} characters)</summary><${TextBlock} text=${turn.reasoning} format=${false} label="reasoning" /></details>`}
      ${hasText ? html`<${Segments} segments=${segments} label="The model's own text" />`
        : html`<p class="quiet">${!turn.record.upstream ? "No model was asked." : turn.record.calls ? "No text: the model made native calls only." : "The model wrote no text."}</p>`}
      ${turn.attempts.map((attempt, at) => html`<${NativeCalls} calls=${attempt.calls} label=${turn.attempts.length > 1 ? `native call of attempt ${at + 1}` : "native call"} />`)}
      <${Pieces} turn=${turn} />
    </section>
    <section aria-label="What the client received"><h3>Client received</h3><${Events} turn=${turn} /></section>
  </div>`;
}

// Calls that the model made natively, as it wrote them.
function NativeCalls({ calls, label = "native call" }) {
  return calls?.map((call) => html`<div class="native-call"><h4>${label} <code>${call.name}</code></h4><${TextBlock} text=${call.arguments} label="arguments" /></div>`) ?? null;
}

const KIND_NAMES = { text: "text", reasoning: "reasoning", call: "call", arguments: "args", call_end: "call end", rejected: "rejected", finish: "finish", failed: "failed" };

function Events({ turn }) {
  const [joined, setJoined] = useState(true);
  const [raw, setRaw] = useState(false);
  const [limit, setLimit] = useState(300);
  const events = useMemo(() => (joined ? join(turn.events) : turn.events), [turn, joined]);
  if (raw || !turn.events.length) return html`${turn.events.length > 0 && html`<p><button class="link" onClick=${() => setRaw(false)}>events</button></p>`}<${TextBlock} text=${turn.answer} label="bytes as sent" />`;
  return html`<div class="event-tools"><label class="check"><input type="checkbox" checked=${!joined} onChange=${(event) => setJoined(!event.target.checked)} /> every event (${count(turn.events.length)})</label>
      <button class="link" onClick=${() => setRaw(true)}>bytes as sent</button></div>
    <ol class="events">${events.slice(0, limit).map((event) => html`<li class=${`event ${event.kind}`}>
      <span class="event-time">${event.time === null ? "" : event.time < 100 ? `${event.time} ms` : duration(event.time / 1000)}</span>
      <span class="event-kind">${KIND_NAMES[event.kind] ?? event.kind}</span>
      <span class="event-text"><${LongText} text=${event.kind === "arguments" && joined ? pretty(event.text) : event.text} /></span></li>`)}</ol>
    ${events.length > limit && html`<button class="more" onClick=${() => setLimit(limit + 2000)}>Show more (${count(events.length - limit)} events are not shown)</button>`}`;
}

// Adjacent pieces of one kind as one event, with the time of the first.
function join(events) {
  const joined = [];
  for (const event of events) {
    const last = joined.at(-1);
    if (last && last.kind === event.kind && last.index === event.index && ["text", "reasoning", "arguments"].includes(event.kind)) last.text += event.text;
    else if (event.kind !== "call_end") joined.push({ ...event });
  }
  return joined;
}

// When the pieces of the model's answer came and when the client was written to, on one axis.
function Pieces({ turn }) {
  const total = Math.max(turn.record.duration * 1000, 1);
  const pieces = turn.pieces ?? [];
  if (!pieces.length) return null;
  const places = new Map();
  for (const [time, kind] of pieces) places.set(`${Math.round((200 * time) / total)} ${kind}`, [time, kind]);
  return html`<div class="pieces"><h4>Arrival of the model's answer</h4>
    <div class="axis" role="img" aria-label=${`${count(pieces.length)} pieces within ${duration(turn.record.duration)}`}>
      ${[...places.values()].map(([time, kind]) => html`<i class=${`tick ${kind}`} style=${{ left: `${(100 * time) / total}%` }}></i>`)}
      ${(turn.attempts.slice(0, -1)).map((attempt) => attempt.ended !== null && html`<i class="attempt-end" title="the model was asked again" style=${{ left: `${(100 * attempt.ended) / total}%` }}></i>`)}
    </div><div class="axis-ends"><span>0</span><span>${duration(turn.record.duration)}</span></div></div>`;
}

// -- attempts -----------------------------------------------------------------------------------------------------------

function Attempts({ turn, summary }) {
  if (turn.attempts.length < 2) return html`<p class="empty">The model was asked once. If an answer is defective, recovery asks again, and the attempts stand here side by side.</p>`;
  return html`<div class="attempts">${turn.attempts.map((attempt, at) => {
    const record = summary.attempts[at];
    return html`<section class="attempt" aria-label=${`Attempt ${at + 1}`}>
      <h3>Attempt ${at + 1} ${record?.error ? html`<${Badge} kind="bad">${visible(record.error)}<//>` : html`<${Badge} kind="good">accepted<//>`} <span class="quiet num">${duration(record?.duration)}</span></h3>
      ${attempt.feedback.length > 0 && html`<details open><summary>Feedback that it was sent</summary>${attempt.feedback.map((message) => html`<${TextBlock} text=${message.text} format=${false} label=${message.role === "assistant" ? "its own answer, repeated" : "feedback"} />`)}</details>`}
      ${attempt.segments.length ? html`<${Segments} segments=${attempt.segments} label=${`Text of attempt ${at + 1}`} />` : !attempt.calls?.length && html`<p class="quiet">No text.</p>`}
      <${NativeCalls} calls=${attempt.calls} />
      <details><summary>Request (${bytes(attempt.request.length)})</summary><${TextBlock} text=${attempt.request} label=${`request of attempt ${at + 1}`} /></details>
    </section>`;
  })}</div>`;
}

// -- changes since the turn before --------------------------------------------------------------------------------------

function Changes(props) {
  if (!props.before) return html`<p class="empty">This is the first turn: there is nothing to compare it with.</p>`;
  return html`<${Comparison} ...${props} />`;
}

function Comparison({ turn, summary, before, source }) {
  const [which, setWhich] = useState("upstream");
  const [earlier, error] = useData((signal) => source.turn(before.id, signal), [before.id]);
  if (error) return html`<${Note} kind="bad">${error.message}<//>`;
  if (!earlier) return html`<${Loading} />`;
  if (!earlier.recorded) return html`<p class="empty">The texts of the turn before were not recorded.</p>`;
  const pick = (one) => (which === "client" ? one.request : one.attempts[0]?.request ?? "");
  const [old, now] = [pick(earlier), pick(turn)];
  const same = commonPrefix(old, now), offset = firstDifferentByte(old, now);
  return html`<div class="changes">
    <div class="segmented" role="group" aria-label="Which requests">
      <button aria-pressed=${which === "upstream"} onClick=${() => setWhich("upstream")}>Upstream requests</button>
      <button aria-pressed=${which === "client"} onClick=${() => setWhich("client")}>Client requests</button>
    </div>
    <p class="cache-line">${old === now ? "The two requests are the same." : html`The first byte that differs is byte <b>${offset.toLocaleString("en")}</b> of ${new Blob([now]).size.toLocaleString("en")}.`}
      ${summary.stable_bytes !== null && summary.prompt_bytes > 0 && html` Of the prompt, the first <b>${summary.stable_bytes.toLocaleString("en")}</b> of ${summary.prompt_bytes.toLocaleString("en")} bytes are the same as in the request before, so an upstream can take as much from its cache.`}</p>
    ${summary.unstable_at && html`<${Note} kind="warn">The prompt cache is broken at <code>${visible(summary.unstable_at)}</code>, byte ${summary.stable_bytes.toLocaleString("en")}: everything behind it is read again.<//>`}
    ${old !== now && html`<pre class="code wrap around" tabindex="0" role="region" aria-label="Around the first difference"><span class="quiet">${visible(old.slice(Math.max(0, same - 120), same))}</span><ins>${visible(now.slice(same, same + 120))}</ins></pre>`}
    <${DiffView} before=${pretty(old)} after=${pretty(now)} label="Changes since the turn before" />
  </div>`;
}

function remembered() {
  try {
    return sessionStorage.getItem("turn-tab") ?? "answer";
  } catch {
    return "answer";
  }
}

function remember(id) {
  try {
    sessionStorage.setItem("turn-tab", id);
  } catch { /* a file */ }
}
