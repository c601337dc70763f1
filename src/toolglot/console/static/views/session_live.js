// The session view on the gateway's data.
import { html, useState } from "console/lib/html.js";
import { get, listen, send, state } from "console/lib/api.js";
import { live } from "console/lib/live_state.js";
import { SessionPage } from "console/views/session.js";

export function makeSource() {
  const readOnly = Boolean(state.value?.read_only);
  return {
    home: "#/sessions",
    bodies: state.value?.bodies,
    readOnly,
    session: (id, signal) => get(`/sessions/${encodeURIComponent(id)}`, { signal }),
    turn: (id, signal) => get(`/turns/${encodeURIComponent(id)}`, { signal }),
    snippets: (id, signal) => get(`/turns/${encodeURIComponent(id)}/snippets`, { signal }),
    replayOptions: (signal) => get("/replay/options", { signal }),
    replay: (id, choice) => send("POST", `/turns/${encodeURIComponent(id)}/replay`, choice),
    watch: (id, changed) => listen({ sessions: (sessions) => sessions.some((session) => session.id === id) && changed() }, (up) => { live.value = up; }, changed),
    actions: (session) => html`<${ExportLink} id=${session.id} />
      ${!readOnly && html`<button class="danger" onClick=${() => remove(session)}>Delete</button>`}`,
  };
}

// A link that is followed if the gateway has time for it: the browser shows nothing of an answer that is no file.
function ExportLink({ id }) {
  const [problem, setProblem] = useState("");
  const path = `/sessions/${encodeURIComponent(id)}/export`;
  const check = async (event) => {
    event.preventDefault();
    const link = event.currentTarget;
    try {
      await get(`${path}?check=1`);
      setProblem("");
      const file = Object.assign(document.createElement("a"), { href: link.href, download: link.download });
      file.click();
    } catch (error) {
      setProblem(error.message);
    }
  };
  return html`${problem && html`<span class="problem" role="alert">${problem}</span>`}<a class="button" href=${`/console/api${path}`} download=${`${id}.html`} onClick=${check}>Export HTML</a>`;
}

async function remove(session) {
  if (!confirm(`Delete session ${session.id} with all its records?`)) return;
  await send("DELETE", `/sessions/${encodeURIComponent(session.id)}`);
  location.hash = "#/sessions";
}

function SessionView({ match }) {
  const id = decode(match[1]), chosen = match[2] && decode(match[2]);
  const choose = (turn) => { location.hash = `#/sessions/${encodeURIComponent(id)}/${encodeURIComponent(turn)}`; };
  return html`<${SessionPage} id=${id} chosen=${chosen} source=${makeSource()} onChoose=${choose} />`;
}

// An address that a person typed may not be a valid encoding.
function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export const view = { name: "session", title: "", path: /^\/sessions\/([^/]+)(?:\/([^/]+))?$/, Component: SessionView };
