// Asks the server at argv[2] in the ways of the TypeScript SDK; prints what came as JSON.
import Anthropic from "@anthropic-ai/sdk";
import { betaTool } from "@anthropic-ai/sdk/helpers/beta/json-schema";

const client = new Anthropic({ baseURL: process.argv[2], apiKey: "any", maxRetries: 0 });
const asked = { model: "scripted", messages: [{ role: "user", content: "Go on." }] };

const created = await client.messages.create({ ...asked, max_tokens: 200 });

const pieces = [];
const stream = client.messages.stream({ ...asked, max_tokens: 200 });
stream.on("text", (piece) => pieces.push(piece));
const streamed = await stream.finalMessage();

const counted = await client.messages.countTokens(asked);
const refused = await client.messages
  .create({ ...asked, max_tokens: -1 })
  .catch((error) => ({ status: error.status, type: error.type, requestID: error.requestID }));

const weighed = [];
const weigh = betaTool({
  name: "weigh",
  description: "How heavy a thing is, in grams.",
  inputSchema: { type: "object", properties: { thing: { type: "string" } }, required: ["thing"] },
  run: ({ thing }) => (weighed.push(thing), "60"),
});
const looped = await client.beta.messages.toolRunner({ ...asked, max_tokens: 400, tools: [weigh] });

console.log(JSON.stringify({ created, pieces, streamed, counted, refused, weighed, looped }));
