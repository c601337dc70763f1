// The view Playground: paste a text and tools, and see what is read. All of its state is in the link.
import { html, useEffect, useState } from "console/lib/html.js";
import { get, send } from "console/lib/api.js";
import { count, plural, pretty, visible } from "console/lib/format.js";
import { Badge, CopyButton, Legend, Note, Segments, Tabs, TextBlock } from "console/lib/parts.js";

const SIZES = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128, 256, 0];
const EXAMPLE = {
  text: 'I look at the file first.\n<tool_call>\n{"name": "read_file", "arguments": {"path": "src/app.py"}}\n</tool_call>',
  tools: JSON.stringify([{ type: "function", function: { name: "read_file", description: "Read a file", parameters: { type: "object", properties: { path: { type: "string" } }, required: ["path"] } } }], null, 2),
  dialect: "auto", size: 4, truncated: false, unknown: "allow",
};

function PlaygroundView({ match }) {
  const [input, setInput] = useState(() => readLink(match[1]) ?? EXAMPLE);
  const [found, setFound] = useState(null);
  const [error, setError] = useState(null);
  const [open, setOpen] = useState("text");
  const [dialects, setDialects] = useState([]);
  const change = (fields) => setInput((known) => ({ ...known, ...fields }));
  useEffect(() => { get("/dialects").then(setDialects, setError); }, []);
  useEffect(() => {
    const shared = readLink(match[1]);
    if (shared) setInput(shared);
  }, [match[1]]);
  useEffect(() => {
    const abort = new AbortController(); // an answer that comes late is about an earlier text
    const timer = setTimeout(async () => {
      const tools = parseTools(input.tools);
      if (tools instanceof Error) return setError(tools);
      try {
        setFound(await send("POST", "/playground", { text: input.text, tools, dialect: input.dialect, size: input.size, truncated: input.truncated, unknown_tools: input.unknown }, { signal: abort.signal }));
        setError(null);
      } catch (failure) {
        if (!abort.signal.aborted) setError(failure);
      }
      return undefined;
    }, 250);
    return () => { clearTimeout(timer); abort.abort(); };
  }, [input]);
  return html`<section class="view playground" aria-label="Playground">
    <div class="toolbar"><h1>Playground</h1>
      <label class="check">Dialect <select value=${input.dialect} onChange=${(event) => change({ dialect: event.target.value })}><option value="auto">auto</option>${dialects.map((one) => html`<option key=${one.name} value=${one.name}>${one.name}</option>`)}</select></label>
      <label class="check">Chunks <input type="range" min="0" max=${SIZES.length - 1} value=${SIZES.indexOf(input.size)} aria-valuetext=${sizeName(input.size)} onInput=${(event) => change({ size: SIZES[event.target.value] })} /> <span class="size">${sizeName(input.size)}</span></label>
      <label class="check">Unknown tools <select value=${input.unknown} onChange=${(event) => change({ unknown: event.target.value })}>${["allow", "text", "reject"].map((one) => html`<option value=${one}>${one}</option>`)}</select></label>
      <label class="check"><input type="checkbox" checked=${input.truncated} onChange=${(event) => change({ truncated: event.target.checked })} /> cut by the token limit</label>
      <span class="spring"></span>
      <select aria-label="Load a sample" value="" onChange=${(event) => { const one = dialects.find((dialect) => dialect.name === event.target.value); if (one) change({ text: one.sample }); event.target.value = ""; }}><option value="">Sample …</option>${dialects.map((one) => html`<option key=${one.name} value=${one.name}>${one.name}</option>`)}</select>
      <${CopyButton} text=${() => `${location.origin}/console#/playground/${makeLink(input)}`}>Copy link<//>
    </div>
    <div class="play-body">
      <div class="play-input">
        <label>Text of the model<textarea spellcheck=${false} value=${input.text} onInput=${(event) => change({ text: event.target.value })}></textarea></label>
        <label>Tools, as JSON<textarea spellcheck=${false} value=${input.tools} onInput=${(event) => change({ tools: event.target.value })}></textarea></label>
      </div>
      <div class="play-output">
        ${error && html`<${Note} kind="bad">${visible(error.message)}<//>`}
        ${found && html`<${Result} found=${found} open=${open} onOpen=${setOpen} />`}
      </div>
    </div>
  </section>`;
}

function Result({ found, open, onOpen }) {
  const wires = Object.keys(found.wires);
  const tabs = [
    { id: "text", title: "Text" }, { id: "calls", title: `Calls (${found.calls.length})`, badge: found.rejected.length ? `${found.rejected.length} rejected` : "" },
    { id: "events", title: `Events (${count(found.event_count)})` }, ...wires.map((wire) => ({ id: wire, title: wire })),
  ];
  return html`<${Tabs} tabs=${tabs} open=${open} onOpen=${onOpen} label="What was read">
    ${open === "text" && html`<${Legend} /><${Segments} segments=${found.segments} label="Text in segments" />
      ${found.text && html`<h3 class="gap">Text for the client</h3><${TextBlock} text=${found.text} format=${false} />`}
      ${found.reasoning && html`<h3 class="gap">Reasoning</h3><${TextBlock} text=${found.reasoning} format=${false} />`}`}
    ${open === "calls" && html`<${Calls} found=${found} />`}
    ${open === "events" && html`<${Events} found=${found} />`}
    ${wires.includes(open) && html`<${TextBlock} text=${found.wires[open]} label=${`the answer as ${open}`} />`}
  <//>`;
}

function Calls({ found }) {
  if (!found.calls.length && !found.rejected.length) return html`<p class="empty">No calls.</p>`;
  return html`<div class="call-list">
    ${found.calls.map((call) => html`<article class="call-card"><h3><code>${visible(call.name)}</code> <${Badge}>${call.dialect}<//> <span class="quiet">confidence ${call.confidence.toFixed(2)}</span> ${call.repairs.map((repair) => html`<${Badge} kind="warn">${repair}<//>`)}</h3>
      <pre class="code wrap" tabindex="0" aria-label="Arguments">${visible(pretty(call.arguments))}</pre></article>`)}
    ${found.rejected.map((one) => html`<article class="call-card bad"><h3>rejected: ${one.reason} ${one.tool && html`<code>${visible(one.tool)}</code>`} ${one.dialect && html`<${Badge}>${one.dialect}<//>`}</h3>
      <ul class="notes">${one.defects.map((defect) => html`<li>${visible(defect)}</li>`)}</ul>
      <pre class="code wrap" tabindex="0" aria-label="The rejected text">${visible(one.raw)}</pre>
      ${one.feedback && html`<h4>What the model is told</h4><pre class="code wrap" tabindex="0" aria-label="Feedback">${visible(one.feedback)}</pre>`}</article>`)}
  </div>`;
}

function Events({ found }) {
  return html`<div class="events" tabindex="0" role="region" aria-label="Events">${found.events.map(({ chunk, event, ...fields }) => html`<div class=${`event ${kindOf(event)}`}><span class="event-time">#${chunk + 1}</span><span class="event-kind">${event}</span><span class="event-text">${visible(describe(event, fields))}</span></div>`)}</div>
    ${found.event_count > found.events.length && html`<p class="quiet">${plural(found.event_count - found.events.length, "further event")} not shown.</p>`}`;
}

function describe(event, fields) {
  if ("text" in fields) return fields.text;
  if (event === "CallArguments") return fields.fragment;
  return JSON.stringify(fields);
}

function kindOf(event) {
  return { CallStarted: "call", CallEnded: "call", CallArguments: "arguments", ReasoningDelta: "reasoning", CallRejected: "rejected" }[event] ?? "text";
}

function parseTools(text) {
  if (!text.trim()) return [];
  try {
    const tools = JSON.parse(text);
    return Array.isArray(tools) ? tools : new Error("Tools must be a JSON array.");
  } catch (error) {
    return new Error(`Tools are not JSON: ${error.message}`);
  }
}

function sizeName(size) {
  return size ? plural(size, "character") : "whole";
}

// The link holds the input as UTF-8 in base64url; nothing of it is sent to a server when it is opened.
function makeLink(input) {
  const encoded = new TextEncoder().encode(JSON.stringify(input));
  let binary = "";
  for (const byte of encoded) binary += String.fromCharCode(byte);
  return btoa(binary).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

function readLink(given) {
  if (!given) return null;
  try {
    const binary = atob(given.replace(/-/g, "+").replace(/_/g, "/"));
    const found = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(binary, (one) => one.charCodeAt(0))));
    const clean = { ...EXAMPLE };
    for (const [name, value] of Object.entries(EXAMPLE)) if (typeof found[name] === typeof value) clean[name] = found[name];
    return { ...clean, size: SIZES.includes(clean.size) ? clean.size : EXAMPLE.size };
  } catch {
    return null;
  }
}

export const view = { name: "playground", title: "Playground", path: /^\/playground(?:\/([\w-]*))?$/, href: "#/playground", Component: PlaygroundView };
