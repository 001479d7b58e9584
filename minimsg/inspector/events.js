// The events of a reply: when each came, how big it was, and which rule it breaks, if any.
// Reads `events` of a record, and its `steps` and `tokens` for the time line. Events that have just
// come over the wire look the same: {events: [{at_s, bytes, event}]}.

import { Checked, checksOf } from "./checked.js";
import { html, useMemo, useState } from "./dom.js";
import { check } from "./grammar.js";
import { Pager, Table } from "./pieces.js";
import { count, plural, seconds } from "./words.js";

export const title = "What went over the wire";

const SHOWN = 200;
const KINDS = ["prefill", "decode", "tick"];

// `wire`: what has come here, if it came here; a server's record is only what it meant to send.
export const render = (record, { wire } = {}) => html`
  <${Events} key=${record.id} record=${record} events=${wire ?? record.events} />`;

function Events({ record, events }) {
  const [start, setStart] = useState(0);
  const { wrongs, last } = useMemo(() => check(events.map((each) => each.event)), [events.length]);
  const broken = wrongs.filter((wrong) => wrong !== null);
  if (last !== null && record.isOver !== false) broken.push(`after ${plural(events.length, "event")}: ${last}`);
  return html`
    <p>Which event may follow which is a grammar; each is held against it.</p>
    <${Verdict} ...${{ events, broken }} />
    ${record.steps && html`
      <${TimeLine} record=${record} />
      <${Checked} checks=${checksOf(record.steps)} />`}
    <${List} ...${{ events, wrongs, start }} />
    ${events.length > SHOWN && html`
      <${Pager} noun="events" start=${start} size=${SHOWN} total=${events.length} go=${setStart} />`}`;
}

function Verdict({ events, broken }) {
  const bytes = events.reduce((total, each) => total + each.bytes, 0);
  const size = `${plural(events.length, "event")}, ${plural(bytes, "byte")}`;
  if (!broken.length) return html`<p role="status" class="good">✓ ${size}: no rule is broken.</p>`;
  return html`
    <div role="status" class="bad">
      <p>✗ ${size}: ${plural(broken.length, "rule")} broken.</p>
      <ul>${broken.slice(0, 20).map((wrong) => html`<li key=${wrong}>${wrong}</li>`)}</ul>
    </div>`;
}

function List({ events, wrongs, start }) {
  return html`
    <${Table} name="Events" kind="events" heads=${["at", "bytes", "event"]}>
      ${events.slice(start, start + SHOWN).map((each, place) => html`
        <${Row} key=${start + place} each=${each} wrong=${wrongs[start + place]} />`)}
    <//>`;
}

function Row({ each, wrong }) {
  const { type, ...rest } = each.event;
  return html`
    <tr class=${wrong ? "bad" : ""}>
      <td>${seconds(each.at_s)}</td><td>${count(each.bytes)}</td>
      <td><details><summary>${type} <span class="quiet">${summary(each.event)}</span></summary>
        <pre>${JSON.stringify(rest, null, 2)}</pre></details>
        ${wrong && html`<strong>✗ ${wrong}</strong>`}</td>
    </tr>`;
}

function summary({ delta, content_block: block, error }) {
  const { text, thinking, partial_json: json, stop_reason: reason } = delta ?? {};
  return String(text ?? thinking ?? json ?? reason ?? block?.type ?? error?.message ?? "").slice(0, 80);
}

// Three lanes on one axis: steps of the engine, tokens, events. Where text is held back, it shows.
function TimeLine({ record }) {
  const { steps, tokens, events } = record;
  const ends = [...steps.map((step) => step.at_s + step.took_s), ...events.map((each) => each.at_s)];
  const end = Math.max(1e-6, ...ends);
  const lanes = [
    ["steps", steps.map((step) => [step.at_s, step.took_s, step.stop - step.start > 1 ? "prefill" : "decode"])],
    ["tokens", tokens.map((token) => [token.at_s, 0, "tick"])],
    ["events", events.map((each) => [each.at_s, 0, "tick"])],
  ];
  const changes = steps.filter((step) => step.event && step.event !== "admitted");
  return html`
    <figure class="timeline">
      <figcaption>From the request to the last byte: ${seconds(end)}.
        ${` ${plural(steps.length, "step")}, ${plural(tokens.length, "token")}, ${plural(events.length, "event")}.`}
        ${changes.map((step) => ` Step ${step.number}: ${step.event}.`)}</figcaption>
      ${lanes.map(([name, marks]) => html`
        <div class="lane" key=${name}><span>${name}</span>
          <svg viewBox="0 0 1000 20" preserveAspectRatio="none" aria-hidden="true">
            ${KINDS.map((kind) => html`<path key=${kind} class=${kind} d=${drawn(marks, kind, end)} />`)}
          </svg>
        </div>`)}
    </figure>`;
}

function drawn(marks, kind, end) {
  const scale = 1000 / end;
  return marks.filter((mark) => mark[2] === kind).map(([at, took]) => {
    const x = (scale * at).toFixed(1);
    return `M${x} 2h${Math.max(1.5, scale * took).toFixed(1)}v16H${x}z`;
  }).join("");
}
