// The page: panes as tabs, the record that they show, the key. Everything that is asked of the
// server is asked here; the panes get data and functions.

import { Client } from "./client.js";
import { useConversation } from "./conversation.js";
import { html, render, useEffect, useRef, useState } from "./dom.js";
import { Live, useOrders } from "./live.js";
import { plural } from "./words.js";
import * as attention from "./attention.js";
import * as chat from "./chat.js";
import * as engine from "./engine.js";
import * as wire from "./events.js";
import * as prompt from "./prompt.js";
import * as sampler from "./sampler.js";

const PANES = { Chat: chat, Prompt: prompt, Sampler: sampler, Attention: attention, Engine: engine, Events: wire };
const NO_RECORD = "Nothing is recorded yet: ask something in the pane Chat, or start the server with --trace 16.";
const NO_TRACE = "The answer was not recorded: a strict server records only with --trace 16.";

const client = new Client();

function Page() {
  const [isOpen, setOpen] = useState(null); // whether the server lets us in; null: not known
  const [problem, setProblem] = useState(null);
  const [state, setState] = useState(null);
  const [name, setName] = useState(named());
  const records = useRecords();
  const talk = useConversation(client, state?.model, records.refresh);
  const order = useOrders(client, state, setState);
  const enter = async () => {
    try {
      setState(await client.get("minimsg/engine"));
      await records.refresh();
      setOpen(true);
    } catch (error) {
      setOpen(false);
      setProblem(problemOf(error));
    }
  };
  useEffect(() => {
    enter();
    addEventListener("hashchange", () => setName(named()));
  }, []);
  if (isOpen === null) return html`<p class="empty" role="status">Connecting…</p>`;
  if (!isOpen) return html`<${KeyForm} ...${{ problem, enter }} />`;
  const choose = (chosen) => {
    history.replaceState(null, "", `#${chosen}`);
    setName(chosen);
  };
  return html`
    <header>
      <h1>minimsg <span>inspector</span></h1>
      <${Picker} records=${records} />
      <${Tabs} ...${{ name, choose }} />
    </header>
    <main><div id="pane" role="tabpanel" aria-labelledby=${`tab-${name}`}>
      <h2>${PANES[name].title}</h2>
      <${Pane} ...${{ name, records, talk, state, setState, order }} />
    </div></main>`;
}

function problemOf(error) {
  if (error.status !== 401) return `The server does not answer: ${error.message}`;
  return client.key ? "The server does not know this key." : null;
}

// The pane that the address names.
function named() {
  const name = location.hash.slice(1);
  return name in PANES ? name : "Chat";
}

// The records that the server has of us, and the one that is looked at.
function useRecords() {
  const [lines, setLines] = useState([]);
  const [record, setRecord] = useState(null);
  const [isLoading, setLoading] = useState(false);
  const open = async (id) => {
    setLoading(true);
    try {
      setRecord(await client.get(`minimsg/traces/${id}`));
    } finally {
      setLoading(false);
    }
  };
  const refresh = async (id) => {
    const { data } = await client.get("minimsg/traces");
    setLines(data);
    const wanted = id ?? data[0]?.id;
    if (wanted && !data.some((line) => line.id === wanted)) throw new Error(NO_TRACE);
    if (wanted) await open(wanted);
  };
  return { lines, record, isLoading, open, refresh };
}

function Picker({ records: { lines, record, open } }) {
  if (!lines.length) return null;
  return html`
    <label>Request <select value=${record?.id} onChange=${(event) => open(event.target.value)}>
      ${lines.map((line) => html`<option key=${line.id} value=${line.id}>${nameOf(line)}</option>`)}
    </select></label>`;
}

const nameOf = ({ created_at: at, num_tokens: tokens, stop_reason: reason }) =>
  `${at.slice(11, 19)}, ${plural(tokens, "token")}, ${reason ?? "cut off"}`;

// One stop for the Tab key; arrows choose (WAI-ARIA, tabs).
function Tabs({ name, choose }) {
  const list = useRef(null);
  const names = Object.keys(PANES);
  const onKeyDown = (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const next = names.at((names.indexOf(name) + step) % names.length);
    choose(next);
    list.current.querySelector(`#tab-${next}`).focus();
  };
  return html`
    <div class="tabs" role="tablist" aria-label="Panes" ref=${list} onKeyDown=${onKeyDown}>
      ${names.map((each) => html`
        <button key=${each} role="tab" id=${`tab-${each}`} aria-selected=${String(each === name)} aria-controls="pane"
          tabindex=${each === name ? 0 : -1} onClick=${() => choose(each)}>${each}</button>`)}
    </div>`;
}

function Pane({ name, records: { record, isLoading }, talk, state, setState, order }) {
  if (name === "Chat") return chat.render(talk);
  if (name === "Engine") return html`<${Live} ...${{ client, state, setState, order }} />`;
  const isOurs = record && record.id === talk.wire?.id;
  const isComing = talk.wire && !isOurs && !(talk.wire.isOver && record);
  if (name === "Events" && isComing) return wire.render(talk.wire);
  if (!record) return html`<p class="empty" role="status">${isLoading ? "Fetching the record…" : NO_RECORD}</p>`;
  const questions = {
    ask: (token) => client.post("minimsg/logits", { trace: record.id, token }),
    lens: (question) => client.post("minimsg/lens", { trace: record.id, ...question }),
  };
  const came = isOurs ? talk.wire.events : null;
  return PANES[name].render(record, { ...(state.has_layers && questions), wire: came });
}

function KeyForm({ problem, enter }) {
  const [key, setKey] = useState("");
  const submit = (event) => {
    event.preventDefault();
    client.key = key.trim();
    enter();
  };
  return html`
    <main class="key"><h1>minimsg <span>inspector</span></h1>
      ${problem && html`<p role="alert" class="bad">${problem}</p>`}
      <form class="composer" onSubmit=${submit}>
        <label>API key of this server<input type="password" autocomplete="off" value=${key}
          onInput=${(event) => setKey(event.target.value)} /></label>
        <button class="main">Open</button>
      </form>
      <p class="quiet">It is kept until this tab is closed and sent to this server only.</p>
    </main>`;
}

const root = document.getElementById("page");
root.replaceChildren();
render(html`<${Page} />`, root);
