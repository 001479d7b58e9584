// The conversation as it is seen: what was said, thought and called, and where to type.
// What it holds and how it is sent: conversation.js.

import { openCalls } from "./conversation.js";
import { html, useState } from "./dom.js";
import { plural } from "./words.js";

export const title = "Talk to the model";

const BEGIN =
  "Ask something below. Then Prompt shows what the model read, and Sampler how each token was chosen.";

export const render = (talk) => html`<${Chat} ...${talk} />`;

function Chat({ settings, set, turns, setTurns, reply, failure, send, stop }) {
  return html`
    <${Settings} ...${{ settings, set }} />
    <div class="turns" role="log" aria-label="The conversation" tabindex="0">
      ${!turns.length && html`<p class="empty">${BEGIN}</p>`}
      ${turns.map((turn, index) => html`<${Turn} key=${index} ...${turn} note=${turn.stop_reason && ending(turn)} />`)}
      ${reply && html`<${Turn} role="assistant" content=${reply.content.filter(Boolean)} note="…" />`}
    </div>
    ${failure && html`<p role="alert" class="bad">${failure}</p>`}
    <${Composer} ...${{ send, stop, calls: openCalls(turns), isBusy: reply !== null }} />
    ${turns.length > 0 && !reply && html`<p><button onClick=${() => setTurns([])}>New conversation</button></p>`}`;
}

const ending = ({ stop_reason: reason, usage }) => `${reason}, ${plural(usage?.output_tokens ?? 0, "token")}`;

function Turn({ role, content, note }) {
  return html`
    <article class=${`turn ${role}`}>
      <h3>${role}</h3>
      ${content.map((block, index) => html`<${Block} key=${index} block=${block} />`)}
      ${note && html`<p class="quiet">${note}</p>`}
    </article>`;
}

function Block({ block }) {
  if (block.type === "thinking") {
    return html`
      <details open class="thinking"><summary>thinking</summary><p class="said">${block.thinking}</p></details>`;
  }
  if (block.type === "tool_use") {
    const input = block.json ?? JSON.stringify(block.input, null, 2);
    return html`<div class="call"><b>calls ${block.name}</b><pre>${input}</pre></div>`;
  }
  if (block.type === "tool_result") {
    return html`<div class="call"><b>result</b><p class="said">${block.content}</p></div>`;
  }
  return html`<p class="said">${block.text ?? block.type}</p>`;
}

function Composer({ send, stop, calls, isBusy }) {
  const [text, setText] = useState("");
  const submit = (event) => {
    event.preventDefault();
    if (isBusy || !text.trim()) return;
    setText("");
    send(text);
  };
  const onKeyDown = (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event);
  };
  const name = calls.length ? `The result of ${calls.map((call) => call.name).join(", ")}` : "Your message";
  return html`
    <form class="composer" onSubmit=${submit}>
      <label>${name}<textarea rows="2" value=${text} onKeyDown=${onKeyDown}
        onInput=${(event) => setText(event.target.value)}></textarea></label>
      ${isBusy
        ? html`<button key="stop" type="button" onClick=${stop}>Stop</button>`
        : html`<button key="send" class="main">Send</button>`}
    </form>`;
}

function Settings({ settings, set }) {
  const change = (name, value) => set({ ...settings, [name]: value });
  return html`
    <details class="settings"><summary>Settings</summary>
      <label>System prompt<textarea rows="2" value=${settings.system}
        onInput=${({ target }) => change("system", target.value)}></textarea></label>
      <div class="row">
        <${Figure} name="max_tokens" label="At most so many tokens" min="1" max="100000" ...${{ settings, change }} />
        <${Figure} name="temperature" label="Temperature" min="0" max="2" step="0.1" ...${{ settings, change }} />
        <${Check} name="thinks" label="think first, if the model can" ...${{ settings, change }} />
        <${Check} name="offersTool" label="offer a tool, get_weather" ...${{ settings, change }} />
      </div>
    </details>`;
}

function Figure({ name, label, settings, change, ...bounds }) {
  const onChange = ({ target }) => {
    if (target.value !== "" && target.checkValidity()) change(name, Number(target.value));
  };
  return html`
    <label>${label} <input type="number" value=${settings[name]} onChange=${onChange} ...${bounds} /></label>`;
}

const Check = ({ name, label, settings, change }) => html`
  <label class="check">
    <input type="checkbox" checked=${settings[name]} onChange=${({ target }) => change(name, target.checked)} />
    ${" "}${label}
  </label>`;
