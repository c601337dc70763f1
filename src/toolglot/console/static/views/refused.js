// Requests that were refused before it was known to which session they belong, such as those of a misconfigured client.
import { html } from "console/lib/html.js";
import { get } from "console/lib/api.js";
import { count, plural, when } from "console/lib/format.js";
import { Badge, Loading, Note, useData } from "console/lib/parts.js";
import { makeSource } from "console/views/session_live.js";
import { TurnDetail } from "console/views/turn.js";

function RefusedView({ match }) {
  const [found, error] = useData((signal) => get("/refused", { signal }), []);
  if (error) return html`<section class="view"><${Note} kind="bad">${error.message}<//></section>`;
  if (!found) return html`<section class="view"><${Loading} /></section>`;
  const turns = found.requests, current = turns.find((turn) => turn.id === match[1]) ?? turns[0];
  const choose = (id) => { location.hash = `#/refused/${encodeURIComponent(id)}`; };
  return html`<section class="view session" aria-label="Refused requests">
    <header class="session-head"><div class="title-line"><a class="back" href="#/sessions" aria-label="All sessions">←</a><h1>Refused requests</h1></div>
      <p class="quiet">The newest requests that were refused before it was known to which session they belong: for example because they were not valid, or the gateway was too busy.</p></header>
    ${!current ? html`<p class="empty">No request was refused.</p>` : html`<div class="session-body">
      <nav class="timeline" aria-label="Refused requests"><h2>${plural(turns.length, "request")}</h2>
        <ol>${turns.map((turn) => html`<li key=${turn.id}><button class="turn" data-turn=${turn.id} aria-current=${turn === current ? "true" : undefined} onClick=${() => choose(turn.id)}>
          <span class="turn-line"><b class="turn-what">${turn.client || turn.agent || "unknown client"}</b><span class="num">${when(Date.parse(turn.time))}</span></span>
          <span class="turn-line"><${Badge} kind="bad">${turn.error || count(turn.status)}<//><${Badge}>${turn.wire}<//></span>
        </button></li>`)}</ol></nav>
      <${TurnDetail} key=${current.id} summary=${current} turns=${[current]} source=${makeSource()} onChoose=${choose} /></div>`}
  </section>`;
}

export const view = { name: "refused", title: "Refused requests", path: /^\/refused(?:\/([^/]+))?$/, Component: RefusedView };
