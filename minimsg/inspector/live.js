// The engine as it works: what the server tells of it, and the orders to it. Whoever wants less motion
// gets it once a second.

import { html, useEffect, useRef, useState } from "./dom.js";
import { events } from "./sse.js";
import * as engine from "./engine.js";

const HOLD_MS = 10_000; // a pause is asked for again so often; the server forgets it after 30 s
const AGAIN_MS = 2000; // to connect again
const CALM_MS = 1000;
const NUM_STEPS = 60;

// `order(name)` sends one. A pause is held for as long as the page is there, whatever pane is open,
// and nobody else has ended it.
export function useOrders(client, state, setState) {
  const isPaused = useRef(false);
  isPaused.current = Boolean(state?.paused);
  const take = (next) => setState((old) => joined(old, next));
  const order = (name) => client.post(`minimsg/engine/${name}`).then(take, () => {});
  const hold = async () => {
    if (!isPaused.current) return;
    const now = await client.get("minimsg/engine").catch(() => null);
    if (now) take(now);
    if (now?.paused) await order("pause");
  };
  useEffect(() => {
    const holding = setInterval(hold, HOLD_MS);
    return () => clearInterval(holding);
  }, []);
  return order;
}

export function Live({ client, state, setState, order }) {
  const [isLive, setLive] = useState(false);
  useEffect(() => {
    const ending = new AbortController();
    watch(client, ending.signal, setState, setLive);
    return () => ending.abort();
  }, []);
  return html`${engine.render(state, { order, isLive })}`;
}

async function watch(client, signal, setState, setLive) {
  while (!signal.aborted) {
    try {
      const response = await client.fetch("minimsg/engine/live", { signal });
      setLive(true);
      await follow(response, setState);
    } catch { /* it is tried again */ }
    if (!signal.aborted) setLive(false);
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
}

async function follow(response, setState) {
  const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  let waiting = null, shownAt = -CALM_MS;
  for await (const { event } of events(response)) {
    if (event.type !== "engine") continue;
    waiting = waiting ? joined(waiting, event) : event;
    if (isCalm && performance.now() - shownAt < CALM_MS) continue;
    const next = waiting;
    setState((old) => joined(old, next));
    waiting = null;
    shownAt = performance.now();
  }
}

// A new state with the steps of the old one before its own.
function joined(old, next) {
  const known = new Set(next.steps.map((step) => step.number));
  const steps = [...old.steps.filter((step) => !known.has(step.number)), ...next.steps];
  return { ...next, steps: steps.slice(-NUM_STEPS) };
}
