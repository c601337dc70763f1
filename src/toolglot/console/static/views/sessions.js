// The live list of sessions. Pages of rows are loaded as they are scrolled to; live updates reload the visible ones.
import { html, useEffect, useRef, useState } from "console/lib/html.js";
import { get, listen, state } from "console/lib/api.js";
import { count, duration, plural, visible, when } from "console/lib/format.js";
import { Badge, Note, Outcome } from "console/lib/parts.js";
import { VirtualList } from "console/lib/virtual_list.js";
import { live } from "console/lib/live_state.js";

const PAGE = 100;
const TYPING = 200;
const NARROW = "(max-width: 720px)";
const OUTCOMES = ["ok", "failed", "refused", "abandoned"];
const COLUMNS = [
  ["Last turn", "c-time"], ["Client", "c-client"], ["Model", "c-model"], ["Turns", "num"], ["Calls", "num"],
  ["Repairs", "num"], ["Retries", "num"], ["Tokens in", "num"], ["Tokens out", "num"], ["Time", "num"], ["Outcome", "c-outcome"],
];

function SessionsView() {
  const [filter, setFilter] = useState({ text: "", outcome: "", troubled: false });
  const [typed, setTyped] = useState("");
  const [open, setOpen] = useState([]);
  const [error, setError] = useState(null);
  const [total, setTotal] = useState(null);
  const [fresh, setFresh] = useState(() => new Set());
  const pages = useRef(new Map());
  const shownFilter = useRef(filter);
  if (shownFilter.current !== filter) {
    shownFilter.current = filter;
    pages.current = new Map();
  }
  const range = useRef([0, 50]);
  const [, redraw] = useState(0);
  const rowHeight = useRowHeight();

  const load = async (page, again = false) => {
    if (pages.current.has(page) && !again) return;
    const kept = pages.current;
    if (!again) kept.set(page, null);
    const query = new URLSearchParams({ offset: page * PAGE, limit: PAGE, text: filter.text, outcome: filter.outcome, troubled: filter.troubled ? "1" : "" });
    try {
      const answer = await get(`/sessions?${query}`);
      if (kept !== pages.current) return; // another filter was set meanwhile
      kept.set(page, answer.sessions);
      setTotal(answer.total);
      setError(null);
      redraw((number) => number + 1);
    } catch (problem) {
      if (kept !== pages.current) return;
      kept.delete(page);
      setError(problem);
    }
  };
  const need = (first, last) => {
    range.current = [first, last];
    for (let page = Math.floor(first / PAGE); page * PAGE < Math.max(last, 1); page += 1) load(page);
  };
  useEffect(() => need(0, 50), [filter]);
  useEffect(() => { // the search begins when the person pauses
    const timer = setTimeout(() => setFilter((old) => (old.text === typed ? old : { ...old, text: typed })), TYPING);
    return () => clearTimeout(timer);
  }, [typed]);
  useEffect(() => {
    const refresh = (sessions) => {
      const [first, last] = range.current, kept = new Map();
      for (const [page, rows] of pages.current) if (page >= Math.floor(first / PAGE) && page * PAGE <= last) kept.set(page, rows);
      pages.current = kept;
      for (const page of kept.keys()) load(page, true);
      if (!kept.size) load(Math.floor(first / PAGE));
      if (sessions.length) setFresh(new Set(sessions.map((session) => session.id)));
    };
    return listen({ sessions: refresh, progress: setOpen, problem: (message) => setError(new Error(message)) }, (up) => { live.value = up; }, () => { setOpen([]); refresh([]); });
  }, [filter]);

  const change = (fields) => setFilter((old) => ({ ...old, ...fields }));
  const row = (at) => pages.current.get(Math.floor(at / PAGE))?.[at % PAGE];
  const header = html`<div class="row head" role="row" aria-rowindex="1">${COLUMNS.map(([name, kind]) => html`<span role="columnheader" class=${kind}>${name}</span>`)}</div>`;
  return html`<section class="view sessions" aria-label="Sessions">
    <div class="toolbar">
      <h1>Sessions</h1>
      <input type="search" id="search" placeholder="Search id, model, client …  ( / )" aria-label="Search sessions" value=${typed} onInput=${(event) => setTyped(event.target.value)} />
      <select aria-label="Outcome of the last turn" value=${filter.outcome} onChange=${(event) => change({ outcome: event.target.value })}>
        <option value="">any outcome</option>${OUTCOMES.map((name) => html`<option value=${name}>${name}</option>`)}
      </select>
      <label class="check"><input type="checkbox" checked=${filter.troubled} onChange=${(event) => change({ troubled: event.target.checked })} /> needs attention</label>
      <a class="aside" href="#/refused" title="Requests that were refused before a session was known">refused requests</a>
      <span class="quiet total" role="status">${total === null ? "" : plural(total, "session")}</span>
    </div>
    ${error && html`<${Note} kind="bad">${error.message}<//>`}
    <${OpenRequests} open=${open} />
    ${total === 0 && !error ? html`<${Empty} filtered=${filter.text || filter.outcome || filter.troubled} />` : html`<${VirtualList} key=${JSON.stringify(filter)} total=${total ?? 0} rowHeight=${rowHeight} need=${need} label="Sessions, most recently used first" header=${header}
      renderRow=${(at, style) => html`<${SessionRow} key=${row(at)?.id ?? `row-${at}`} session=${row(at)} at=${at} style=${style} isFresh=${fresh.has(row(at)?.id)} />`} />`}
  </section>`;
}

function SessionRow({ session, at, style, isFresh }) {
  if (!session) return html`<div class="row" role="row" aria-rowindex=${at + 2} style=${style}><span role="cell" class="quiet">…</span></div>`;
  const used = session.used * 1000, href = `#/sessions/${encodeURIComponent(session.id)}`;
  const go = (event) => { if (!event.target.closest("a")) location.hash = href; };
  return html`<div class=${`row ${isFresh ? "fresh" : ""}`} role="row" aria-rowindex=${at + 2} style=${style} onClick=${go} onKeyDown=${moveFocus}>
    <span role="cell" class="c-time"><a href=${href} title=${session.id}>${when(used)}</a></span>
    <span role="cell" class="c-client" title=${visible(session.client_session || "")}>${visible(session.client) || html`<i class="quiet">unknown</i>`}</span>
    <span role="cell" class="c-model" title=${`${visible(session.model)} at ${visible(session.upstream)}`}>${visible(session.model)}</span>
    <span class="c-summary" aria-hidden="true">${plural(session.turns, "turn")} · ${plural(session.calls, "call")}${session.repairs ? ` · ${plural(session.repairs, "repair")}` : ""}${session.retries ? ` · ${plural(session.retries, "retry", "retries")}` : ""}</span>
    <span role="cell" class="num">${count(session.turns)}</span>
    <span role="cell" class="num">${count(session.calls)}</span>
    <span role="cell" class=${`num ${session.repairs ? "hot" : "zero"}`}>${count(session.repairs)}</span>
    <span role="cell" class=${`num ${session.retries ? "hot" : "zero"}`}>${count(session.retries)}</span>
    <span role="cell" class="num">${tokens(session, session.input_tokens)}</span>
    <span role="cell" class="num">${tokens(session, session.output_tokens)}</span>
    <span role="cell" class="num">${duration(session.seconds)}</span>
    <span role="cell" class="c-outcome"><${Outcome} value=${session.outcome} failed=${session.failed} />${session.failed > 1 && html` <${Badge} kind="bad" title="turns that were not answered">${session.failed} failed<//>`}</span>
  </div>`;
}

// Tokens are counted by upstreams, and not by all of them.
function tokens(session, number) {
  return session.input_tokens || session.output_tokens ? count(number) : html`<span class="quiet" title="the upstream did not count tokens">–</span>`;
}

// Requests in progress, as this process of the gateway sees them.
function OpenRequests({ open }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (!open.length) return undefined;
    const timer = setInterval(() => setNow(Date.now()), 500);
    return () => clearInterval(timer);
  }, [open.length > 0]);
  if (!open.length) return null;
  return html`<div class="open" role="region" aria-label="Requests in progress">
    <h2>${plural(open.length, "request")} in progress</h2>
    <ul>${open.slice(0, 8).map((one) => html`<li key=${one.request_id}>
      <i class="pulse" aria-hidden="true"></i><b>${visible(one.model) || "…"}</b>
      <span class="quiet">${visible(one.client)}</span>
      <${Badge}>${one.dialect || one.mode || one.wire}<//>
      ${one.attempts > 1 && html`<${Badge} kind="warn">attempt ${one.attempts}<//>`}
      ${one.replay_of && html`<${Badge} kind="info">replay<//>`}
      <span class="num">${count(one.bytes)} bytes</span><span class="num">${duration(Math.max(0, now / 1000 - one.began))}</span>
    </li>`)}</ul>
  </div>`;
}

function Empty({ filtered }) {
  if (filtered) return html`<p class="empty">No session matches.</p>`;
  const store = state.value?.store;
  if (store && store !== "ok") return html`<div class="empty"><p>${store}</p></div>`;
  return html`<div class="empty"><h2>No sessions yet</h2><p>Point a client at this gateway: <code>${location.origin}/v1</code>.</p><p class="quiet">A session appears here as soon as its first request has ended. Requests that are not valid belong to no session: they are among the <a href="#/refused">refused requests</a>.</p></div>`;
}

function useRowHeight() {
  const [narrow, setNarrow] = useState(() => matchMedia(NARROW).matches);
  useEffect(() => {
    const query = matchMedia(NARROW), change = () => setNarrow(query.matches);
    query.addEventListener("change", change);
    return () => query.removeEventListener("change", change);
  }, []);
  return narrow ? 68 : 32;
}

function moveFocus(event) {
  const step = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
  const next = step && event.currentTarget[step]?.querySelector("a");
  if (next) {
    next.focus();
    event.preventDefault();
  }
}

export const view = { name: "sessions", title: "Sessions", path: /^\/?(?:sessions)?$/, href: "#/sessions", Component: SessionsView };
