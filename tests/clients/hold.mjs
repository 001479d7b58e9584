// Parsed replies and tool loops of the TypeScript SDK at the server of argv[2]; prints them as JSON.
import Anthropic from "@anthropic-ai/sdk";
import { betaTool } from "@anthropic-ai/sdk/helpers/beta/json-schema";
import { betaZodOutputFormat, betaZodTool } from "@anthropic-ai/sdk/helpers/beta/zod";
import { jsonSchemaOutputFormat } from "@anthropic-ai/sdk/helpers/json-schema";
import { zodOutputFormat } from "@anthropic-ai/sdk/helpers/zod";
import { z } from "zod";

const client = new Anthropic({ baseURL: process.argv[2], apiKey: "any", maxRetries: 0 });
const go = { role: "user", content: "Go on." };
// The scripted model says tape k after k replies.
const asked = (replies) => ({
  model: "scripted",
  max_tokens: 400,
  messages: [...Array(replies).fill([go, { role: "assistant", content: "Yes." }]).flat(), go],
});

const weather = z.object({ city: z.enum(["Paris", "Rome"]), days: z.array(z.number().int()) });
const schema = {
  type: "object",
  properties: { city: { enum: ["Paris", "Rome"] }, days: { type: "array", items: { type: "integer" } } },
  required: ["city", "days"],
  additionalProperties: false,
};
const formats = {
  zod: zodOutputFormat(weather),
  schema: jsonSchemaOutputFormat(schema),
};

const parsed = [];
for (const format of Object.values(formats)) {
  const body = { ...asked(0), output_config: { format } };
  parsed.push((await client.messages.parse(body)).parsed_output);
  parsed.push((await client.messages.stream(body).finalMessage()).parsed_output);
}
const beta = { ...asked(0), output_config: { format: betaZodOutputFormat(weather) } };
parsed.push((await client.beta.messages.parse(beta)).parsed_output);
const older = { ...asked(0), output_format: betaZodOutputFormat(weather) };
parsed.push((await client.beta.messages.parse(older)).parsed_output);

const loops = [];
for (const stream of [false, true]) {
  const ran = [];
  const tools = [
    betaZodTool({
      name: "now",
      description: "The time in a zone.",
      inputSchema: z.object({ zone: z.string() }),
      run: ({ zone }) => (ran.push(`now ${zone}`), "12:00"),
    }),
    betaTool({
      name: "add",
      description: "The sum of two numbers.",
      inputSchema: {
        type: "object",
        properties: { a: { type: "integer" }, b: { type: "integer" } },
        required: ["a", "b"],
      },
      run: ({ a, b }) => (ran.push(`add ${a} ${b}`), String(a + b)),
    }),
  ];
  const runner = client.beta.messages.toolRunner({ ...asked(1), tools, stream });
  const last = await runner.runUntilDone();
  loops.push({ ran, last });
}

console.log(JSON.stringify({ parsed, loops }));
