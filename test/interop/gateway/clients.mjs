// The official Node clients of OpenAI and Anthropic against a gateway; run by
// clients.py, in a folder that has the packages.
//
// usage: clients.mjs URL_OF_MODEL URL_OF_CALLS
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

const [url, calls] = process.argv.slice(2);
const talk = [{ role: "user", content: "Hello" }];
const parameters = { type: "object", properties: { city: { type: "string" } } };

function check(ok, what, got) {
  console.log(`${ok ? "ok" : "not ok"} ${what}`);
  if (!ok) {
    console.log(JSON.stringify(got));
    process.exit(1);
  }
}

async function openai() {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "any:node", maxRetries: 5 });
  const ask = { model: "m", messages: talk, max_tokens: 8, seed: 4 };
  const whole = await client.chat.completions.create({ ...ask, n: 2, logprobs: true });
  check(whole.choices.length === 2 && whole.choices[0].logprobs.content.length > 0, "choices", whole);
  let said = "";
  for await (const chunk of await client.chat.completions.create({ ...ask, stream: true }))
    said += chunk.choices[0]?.delta.content ?? "";
  check(said === whole.choices[0].message.content, "a stream", said);
  const first = await client.responses.create({ model: "m", input: "Hi", max_output_tokens: 5 });
  const kinds = [];
  for await (const event of await client.responses.create({
    model: "m", input: "And?", max_output_tokens: 5, previous_response_id: first.id, stream: true }))
    kinds.push(event.type);
  check(kinds[0] === "response.created" && kinds.at(-1).startsWith("response."), "responses", kinds);
  const aborter = new AbortController();
  const pending = client.chat.completions.create({ ...ask, max_tokens: 2000 }, { signal: aborter.signal });
  aborter.abort();
  const error = await pending.then(() => null, (e) => e);
  check(error instanceof OpenAI.APIUserAbortError, "an abort", error);
}

async function anthropic() {
  const client = new Anthropic({ baseURL: url, apiKey: "any:node", maxRetries: 5 });
  const ask = { model: "m", messages: talk, max_tokens: 8 };
  const whole = await client.messages.create(ask);
  check(whole.content[0].type === "text", "a message", whole);
  const last = await client.messages.stream(ask).finalMessage();
  check(last.usage.output_tokens > 0, "a stream of a message", last);
}

async function tools() {
  const open = new OpenAI({ baseURL: `${calls}/s/node1/v1`, apiKey: "any" });
  const a = await open.chat.completions.create({ model: "m", messages: talk, max_tokens: 400, tools: [
    { type: "function", function: { name: "weather", parameters } }] });
  const call = a.choices[0].message.tool_calls?.[0];
  check(JSON.parse(call.function.arguments).city === "Zürich", "a call", a);
  const b = await open.chat.completions.create({ model: "m", max_tokens: 400, messages: [...talk,
    a.choices[0].message, { role: "tool", tool_call_id: call.id, content: "warm" }], tools: [
    { type: "function", function: { name: "weather", parameters } }] });
  check(b.choices[0].message.content.includes("warm"), "its result", b);
  const client = new Anthropic({ baseURL: `${calls}/s/node2`, apiKey: "any" });
  const c = await client.messages.stream({ model: "m", messages: talk, max_tokens: 400, tools: [
    { name: "weather", input_schema: parameters }] }).finalMessage();
  const use = c.content.find((block) => block.type === "tool_use");
  check(use.input.city === "Zürich", "a call of a message", c);
  const d = await client.messages.create({ model: "m", max_tokens: 400, messages: [...talk,
    { role: "assistant", content: c.content },
    { role: "user", content: [{ type: "tool_result", tool_use_id: use.id, content: "warm" }] }],
    tools: [{ name: "weather", input_schema: parameters }] });
  check(d.content[0].text.includes("warm"), "its result", d);
}

await openai();
await anthropic();
await tools();
