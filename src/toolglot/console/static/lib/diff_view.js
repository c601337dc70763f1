// Two texts as one list of lines with what changed.
import { html, useMemo, useState } from "console/lib/html.js";
import { visible } from "console/lib/format.js";
import { diffLines, foldDiff } from "console/lib/diff.js";

const SIGNS = { same: " ", removed: "−", added: "+" };
const NAMES = { removed: "removed", added: "added" };
const MAX_SHOWN = 3000;

export function DiffView({ before, after, label }) {
  const rows = useMemo(() => foldDiff(diffLines(before, after)), [before, after]);
  const changed = rows.some((row) => row.kind === "removed" || row.kind === "added");
  if (!changed) return html`<p class="quiet">No difference.</p>`;
  return html`<div class="diff" role="region" aria-label=${label} tabindex="0">${rows.slice(0, MAX_SHOWN).map((row) => (row.kind === "fold" ? html`<${Fold} lines=${row.hidden} />` : html`<${Line} row=${row} />`))}
    ${rows.length > MAX_SHOWN && html`<p class="quiet">${rows.length - MAX_SHOWN} more lines are not shown.</p>`}</div>`;
}

function Line({ row }) {
  return html`<div class=${`diff-line ${row.kind}`}><span class="sign" aria-label=${NAMES[row.kind]}>${SIGNS[row.kind]}</span><span class="diff-text">${row.parts.map(([isChanged, text]) => (isChanged ? html`<mark>${visible(text)}</mark>` : visible(text)))}</span></div>`;
}

function Fold({ lines }) {
  const [open, setOpen] = useState(false);
  if (!open) return html`<button class="fold" onClick=${() => setOpen(true)}>${lines.length} equal lines</button>`;
  return lines.slice(0, MAX_SHOWN).map((text) => html`<${Line} row=${{ kind: "same", parts: [[false, text]] }} />`);
}
