// The engine at work: its pages, its requests, its steps; live, and to be paused where that is
// allowed. Reads the state that inspector/state.py makes; `order(name)` is "pause", "step", "resume".

import { Checked } from "./checked.js";
import { html } from "./dom.js";
import { Table } from "./pieces.js";
import { count, percent, plural, seconds } from "./words.js";

export const title = "What the engine is doing now";

const COLUMNS = 64, CELL = 10;
const KINDS = ["free", "cached", "kept", "others", "shared"];
const MEANINGS = {
  free: "free",
  cached: "cached: given away when needed",
  kept: "kept by cache_control",
  others: "of other requests",
  shared: "shared by several requests",
};
const SHOWN = 60;

export const render = (state, { order, isLive } = {}) => html`<${Engine} ...${{ state, order, isLive }} />`;

function Engine({ state, order, isLive }) {
  return html`
    <p>Keys and values of a request lie in pages of ${state.page_size} tokens; each step computes a batch.</p>
    ${order && html`<${Controls} ...${{ state, order, isLive }} />`}
    <${PageMap} state=${state} />
    ${(order || state.steps.length > 0) && html`<${Steps} steps=${state.steps} />`}
    <${Requests} state=${state} />
    <${Checked} checks=${state.checks} />`;
}

function Controls({ state, order, isLive }) {
  const step = `step ${count(state.num_steps)}`;
  const left = Math.ceil(state.resumes_in_s);
  const says = state.paused
    ? `Paused at ${step}; goes on by itself ${left} s after this page is closed.`
    : `${isLive ? "Live" : "Not connected"}: ${step}.`;
  const hint = "Pausing needs minimsg serve --inspect-control here.";
  return html`
    <div class="row" role="group" aria-label="The engine">
      <button disabled=${!state.can_control || state.paused} onClick=${() => order("pause")}>Pause</button>
      <button disabled=${!state.can_control} onClick=${() => order("step")}>Step</button>
      <button disabled=${!state.paused} onClick=${() => order("resume")}>Resume</button>
      <span class="quiet">${says} ${state.can_control ? "" : hint}</span>
    </div>`;
}

function PageMap({ state }) {
  const { pages, holders, num_pages: total } = state;
  const numbers = new Map();
  for (const holder of pages) numbers.set(holder, (numbers.get(holder) ?? 0) + 1);
  const last = pages.findLastIndex((holder) => holder !== 0);
  const rows = Math.min(Math.ceil(pages.length / COLUMNS), Math.max(8, Math.floor(last / COLUMNS) + 3));
  const shown = pages.slice(0, rows * COLUMNS);
  const name = (holder) => MEANINGS[KINDS[holder]] ?? short(holders[holder]);
  const legend = [...numbers].sort(([a], [b]) => a - b);
  return html`
    <figure>
      <figcaption>${plural(total, "page")}${where(shown.length, pages.length, total)}</figcaption>
      <svg class="pages" viewBox=${`0 0 ${COLUMNS * CELL} ${rows * CELL}`} role="img"
        aria-label=${`Page map: ${legend.map(([holder, number]) => `${number} ${name(holder)}`).join(", ")}`}>
        ${legend.map(([holder]) => html`<path key=${holder} class=${kindOf(holder)} d=${cells(shown, holder)} />`)}
      </svg>
      <ul class="legend">${legend.map(([holder, number]) => html`
        <li key=${holder}><span class=${`swatch ${kindOf(holder)}`}></span>${name(holder)} <b>${count(number)}</b></li>`)}
      </ul>
    </figure>`;
}

// Which part of all pages is drawn.
function where(shown, known, total) {
  if (shown === total) return "";
  const free = known === total ? "all after them are free" : `those up to ${count(known)} are free, too`;
  return `, here the first ${count(shown)}${shown < known ? `; ${free}` : ""}`;
}

// Requests have four colours in turn.
const kindOf = (holder) => KINDS[holder] ?? `own-${(holder - KINDS.length) % 4}`;

const short = (id) => (id.length > 14 ? `${id.slice(0, 4)}…${id.slice(-6)}` : id);

function cells(pages, holder) {
  let path = "";
  pages.forEach((each, page) => {
    if (each === holder) path += `M${CELL * (page % COLUMNS)} ${CELL * Math.floor(page / COLUMNS)}h8v8h-8z`;
  });
  return path;
}

// A bar for each of the latest steps, as high as its tokens; what reads prompts and what writes.
function Steps({ steps }) {
  const latest = steps.slice(-SHOWN);
  if (!latest.length) return html`<p class="empty">No step was seen yet: ask something in the pane Chat.</p>`;
  const most = Math.max(...latest.map((step) => step.num_tokens));
  const last = latest.at(-1);
  const height = (tokens) => (60 * Math.log1p(tokens)) / Math.log1p(most);
  return html`
    <figure>
      <figcaption>${stepText(last)} ${last.rows.map(rowText).join("; ")}</figcaption>
      <svg class="steps" viewBox=${`0 0 ${10 * SHOWN} 62`} preserveAspectRatio="none" role="img"
        aria-label=${`The latest ${latest.length} steps, of ${most} tokens at most`}>
        ${latest.map((step, index) => html`
          <rect key=${step.number} class=${step.num_tokens > step.num_sequences ? "prefill" : "decode"}
            x=${10 * index} width="8" y=${62 - height(step.num_tokens)} height=${height(step.num_tokens)} />`)}
      </svg>
      <ul class="legend">
        <li><span class="swatch prefill"></span>reads prompts</li>
        <li><span class="swatch decode"></span>only writes</li>
      </ul>
    </figure>`;
}

function stepText({ number, num_sequences: requests, num_tokens: tokens, took_s: took }) {
  return `Step ${count(number)}: ${plural(requests, "request")}, ${plural(tokens, "token")}, ${seconds(took)}.`;
}

function rowText({ id, start, stop }) {
  const places = stop - start > 1 ? `positions ${count(start)} to ${count(stop - 1)}` : `position ${count(start)}`;
  return `${short(id)} ${places}`;
}

function Requests({ state }) {
  const { sequences, others } = state;
  const hidden = others.running + others.waiting;
  if (!sequences.length && !hidden) return html`<p class="empty">Nothing runs and nothing waits.</p>`;
  return html`
    <${Table} name="Requests" heads=${["request", "state", "prompt", "written", "computed", "pages"]}>
      ${sequences.map((each, index) => html`
        <tr key=${each.id}>
          <th scope="row"><span class=${`swatch own-${index % 4}`}></span>${short(each.id)}</th><td>${each.state}</td>
          <td>${count(each.num_prompt)}</td><td>${count(each.num_ids - each.num_prompt)}</td>
          <td>${percent(each.num_computed / each.num_ids)}</td><td>${count(each.num_pages)}</td>
        </tr>`)}
      ${hidden > 0 && html`<tr>
        <th scope="row">of others</th>
        <td colspan="5">${count(others.running)} running, ${count(others.waiting)} waiting</td></tr>`}
    <//>`;
}
