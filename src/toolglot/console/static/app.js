// The frame of the console: login, navigation, theme. VIEWS lists the views; docs/console.md says how to add one.
import { html, render, signal, useEffect, useState } from "console/lib/html.js";
import { loadState, send, state } from "console/lib/api.js";
import { switchTheme, theme } from "console/lib/theme.js";
import { live } from "console/lib/live_state.js";
import { Loading, Note } from "console/lib/parts.js";
import { view as sessions } from "console/views/sessions.js";
import { view as session } from "console/views/session_live.js";
import { view as refused } from "console/views/refused.js";
import { view as kpis } from "console/views/kpis.js";
import { view as playground } from "console/views/playground.js";
import { view as routes } from "console/views/routes.js";

const VIEWS = [sessions, session, refused, kpis, playground, routes];
const path = signal(readPath());
const problem = signal(null);
const copiesWork = signal(false); // whether the login has ended here only

function readPath() {
  return location.hash.replace(/^#/, "") || "/sessions";
}

addEventListener("hashchange", () => { path.value = readPath(); });
addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
  const search = document.getElementById("search");
  if (search) {
    search.focus();
    event.preventDefault();
  }
});

function App() {
  const known = state.value;
  if (problem.value) return html`<main class="center"><${Note} kind="bad">${problem.value.message}<//></main>`;
  if (!known) return html`<main class="center"><${Loading} /></main>`;
  if (!known.logged_in) return html`<${LoginPage} possible=${known.login_possible} />`;
  return html`<${Shell} />`;
}

function Shell() {
  const found = VIEWS.map((view) => [view, view.path.exec(path.value)]).find(([, match]) => match);
  const [view, match] = found ?? [];
  useEffect(() => {
    document.title = `${view?.title || "Session"} · toolglot`;
    live.value = null;
  }, [view?.name]);
  return html`<div class="shell">
    <a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.getElementById("main").focus(); }}>Skip to content</a>
    <header class="top">
      <a class="brand" href="#/sessions"><img src="/console/assets/icon.svg" alt="" width="20" height="20" />toolglot</a>
      <nav aria-label="Views"><ul>${VIEWS.filter((one) => one.href).map((one) => html`<li><a href=${one.href} aria-current=${isCurrent(one, view) ? "page" : undefined}>${one.title}</a></li>`)}</ul></nav>
      <span class="spring"></span>
      ${live.value !== null && html`<span class=${`live ${live.value ? "on" : "off"}`} role="status"><i class="dot" aria-hidden="true"></i><span class="live-word">${live.value ? "live" : "reconnecting"}</span></span>`}
      ${state.value.read_only && html`<span class="badge">read-only</span>`}
      <button class="ghost" onClick=${switchTheme} aria-label=${`Theme: ${theme.value}. Switch`}>${{ auto: "◐", light: "☀", dark: "☾" }[theme.value]}</button>
      ${state.value.login_required && html`<button class="ghost" onClick=${logOut}>Log out</button>`}
    </header>
    <main id="main" tabindex="-1">${view ? html`<${view.Component} match=${match} />` : html`<section class="view"><p class="empty">There is no such page. <a href="#/sessions">Sessions</a></p></section>`}</main>
  </div>`;
}

function isCurrent(one, view) {
  return one === view || (["session", "refused"].includes(view?.name) && one.name === "sessions");
}

async function logOut() {
  const { ended } = await send("POST", "/logout", {});
  copiesWork.value = !ended;
  await loadState();
}

function LoginPage({ possible }) {
  const [key, setKey] = useState("");
  const [error, setError] = useState(null);
  const logIn = async (event) => {
    event.preventDefault();
    try {
      await send("POST", "/login", { key });
      setKey("");
      await loadState();
    } catch (failure) {
      setError(failure);
    }
  };
  return html`<main class="center"><form class="login" onSubmit=${logIn}>
    <h1><img src="/console/assets/icon.svg" alt="" width="28" height="28" />toolglot</h1>
    ${possible ? html`<label>Client key with the admin scope<input type="password" name="key" autocomplete="current-password" value=${key} onInput=${(event) => setKey(event.target.value)} autofocus required /></label>
        <button class="primary">Log in</button>` : html`<${Note} kind="warn">No key opens the console yet. Make one with <code>toolglot key create --name me --admin</code>.<//>`}
    ${error && html`<${Note} kind="bad">${error.message}<//>`}
    ${copiesWork.value && html`<${Note} kind="warn">You are logged out here. Other processes of the gateway could not be told, because the store does not work: a copy of the cookie may open the console there until it expires.<//>`}
    <p class="quiet">The console shows the sessions of all clients of this gateway.</p>
  </form></main>`;
}

render(html`<${App} />`, document.getElementById("app"));
loadState().catch((error) => { problem.value = error; });
