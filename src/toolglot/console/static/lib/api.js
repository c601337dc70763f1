// Requests to the gateway. Every failure is an Error with a message for people and the HTTP status.
import { signal } from "console/lib/html.js";

const BASE = "/console/api";
const RETRY = 5000;

// The state of the gateway: login, read-only mode, which bodies are recorded. null while it is not known.
export const state = signal(null);

export async function loadState() {
  state.value = await get("/state");
  return state.value;
}

export async function get(path, options = {}) {
  return send("GET", path, undefined, options);
}

export async function send(method, path, body, options = {}) {
  const headers = { "x-toolglot-console": "1" };
  if (body !== undefined) headers["content-type"] = "application/json";
  let response;
  try {
    response = await fetch(BASE + path, {
      method, headers, signal: options.signal,
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw Object.assign(new Error("The gateway does not answer."), { status: 0 });
  }
  if (response.ok) return response.json();
  const answer = await response.json().catch(() => null);
  if (response.status === 401 && path !== "/login" && state.value) state.value = { ...state.value, logged_in: false };
  throw Object.assign(new Error(answer?.error?.message ?? `Status ${response.status}`), { status: response.status });
}

// Live updates. `listeners` maps names of events to functions; `onOpen` is called when updates begin, and begin again: what
// happened before is not among them. Returns a function that ends them.
export function listen(listeners, onState, onOpen) {
  let source = null, timer = 0;
  const open = () => {
    source = new EventSource(`${BASE}/live`);
    source.onopen = () => { onState(true); onOpen(); };
    source.onerror = () => {
      onState(false);
      if (source.readyState !== EventSource.CLOSED) return; // the browser tries again by itself
      timer = setTimeout(open, RETRY);
      loadState().catch(() => {}); // the login may have ended
    };
    for (const [name, listener] of Object.entries(listeners)) {
      source.addEventListener(name, (event) => listener(JSON.parse(event.data)));
    }
  };
  open();
  return () => { clearTimeout(timer); source.close(); };
}
