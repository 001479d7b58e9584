// What a token looked at, head by head, and what each layer would have said if it had been the last.
// Reads the tokens of a record; `lens({what, position, layer})` asks the server, which computes them
// from the real pages.

import { html, useEffect, useMemo, useState } from "./dom.js";
import { Bar, Slider, Table } from "./pieces.js";
import { Tokens } from "./tokens.js";
import { count, percent, quoted } from "./words.js";

export const title = "What each token looked at";

const NOBODY_KNOWS = "Only a server whose model has layers can tell: minimsg serve, and then /inspect.";
const PAUSE_MS = 80; // a slider that is drawn asks once

export const render = (record, { lens } = {}) => html`<${Attention} key=${record.id} ...${{ record, lens }} />`;

function Attention({ record, lens }) {
  const all = useMemo(() => [...record.prompt.tokens, ...record.tokens], [record]);
  const [position, select] = useState(Math.max(0, record.prompt.tokens.length - 1));
  const [layer, setLayer] = useState(0);
  const [head, setHead] = useState(null);
  const pattern = useAnswer(lens, { what: "attention", position, layer });
  const guesses = useAnswer(lens, { what: "logit_lens", position });
  if (!lens) return html`<p class="empty">${NOBODY_KNOWS}</p>`;
  if (pattern.error) return html`<p class="empty">${pattern.error}</p>`;
  const weights = weightsOf(pattern.value, head);
  const most = Math.max(1e-6, ...weights);
  const shade = (index) => Math.sqrt((weights[index] ?? 0) / most); // small ones can be seen, too
  const kind = (index) => (index > position ? "later" : "looked");
  const strip = all.map(({ text }, index) => ({ text, kind: kind(index), weight: shade(index) }));
  return html`
    <p>Choose a token: the stronger a colour, the more it looked there. It sees only what is before it.</p>
    <${Choices} ...${{ answer: pattern.value, layer, setLayer, head, setHead }} />
    <${Tokens} name="Tokens of prompt and reply" tokens=${strip} selected=${position} onSelect=${select} />
    <${Most} ...${{ all, weights, position }} />
    <h3>What each layer would say next</h3>
    <${Guesses} answer=${guesses} next=${all[position + 1]} />`;
}

// The latest answer to a question: {value, error}; an older value stays until the new one.
function useAnswer(lens, question) {
  const [answer, setAnswer] = useState({ value: null, error: null });
  useEffect(() => {
    let isOver = false;
    const take = (change) => isOver || setAnswer((old) => ({ ...old, error: null, ...change }));
    const fail = (error) => take({ error: error.message });
    const asking = setTimeout(() => lens?.(question).then((value) => take({ value }), fail), PAUSE_MS);
    return () => { isOver = true; clearTimeout(asking); };
  }, [JSON.stringify(question)]);
  return answer;
}

// The weights of one head, or the mean of all; they come in thousandths.
function weightsOf(answer, head) {
  if (!answer) return [];
  const heads = head === null ? answer.heads : [answer.heads[head]];
  return heads[0].map((_, key) => heads.reduce((total, each) => total + each[key], 0) / (1000 * heads.length));
}

function Choices({ answer, layer, setLayer, head, setHead }) {
  if (!answer) return html`<p class="quiet" role="status">Computing…</p>`;
  const numHeads = answer.heads.length;
  const says = head === null ? "the mean of all" : `${head + 1} of ${numHeads}`;
  return html`
    <div class="knobs" role="group" aria-label="Where to look">
      <${Slider} label="layer" says=${`${layer + 1} of ${answer.num_layers}`} min="0" max=${answer.num_layers - 1}
        value=${layer} set=${setLayer} />
      <${Slider} label="head" says=${says} min="-1" max=${numHeads - 1} value=${head ?? -1}
        set=${(value) => setHead(value < 0 ? null : value)} />
    </div>`;
}

function Most({ all, weights, position }) {
  const best = weights.map((weight, index) => [weight, index]).sort(([a], [b]) => b - a).slice(0, 5);
  if (!best.length) return null;
  const name = (index) => `${quoted(all[index].text)} (token ${count(index + 1)})`;
  const words = best.map(([weight, index]) => `${name(index)} ${percent(weight)}`);
  return html`<p class="detail" aria-live="polite">${name(position)} looks most at ${words.join(", ")}.</p>`;
}

function Guesses({ answer, next }) {
  if (answer.error) return html`<p class="empty">${answer.error}</p>`;
  if (!answer.value) return html`<p class="quiet" role="status">Computing…</p>`;
  return html`
    <${Table} name="Logit lens" kind="candidates" heads=${["behind layer", "likeliest", "how sure", "then"]}>
      ${answer.value.layers.map(({ layer, top: [[id, text, logprob], ...others] }) => html`
        <tr key=${layer} class=${id === next?.id ? "hit" : ""}>
          <th scope="row">${layer + 1}</th><td>${quoted(text)}</td><td><${Bar} share=${Math.exp(logprob)} /></td>
          <td class="quiet">${others.map((other) => quoted(other[1])).join(" ")}</td>
        </tr>`)}
    <//>
    ${next && html`<p class="quiet">Bold: what came, ${quoted(next.text)}.</p>`}`;
}
