// The helpers of the official Node clients of OpenAI and Anthropic, with Zod; run
// by aisdk.py, in a folder that has the packages. clients.mjs has their plain calls.
//
// usage: official.mjs PART URL
import Anthropic from "@anthropic-ai/sdk";
import { betaZodTool } from "@anthropic-ai/sdk/helpers/beta/zod";
import { zodOutputFormat } from "@anthropic-ai/sdk/helpers/zod";
import OpenAI from "openai";
import { zodFunction, zodResponseFormat, zodResponsesFunction, zodTextFormat } from "openai/helpers/zod";
import { check, CITY, finish, part, Place, PLACE, play, SAID, same, url, Weather } from "./scenario.mjs";

const open = (session) => new OpenAI({ baseURL: `${url}/s/${session}/v1`, apiKey: "any" });
const anthropic = (session) => new Anthropic({ baseURL: `${url}/s/${session}`, apiKey: "any" });
const messages = [{ role: "user", content: "Weather?" }];
const chat = { model: "m", messages };
const message = { model: "m", max_tokens: 400, messages };
const weather = { name: "weather", description: "The weather of a city.", parameters: Weather };

// The result is sent behind the items of the answer, as they are.
async function respond(session, ask) {
  const client = open(session);
  const input = [{ role: "user", content: "Weather?" }];
  const tools = [zodResponsesFunction(weather)];
  const first = await ask(client, { model: "m", input, tools });
  const call = first.output.find((item) => item.type === "function_call");
  same(call.parsed_arguments, { city: CITY }, "its call");
  input.push(...first.output, { type: "function_call_output", call_id: call.call_id, output: "warm" });
  const last = await client.responses.parse({ model: "m", input, tools });
  same(last.output_text, SAID, "its answer");
  return { client, last, input };
}

async function loops() {
  const run = { ...weather, function: ({ city }) => `warm in ${city}` };
  for (const stream of [false, true]) {
    await play(`openai, chat.completions.runTools, stream ${stream}`, { turns: 2 }, async (session) => same(
      await open(session).chat.completions.runTools({ ...chat, stream, tools: [zodFunction(run)] }).finalContent(),
      SAID, "its answer"));
    await play(`anthropic, beta.messages.toolRunner, stream ${stream}`, { turns: 2 }, async (session) => {
      const tool = betaZodTool({ name: "weather", inputSchema: Weather, description: weather.description, run: run.function });
      const last = await anthropic(session).beta.messages.toolRunner({ ...message, stream, tools: [tool] });
      same(last.content.map((block) => block.text), [SAID], "its answer");
    });
  }
  await play("openai, responses.parse with a function", { turns: 2 }, async (session) => {
    const { client, last, input } = await respond(session, (c, ask) => c.responses.parse(ask));
    same((await client.responses.retrieve(last.id)).output, last.output.map(({ parsed, ...item }) => ({
      ...item, content: item.content.map(({ parsed, ...one }) => one) })), "retrieved");
    same((await client.responses.inputItems.list(last.id)).data.length, input.length, "its input");
    await client.responses.delete(last.id);
    const error = await client.responses.retrieve(last.id).catch((e) => e);
    check(error instanceof OpenAI.NotFoundError, "deleted", error);
  });
  await play("openai, responses.stream with a function", { turns: 2 }, (session) =>
    respond(session, (client, ask) => client.responses.stream(ask).finalResponse()));
  await play("anthropic, messages.countTokens", { turns: 1 }, async (session) => {
    const client = anthropic(session);
    const { max_tokens, ...counted } = { ...message, system: "Be brief.", tools: [
      { name: "weather", input_schema: { type: "object", properties: { city: { type: "string" } } } }] };
    const count = await client.messages.countTokens(counted);
    const answer = await client.messages.create({ ...counted, max_tokens });
    same(count.input_tokens, answer.usage.input_tokens, "as many");
  });
}

async function objects() {
  const response_format = zodResponseFormat(Place, "place");
  const text = { format: zodTextFormat(Place, "place") };
  const output_config = { format: zodOutputFormat(Place) };
  const ways = {
    "openai, chat.completions.parse": async (session) =>
      (await open(session).chat.completions.parse({ ...chat, response_format })).choices[0].message.parsed,
    "openai, chat.completions.stream": async (session) =>
      (await open(session).chat.completions.stream({ ...chat, response_format }).finalChatCompletion()).choices[0].message.parsed,
    "openai, responses.parse": async (session) =>
      (await open(session).responses.parse({ model: "m", input: "Where?", text })).output_parsed,
    "openai, responses.stream": async (session) =>
      (await open(session).responses.stream({ model: "m", input: "Where?", text }).finalResponse()).output_parsed,
    "anthropic, messages.parse": async (session) =>
      (await anthropic(session).messages.parse({ ...message, output_config })).parsed_output,
    "anthropic, messages.stream": async (session) =>
      (await anthropic(session).messages.stream({ ...message, output_config }).finalMessage()).parsed_output,
    "anthropic, beta.messages.parse": async (session) =>
      (await anthropic(session).beta.messages.parse({ ...message, output_config })).parsed_output,
  };
  for (const [what, way] of Object.entries(ways))
    await play(what, { fits: 1 }, async (session) => same(await way(session), PLACE, "parsed"));
}

await { loops, objects }[part]();
finish();
