// What a token looked at, head by head, and what each layer would have said if it had been the last.
// Reads the tokens of a record; `lens({what, position, layer})` asks the server, which computes them
// from the real pages.

import { html, useEffect, useMemo, useState } from "./dom.js";
import { Bar } from "./sampler.js";
import { Tokens } from "./tokens.js";
import { count, percent, quoted } from "./words.js";

export const title = "What each token looked at";

export const render = (record, { lens } = {}) => html`<${Attention} key=${record.id} record=${record} lens=${lens} />`;

function Attention({ record, lens }) {
  const all = useMemo(() => [...record.prompt.tokens, ...record.tokens], [record]);
  const [position, select] = useState(Math.max(0, record.prompt.tokens.length - 1));
  const [layer, setLayer] = useState(0);
  const [head, setHead] = useState(null);
  const pattern = useAnswer(lens, { what: "attention", position, layer });
  const guesses = useAnswer(lens, { what: "logit_lens", position });
  if (!lens) return html`<p class="empty">Attention is computed by a server: open its page at /inspect.</p>`;
  if (pattern.error) return html`<p class="empty">${pattern.error}</p>`;
  const weights = weightsOf(pattern.value, head);
  const most = Math.max(1e-6, ...weights);
  const shade = (index) => Math.sqrt((weights[index] ?? 0) / most); // small ones can be seen, too
  const strip = all.map((token, index) => ({ text: token.text, kind: index > position ? "later" : "looked", weight: shade(index) }));
  return html`
    <p>Choose a token: the darker another one, the more this one looked at it. A token sees only what is before it.</p>
    <${Choices} ...${{ answer: pattern.value, layer, setLayer, head, setHead }} />
    <${Tokens} name="Tokens of prompt and reply" tokens=${strip} selected=${position} onSelect=${select} />
    <${Most} ...${{ all, weights, position }} />
    <h3>What each layer would say next</h3>
    <${Guesses} answer=${guesses} next=${all[position + 1]} />`;
}

// The latest answer to a question: {value, error, isWaiting}; an older value stays until the new one.
function useAnswer(lens, question) {
  const [answer, setAnswer] = useState({ value: null, error: null });
  useEffect(() => {
    let isOver = false;
    const take = (change) => { if (!isOver) setAnswer((old) => ({ ...old, error: null, ...change })); };
    const asking = setTimeout(() => lens?.(question).then((value) => take({ value }), (error) => take({ error: error.message })), 80);
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
      <label>layer <output>${layer + 1} of ${answer.num_layers}</output>
        <input type="range" min="0" max=${answer.num_layers - 1} value=${layer} onInput=${(event) => setLayer(Number(event.target.value))} /></label>
      <label>head <output>${says}</output>
        <input type="range" min="-1" max=${numHeads - 1} value=${head ?? -1} aria-valuetext=${says}
          onInput=${(event) => setHead(event.target.value === "-1" ? null : Number(event.target.value))} /></label>
    </div>`;
}

function Most({ all, weights, position }) {
  const best = weights.map((weight, index) => [weight, index]).sort(([a], [b]) => b - a).slice(0, 5);
  if (!best.length) return null;
  const words = best.map(([weight, index]) => `${quoted(all[index].text)} (token ${count(index + 1)}) ${percent(weight)}`);
  return html`<p class="detail" aria-live="polite">Token ${count(position + 1)}, ${quoted(all[position].text)}, looks most at ${words.join(", ")}.</p>`;
}

function Guesses({ answer, next }) {
  if (answer.error) return html`<p class="empty">${answer.error}</p>`;
  if (!answer.value) return html`<p class="quiet" role="status">Computing…</p>`;
  return html`
    <div class="scroll" tabindex="0" role="region" aria-label="Logit lens">
    <table class="candidates">
      <thead><tr><th scope="col">behind layer</th><th scope="col">likeliest</th><th scope="col"></th><th scope="col">then</th></tr></thead>
      <tbody>${answer.value.layers.map(({ layer, top }) => html`
        <tr key=${layer} class=${top[0][0] === next?.id ? "hit" : ""}>
          <th scope="row">${layer + 1}</th><td>${quoted(top[0][1])}</td><td><${Bar} share=${Math.exp(top[0][2])} /></td>
          <td class="quiet">${top.slice(1).map(([, text]) => quoted(text)).join(" ")}</td></tr>`)}
      </tbody>
    </table>
    </div>
    ${next && html`<p class="quiet">Bold: what came, ${quoted(next.text)}.</p>`}`;
}
