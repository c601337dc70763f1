// Two texts as one list of lines with what changed.
import { html, useMemo, useState } from "console/lib/html.js";
import { count, visible } from "console/lib/format.js";
import { diffLines, foldDiff } from "console/lib/diff.js";

const SIGNS = { same: " ", removed: "−", added: "+" };
const NAMES = { removed: "removed", added: "added" };
const MAX_SHOWN = 3000;
const LONG = 500; // characters of an unchanged text that are shown in full
const NEAR = 160;
const BEGINNING = 40;

export function DiffView({ before, after, label }) {
  const rows = useMemo(() => foldDiff(diffLines(before, after)), [before, after]);
  const changed = rows.some((row) => row.kind === "removed" || row.kind === "added");
  if (!changed) return html`<p class="quiet">No difference.</p>`;
  return html`<div class="diff" role="region" aria-label=${label} tabindex="0">${rows.slice(0, MAX_SHOWN).map((row) => (row.kind === "fold" ? html`<${Fold} lines=${row.hidden} />` : html`<${Line} row=${row} />`))}
    ${rows.length > MAX_SHOWN && html`<p class="quiet">${rows.length - MAX_SHOWN} more lines are not shown.</p>`}</div>`;
}

function Line({ row }) {
  return html`<div class=${`diff-line ${row.kind}`}><span class="sign" aria-label=${NAMES[row.kind]}>${SIGNS[row.kind]}</span><span class="diff-text">${row.parts.map(([isChanged, text], at) => (isChanged ? html`<mark>${visible(text)}</mark>` : row.parts.length > 1 || row.kind === "same" ? html`<${Unchanged} text=${text} isFirst=${at === 0} isLast=${at === row.parts.length - 1} />` : visible(text)))}</span></div>`;
}

// Text within a line that did not change; of a long one only what is next to a change, until more is asked for.
function Unchanged({ text, isFirst, isLast }) {
  const [open, setOpen] = useState(false);
  if (open || text.length <= LONG) return visible(text);
  const head = isFirst && !isLast ? BEGINNING : NEAR, tail = isLast ? 0 : NEAR;
  return html`${visible(text.slice(0, head))}<button class="link" onClick=${() => setOpen(true)}> … ${count(text.length - head - tail)} equal characters … </button>${visible(text.slice(text.length - tail))}`;
}

function Fold({ lines }) {
  const [open, setOpen] = useState(false);
  if (!open) return html`<button class="fold" onClick=${() => setOpen(true)}>${lines.length} equal lines</button>`;
  return lines.slice(0, MAX_SHOWN).map((text) => html`<${Line} row=${{ kind: "same", parts: [[false, text]] }} />`);
}
