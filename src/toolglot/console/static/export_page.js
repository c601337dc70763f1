// The session view of an exported file: the same page, on data in the file itself.
import { html, render, useState } from "console/lib/html.js";
import { switchTheme, theme } from "console/lib/theme.js";
import { SessionPage } from "console/views/session.js";

const data = JSON.parse(document.getElementById("data").textContent);
const source = {
  bodies: "",
  session: async () => ({ session: data.session, turns: data.summaries }),
  turn: async (id) => {
    if (!(id in data.turns)) throw new Error("This turn is not in the file: it was too large.");
    return data.turns[id];
  },
};

function ExportedPage() {
  const [chosen, setChosen] = useState("");
  return html`<div class="shell"><header class="top"><span class="brand">toolglot</span><span class="quiet">session, exported ${data.exported.slice(0, 16).replace("T", " ")} UTC</span><span class="spring"></span>
      <button class="ghost" onClick=${switchTheme}>Theme: ${theme.value}</button></header>
    <main>${data.left_out > 0 && html`<p class="note warn">${data.left_out} turns are left out: the file would be too large.</p>`}
      <${SessionPage} id=${data.session.id} chosen=${chosen} source=${source} onChoose=${setChosen} /></main></div>`;
}

render(html`<${ExportedPage} />`, document.getElementById("app"));
