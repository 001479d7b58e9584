// The same panes without a server: in a notebook's frame, with the data beside them in the document.
// `show.py` makes that document.

import { html, render, useState } from "./dom.js";
import * as engine from "./engine.js";
import * as wire from "./events.js";
import * as prompt from "./prompt.js";
import * as sampler from "./sampler.js";

const OF_A_RECORD = { Prompt: prompt, Sampler: sampler, Events: wire };

function Frame({ data }) {
  const panes = data.type === "engine" ? { Engine: engine } : OF_A_RECORD;
  const [name, choose] = useState(Object.keys(panes)[0]);
  return html`
    ${Object.keys(panes).length > 1 && html`
      <div class="tabs" role="group" aria-label="Panes">
        ${Object.keys(panes).map((each) => html`
          <button key=${each} aria-pressed=${String(each === name)} onClick=${() => choose(each)}>${each}</button>`)}
      </div>`}
    <h1 class="title">${panes[name].title}</h1>
    ${panes[name].render(data)}`;
}

const data = JSON.parse(document.getElementById("data").textContent);
render(html`<${Frame} data=${data} />`, document.getElementById("page"));
