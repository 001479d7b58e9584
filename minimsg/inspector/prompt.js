// The X-ray of a prompt: who wrote each token, what the cache had of it, what it all costs.
// Reads `prompt` and `request` of a record (trace.py).

import { html, useMemo, useState } from "./dom.js";
import { Tokens } from "./tokens.js";
import { count, percent, plural, quoted, seconds } from "./words.js";

export const title = "What the model read";

export const render = (record) => html`<${Prompt} key=${record.id} record=${record} />`;

function Prompt({ record }) {
  const { prompt, engine } = record;
  const [selected, select] = useState(0);
  const [hovered, hover] = useState(null);
  const [shown, show] = useState(null); // the one source to look at
  const parts = useMemo(() => partsOf(record), [record]);
  const tokens = useMemo(() => stripOf(prompt, parts, shown), [parts, shown]);
  const index = hovered ?? selected;
  return html`
    <p>${plural(tokens.length, "token")}. Colour says who wrote each; a line below it, that the cache had it.</p>
    <${Bill} ...${{ record, parts, shown, show }} />
    <${Tokens} name="Tokens of the prompt" tokens=${tokens} selected=${selected} onSelect=${select} onHover=${hover} />
    <${Detail} ...${{ prompt, index, parts, pageSize: engine.page_size }} />`;
}

// Each part of the request and its place on the bill: [{path, kind, label, tokens}], the template last.
function partsOf({ request, prompt }) {
  const named = prompt.bill ?? { blocks: {}, tools: {}, template: prompt.tokens.length };
  const paths = Object.entries({ ...named.blocks, ...named.tools }).filter(([, tokens]) => tokens > 0);
  const parts = paths.map(([path, tokens]) => ({ path, tokens, ...meaning(path, request) }));
  return [...parts, { path: "", tokens: named.template, kind: "template", label: "the chat template" }];
}

// Who wrote what stands at a path of the request.
function meaning(path, request) {
  const [field, number, , place] = path.split(".");
  if (field === "system") return { kind: "system", label: "system prompt" };
  if (field === "tools") return { kind: "tool", label: `tool ${request.tools?.[number]?.name ?? number}` };
  const turn = request.messages?.[number];
  const type = Array.isArray(turn?.content) ? turn.content[place]?.type : "text";
  const role = turn?.role ?? "user";
  const kind = type === "tool_result" || type === "tool_use" ? "tool" : role;
  return { kind, label: `turn ${Number(number) + 1}, ${role}${type === "text" ? "" : `: ${type}`}` };
}

function partOf(source, parts) {
  const isIn = (part) => source.path === part.path || source.path.startsWith(`${part.path}.`);
  return (source && parts.find((part) => part.path && isIn(part))) ?? parts.at(-1);
}

function stripOf(prompt, parts, shown) {
  const pictures = prompt.images.map((image) => [image.start, image.stop]);
  return prompt.tokens.map((token, index) => {
    const part = partOf(token.source, parts);
    const classes = [part.kind];
    if (index < prompt.cache.reused) classes.push("cached");
    if (prompt.marks.some((mark) => mark.num_tokens === index + 1)) classes.push("marked");
    if (pictures.some(([start, stop]) => start <= index && index < stop)) classes.push("picture");
    if (shown !== null && part.path !== shown) classes.push("dim");
    return { text: token.text, kind: classes.join(" ") };
  });
}

function Bill({ record, parts, shown, show }) {
  const { cache, tokens, bill } = record.prompt;
  return html`
    <div class="bill" role="group" aria-label="Token bill: choose a part to see it alone">
      ${parts.map((part) => html`
        <button key=${part.path} class=${`part ${part.kind}`} aria-pressed=${String(shown === part.path)}
          onClick=${() => show(shown === part.path ? null : part.path)}>
          ${part.label} <b>${count(part.tokens)}</b>
        </button>`)}
    </div>
    <p class="quiet">
      ${bill ? "" : "Who wrote them is not known: it could not be rendered again. "}
      ${count(cache.reused)} of them (${percent(cache.reused / tokens.length)}) were not computed again.
      ${" "}Marked: ${count(cache.read)} read, ${count(cache.written_5m + cache.written_1h)} written.
    </p>`;
}

// Everything about one token; told to those who listen when it changes.
function Detail({ prompt, index, parts, pageSize }) {
  const token = prompt.tokens[index];
  const mark = prompt.marks.find((each) => each.num_tokens === index + 1);
  const facts = [
    ["token", `${count(index + 1)} of ${count(prompt.tokens.length)}: ${quoted(token.text)}`],
    ["id", token.id],
    ["bytes", token.bytes.replace(/(..)/g, "$1 ")],
    ["written by", sourceText(token.source, partOf(token.source, parts))],
    ["page", `${count(Math.floor(index / pageSize) + 1)} of the prompt, place ${(index % pageSize) + 1}`],
    ["cache", index < prompt.cache.reused ? "had it" : "computed now"],
  ];
  if (mark) facts.push(["mark", `everything up to here is kept for ${seconds(mark.ttl_s)}`]);
  return html`
    <dl class="detail" aria-live="polite">
      ${facts.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}
    </dl>`;
}

function sourceText(source, part) {
  if (!source) return part.label;
  const place = source.end > source.start ? `, characters ${source.start} to ${source.end}` : "";
  return `${part.label} (${source.path}${place})`;
}
