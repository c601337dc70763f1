// One session: its turns as a timeline, and the turn that is chosen.
import { html, useEffect, useState } from "console/lib/html.js";
import { count, duration, plural, visible, when } from "console/lib/format.js";
import { Badge, Facts, Loading, Note, Outcome, useData } from "console/lib/parts.js";
import { TurnDetail } from "console/views/turn.js";

// `source` gives the data: the gateway's API, or an exported file. `chosen` is the id of a turn.
export function SessionPage({ id, chosen, source, onChoose }) {
  const [data, error, reload] = useData((signal) => source.session(id, signal), [id]);
  useEffect(() => source.watch?.(id, reload), [id]);
  if (error) return html`<section class="view"><${Note} kind="bad">${error.message}<//><p><a href="#/sessions">All sessions</a></p></section>`;
  if (!data) return html`<section class="view"><${Loading} /></section>`;
  const { session, turns } = data;
  const current = turns.find((turn) => turn.id === chosen) ?? turns.filter((turn) => !turn.replay_of).at(-1) ?? turns.at(-1);
  return html`<section class="view session" aria-label=${`Session ${session.id}`}>
    <header class="session-head">
      <div class="title-line">
        ${source.home && html`<a class="back" href=${source.home} aria-label="All sessions">←</a>`}
        <h1><code>${session.id}</code></h1><${Outcome} value=${session.outcome} failed=${session.failed} />
        <span class="spring"></span>
        ${source.actions?.(session)}
      </div>
      <${Facts} items=${[
        ["Client", visible(session.client)], ["Model", visible(session.model)], ["Upstream", visible(session.upstream)],
        ["Began", when(session.created * 1000)], ["Turns", count(session.turns)], ["Calls", count(session.calls)],
        ["Repairs", session.repairs || ""], ["Rejected", session.rejected || ""], ["Retries", session.retries || ""],
        ["Tokens", session.input_tokens || session.output_tokens ? `${count(session.input_tokens)} in, ${count(session.output_tokens)} out` : ""], ["Time", duration(session.seconds)],
        ["Client's id", visible(session.client_session)],
      ]} />
    </header>
    <div class="session-body">
      <${Timeline} session=${session} turns=${turns} current=${current} onChoose=${onChoose} />
      ${current ? html`<${TurnDetail} key=${current.id} summary=${current} turns=${turns} source=${source} onChoose=${onChoose} onChange=${reload} />`
        : html`<p class="empty">The records of this session were deleted.</p>`}
    </div>
  </section>`;
}

// Turns as rows with bars; a bar's scale is the longest turn.
function Timeline({ session, turns, current, onChoose }) {
  const longest = Math.max(...turns.map((turn) => turn.duration), 0.001);
  const move = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1 }[event.key];
    if (!step) return;
    const next = turns[turns.indexOf(current) + step];
    if (next) {
      onChoose(next.id);
      event.currentTarget.querySelector(`[data-turn="${CSS.escape(next.id)}"]`)?.focus();
    }
    event.preventDefault();
  };
  let number = Math.max(0, session.turns - turns.filter((turn) => !turn.replay_of).length); // earlier turns are not listed
  const numbers = new Map();
  return html`<nav class="timeline" aria-label="Turns">
    <h2>${countTurns(turns, session)}</h2>
    <ol onKeyDown=${move}>${turns.map((turn) => {
      if (!turn.replay_of) numbers.set(turn.id, number += 1);
      return html`<li key=${turn.id}><button class=${`turn ${turn.replay_of ? "replayed" : ""}`} data-turn=${turn.id} aria-current=${turn === current ? "true" : undefined} onClick=${() => onChoose(turn.id)}>
        <span class="turn-line"><b class="turn-number">${turn.replay_of ? "↻" : number}</b>
          <span class="turn-what">${describe(turn)}</span>
          <span class="num">${duration(turn.duration)}</span></span>
        <${Bar} turn=${turn} longest=${longest} />
        <span class="turn-line badges">${turn.outcome !== "ok" && html`<${Badge} kind="bad">${turn.error || turn.outcome}<//>`}
          ${turn.replay_of && html`<${Badge} kind="info">replay${numbers.has(turn.replay_of) && ` of ${numbers.get(turn.replay_of)}`}<//>`}
          <${Badge}>${turn.dialect || turn.mode || "–"}<//>
          ${turn.attempts?.length > 1 && html`<${Badge} kind="warn">${turn.attempts.length} attempts<//>`}
          ${turn.repairs?.length > 0 && html`<${Badge} kind="warn" title=${turn.repairs.join(", ")}>${plural(turn.repairs.length, "repair")}<//>`}
          ${turn.rejected?.length > 0 && html`<${Badge} kind="bad" title=${turn.rejected.join(", ")}>${turn.rejected.length} rejected<//>`}
          ${turn.unstable_at && html`<${Badge} kind="warn" title=${`The prompt changed at byte ${turn.stable_bytes}: ${turn.unstable_at}`}>cache broken<//>`}
        </span>
      </button></li>`;
    })}</ol>
  </nav>`;
}

function countTurns(turns, session) {
  const replays = turns.filter((turn) => turn.replay_of).length, listed = turns.length - replays;
  const shown = listed < session.turns ? `the last ${count(listed)} of ${plural(session.turns, "turn")}` : plural(listed, "turn");
  return replays ? `${shown}, ${plural(replays, "replay")}` : shown;
}

function describe(turn) {
  if (turn.tools?.length) return visible(turn.tools.join(", "));
  if (turn.outcome !== "ok") return html`<span class="quiet">no answer</span>`;
  return html`<span class="quiet">${turn.finish === "length" ? "text, cut" : "text"}</span>`;
}

function Bar({ turn, longest }) {
  const width = (100 * turn.duration) / longest, first = turn.first_chunk === null ? width : (100 * turn.first_chunk) / longest;
  return html`<span class="bar" title=${`${duration(turn.duration)}, first byte after ${duration(turn.first_chunk)}`} aria-hidden="true">
    <i class="bar-wait" style=${{ width: `${Math.min(first, width)}%` }}></i><i class="bar-stream" style=${{ width: `${Math.max(width - first, 0.6)}%` }}></i></span>`;
}
