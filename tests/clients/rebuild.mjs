// Asks for every body on stdin, plain and streamed, at the server of argv[2]; prints both as JSON.
import { readFileSync } from "node:fs";
import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic({ baseURL: process.argv[2], apiKey: "any", maxRetries: 0 });
const bodies = JSON.parse(readFileSync(0, "utf8"));
const answers = {};

for (const [title, body] of Object.entries(bodies)) {
  answers[title] = [];
  for (const messages of [client.messages, client.beta.messages]) {
    const plain = await messages.create(body);
    const streamed = await messages.stream(body).finalMessage();
    answers[title].push({ plain, streamed });
  }
}

console.log(JSON.stringify(answers));
