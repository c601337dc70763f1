// Small parts that views are made of.
import { html, useEffect, useRef, useState } from "console/lib/html.js";
import { bytes, count, pretty, visible } from "console/lib/format.js";

const PAGE = 60_000;
const MORE = 500_000;

export function Outcome({ value, failed = 0 }) {
  const kind = value === "ok" ? (failed ? "warn" : "good") : value === "abandoned" ? "quiet" : value ? "bad" : "quiet";
  return html`<span class=${`outcome ${kind}`}><i class="dot" aria-hidden="true"></i>${value || "–"}</span>`;
}

export function Badge({ kind = "", title, children }) {
  return html`<span class=${`badge ${kind}`} title=${title}>${children}</span>`;
}

export function Facts({ items }) {
  const shown = items.filter(([, value]) => value !== "" && value !== null && value !== undefined && value !== false);
  return html`<dl class="facts">${shown.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

export function Note({ kind = "info", children }) {
  return html`<p class=${`note ${kind}`} role=${kind === "bad" ? "alert" : "note"}>${children}</p>`;
}

export function Loading() {
  return html`<p class="loading" role="status">Loading …</p>`;
}

// A request for data: [data, error, reload]. `load` gets a signal that ends it.
export function useData(load, keys) {
  const [found, setFound] = useState([null, null]);
  const [round, setRound] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    setFound(([data]) => [round ? data : null, null]);
    load(abort.signal).then(
      (data) => abort.signal.aborted || setFound([data, null]),
      (error) => abort.signal.aborted || setFound([null, error]),
    );
    return () => abort.abort();
  }, [...keys, round]);
  return [...found, () => setRound((number) => number + 1)];
}

// Foreign text, shown as text. Only its beginning is put into the page until more is asked for.
export function TextBlock({ text, label, format = true, wrap = true }) {
  const [limit, setLimit] = useState(PAGE);
  const [raw, setRaw] = useState(false);
  const formatted = format ? pretty(text) : text;
  const shown = raw ? text : formatted;
  return html`<div class="block">
    <div class="block-tools">
      <span class="quiet">${label ? html`${label} · ` : ""}${bytes(new Blob([text]).size)}</span>
      ${formatted !== text && html`<button class="link" onClick=${() => setRaw(!raw)} aria-pressed=${raw}>${raw ? "formatted" : "raw"}</button>`}
      <${CopyButton} text=${() => shown} />
    </div>
    <pre class=${wrap ? "code wrap" : "code"} tabindex="0" role="region" aria-label=${label || "text"}>${visible(shown.slice(0, limit))}</pre>
    ${shown.length > limit && html`<button class="more" onClick=${() => setLimit(limit + MORE)}>
      Show more (${count(shown.length - limit)} of ${count(shown.length)} characters are not shown)</button>`}
  </div>`;
}

// A text within a line; only its beginning until more is asked for.
export function LongText({ text, limit: first = 20_000 }) {
  const [limit, setLimit] = useState(first);
  if (text.length <= limit) return visible(text);
  return html`${visible(text.slice(0, limit))} <button class="link" onClick=${() => setLimit(limit + MORE)}>Show more (${count(text.length - limit)} characters are not shown)</button>`;
}

export function Segments({ segments, label }) {
  const [limit, setLimit] = useState(PAGE);
  let left = limit;
  const shown = [];
  for (const [kind, text, note] of segments) {
    if (left <= 0) break;
    shown.push([kind, text.slice(0, left), note]);
    left -= text.length;
  }
  const total = segments.reduce((sum, [, text]) => sum + text.length, 0);
  return html`<pre class="code wrap segments" tabindex="0" role="region" aria-label=${label}>${shown.map(([kind, text, note]) =>
    kind === "prose" ? visible(text) : html`<span class=${`span-${kind}`} title=${note ? `${kind}: ${visible(note)}` : kind}>${visible(text)}</span>`)}</pre>
    ${total > limit && html`<button class="more" onClick=${() => setLimit(limit + MORE)}>Show more (${count(total - limit)} characters are not shown)</button>`}`;
}

export const LEGEND = [
  ["reasoning", "reasoning"], ["call", "call"], ["parameter", "parameter"], ["repair", "repaired call"],
  ["rejected", "rejected"], ["quoted", "quoted"],
];

export function Legend() {
  return html`<div class="legend" aria-hidden="true">${LEGEND.map(([kind, name]) => html`<span class=${`span-${kind}`}>${name}</span>`)}</div>`;
}

export function CopyButton({ text, children = "Copy" }) {
  const [done, setDone] = useState(false);
  const timer = useRef(0);
  useEffect(() => () => clearTimeout(timer.current), []);
  const copy = async () => {
    await copyText(await text());
    setDone(true);
    timer.current = setTimeout(() => setDone(false), 1500);
  };
  return html`<button class="link" onClick=${copy}>${done ? "Copied" : children}</button>`;
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch { // not a secure context
    const area = Object.assign(document.createElement("textarea"), { value: text });
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

// Tabs: `tabs` are [{id, title, badge}], `render` gets the id of the open one.
export function Tabs({ tabs, open, onOpen, label, children }) {
  const list = useRef(null);
  useEffect(() => {
    const tab = list.current?.querySelector("[aria-selected=true]");
    if (tab) list.current.scrollLeft = Math.max(0, tab.offsetLeft - list.current.offsetLeft - 60);
  }, [open]);
  const move = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = tabs.findIndex((tab) => tab.id === open);
    const next = tabs[(at + step + tabs.length) % tabs.length];
    onOpen(next.id);
    event.currentTarget.querySelector(`[data-tab="${next.id}"]`)?.focus();
    event.preventDefault();
  };
  return html`<div class="tabs">
    <div class="tab-list" ref=${list} role="tablist" aria-label=${label} onKeyDown=${move}>
      ${tabs.map((tab) => html`<button role="tab" key=${tab.id} id=${`tab-${tab.id}`} data-tab=${tab.id} aria-selected=${tab.id === open}
        aria-controls="tab-panel" tabindex=${tab.id === open ? 0 : -1} onClick=${() => onOpen(tab.id)}>${tab.title}${tab.badge ? html`<span class="tab-badge">${tab.badge}</span>` : ""}</button>`)}
    </div>
    <div role="tabpanel" id="tab-panel" aria-labelledby=${`tab-${open}`} class="tab-panel">${children}</div>
  </div>`;
}
