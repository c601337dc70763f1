// A list of any length, of which only the visible rows are in the page. Rows come in pages, by their positions.
import { html, useEffect, useLayoutEffect, useRef, useState } from "console/lib/html.js";

const MARGIN = 12;
const MAX_HEIGHT = 8_000_000; // browsers cannot lay out taller elements; beyond it rows are found by proportion

export function VirtualList({ total, rowHeight, renderRow, need, label, header }) {
  const box = useRef(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  const measure = () => {
    const element = box.current;
    if (element) setView({ top: element.scrollTop, height: element.clientHeight });
  };
  useLayoutEffect(() => {
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  const whole = total * rowHeight, height = Math.min(whole, MAX_HEIGHT), scale = whole > height ? (whole - view.height) / (height - view.height) : 1;
  const top = view.top * scale;
  const first = Math.max(0, Math.floor(top / rowHeight) - MARGIN);
  const last = Math.min(total, Math.ceil((top + view.height) / rowHeight) + MARGIN);
  useEffect(() => need(first, last), [first, last, total]);
  const shift = view.top - top;
  const rows = [];
  for (let at = first; at < last; at += 1) rows.push(renderRow(at, { height: `${rowHeight}px`, transform: `translateY(${at * rowHeight + shift}px)` }));
  return html`<div class="virtual" ref=${box} onScroll=${measure} role="table" aria-label=${label} aria-rowcount=${total + 1} tabindex="0">
    ${header}
    <div class="virtual-body" role="rowgroup" style=${{ height: `${height}px` }}>${rows}</div>
  </div>`;
}
