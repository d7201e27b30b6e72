// The AI SDK of Vercel against a gateway; run by aisdk.py, in a folder that has
// the packages.
//
// usage: aisdk.mjs PART URL
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { generateObject, generateText, Output, stepCountIs, streamObject, streamText, tool, ToolLoopAgent } from "ai";
import { z } from "zod";
import { check, CITY, finish, part, Place, PLACE, play, SAID, same, url, Weather } from "./scenario.mjs";

globalThis.AI_SDK_LOG_WARNINGS = false; // of a model that it does not know
const weather = tool({
  description: "The weather of a city.", inputSchema: Weather, execute: async ({ city }) => `warm in ${city}` });
const loop = { tools: { weather }, stopWhen: stepCountIs(5) };

// Each kind has its own requests: of the API, and of what the package knows of a
// model by its name.
function provide(session) {
  const openai = createOpenAI({ baseURL: `${url}/s/${session}/v1`, apiKey: "any" });
  const anthropic = createAnthropic({ baseURL: `${url}/s/${session}/v1`, apiKey: "any" });
  return {
    "openai m": openai("m"), "openai gpt-5": openai("gpt-5"),
    "openai.chat m": openai.chat("m"), "openai.chat gpt-5": openai.chat("gpt-5"),
    "anthropic m": anthropic("m"), "anthropic claude-sonnet-4-5": anthropic("claude-sonnet-4-5"),
  };
}
const kinds = Object.keys(provide("none"));
// Of a model that it does not know it wants a call of a tool in place of a format.
const formed = kinds.filter((kind) => kind !== "anthropic m");

// Read one of the streams of a result to its end. Its errors are on standard error.
async function read(result, name) {
  let n = 0;
  for await (const _ of result[name])
    n++;
  check(n > 0, "parts");
  return result;
}

async function checkLoop(result) {
  const steps = await result.steps;
  same(steps.map((step) => step.finishReason), ["tool-calls", "stop"], "steps");
  same(steps[0].toolCalls.map((call) => call.input), [{ city: CITY }], "its call");
  same(steps[0].toolResults.map((one) => one.output), [`warm in ${CITY}`], "its result");
  same(steps[0].text, "Let me see.", "its text");
  same(steps[1].text, SAID, "its answer");
  const usage = await result.usage;
  check(usage.inputTokens > 0 && usage.outputTokens > 0, "usage", usage);
}

async function loops() {
  for (const kind of kinds) {
    const openai = { store: false };
    await play(`generateText, ${kind}`, { turns: 4 }, async (session) => {
      const model = provide(session)[kind];
      const messages = [{ role: "user", content: "Weather?" }];
      const first = await generateText({ model, ...loop, instructions: "Be brief.", messages });
      await checkLoop(first);
      messages.push(...first.responseMessages, { role: "user", content: "And now?" });
      await checkLoop(await generateText({ model, ...loop, instructions: "Be brief.", messages }));
    });
    await play(`streamText, ${kind}`, { turns: 2 }, async (session) => {
      const options = { model: provide(session)[kind], ...loop, prompt: "Weather?" };
      await checkLoop(await read(streamText(options), "fullStream"));
    });
    await play(`ToolLoopAgent, ${kind}`, { turns: 2 }, async (session) => {
      const agent = new ToolLoopAgent({ model: provide(session)[kind], tools: { weather }, instructions: "Be brief." });
      await checkLoop(await agent.generate({ prompt: "Weather?" }));
    });
    if (kind.startsWith("openai "))
      await play(`generateText without a store, ${kind}`, { turns: 2 }, async (session) => checkLoop(await generateText({
        model: provide(session)[kind], ...loop, prompt: "Weather?", providerOptions: { openai } })));
  }
}

async function objects() {
  const output = Output.object({ schema: Place });
  const prompt = "Where?";
  for (const kind of formed) {
    const ask = (session) => ({ model: provide(session)[kind], prompt });
    await play(`generateObject, ${kind}`, { fits: 1 }, async (session) =>
      same((await generateObject({ ...ask(session), schema: Place })).object, PLACE, "its object"));
    await play(`streamObject, ${kind}`, { fits: 1 }, async (session) => same(await (await read(
      streamObject({ ...ask(session), schema: Place }), "partialObjectStream")).object, PLACE, "its object"));
    await play(`generateText, Output.object, ${kind}`, { fits: 1 }, async (session) =>
      same((await generateText({ ...ask(session), output })).output, PLACE, "its output"));
    await play(`streamText, Output.object, ${kind}`, { fits: 1 }, async (session) => same(await (await read(
      streamText({ ...ask(session), output }), "partialOutputStream")).output, PLACE, "its output"));
  }
  // With Anthropic's API it asks for JSON without a format of the API.
  for (const kind of kinds)
    await play(`generateText, Output.json, ${kind}`, { fits: kind.startsWith("openai") ? 1 : 0 }, async (session) =>
      same((await generateText({ model: provide(session)[kind], prompt, output: Output.json() })).output, PLACE, "its output"));
}

// Whatever is not an object, it asks for as the member of one.
async function elements() {
  for (const kind of formed)
    await play(`generateText, Output.array with a tuple, ${kind}`, { fits: 1 }, async (session) => same((await generateText({
      model: provide(session)[kind], prompt: "Which?", output: Output.array({ element: z.tuple([z.string(), z.number()]) }),
    })).output, [["Bern", 1], ["Genf", 2]], "its output"));
}

async function choices() {
  for (const kind of formed)
    await play(`generateText, Output.choice, ${kind}`, { fits: 1 }, async (session) => same((await generateText({
      model: provide(session)[kind], prompt: "Which?", output: Output.choice({ options: ["Bern", "Genf"] }) })).output,
      "Genf", "its output"));
}

// A call, and then an object: a format is asked for in both requests.
async function both() {
  for (const kind of formed)
    await play(`generateText, tools and Output.object, ${kind}`, { turns: 2, fits: 1 }, async (session) => {
      const result = await generateText({
        model: provide(session)[kind], ...loop, prompt: "Where?", output: Output.object({ schema: Place }) });
      same(result.output, PLACE, "its output");
      same(result.steps[0].toolResults.map((one) => one.output), [`warm in ${CITY}`], "its result");
    });
}

// What the model draws is the end of a call.
async function forced() {
  const kind = "anthropic m";
  const ask = (session) => ({ model: provide(session)[kind], prompt: "Where?" });
  await play(`generateObject, ${kind}`, {}, async (session) =>
    same((await generateObject({ ...ask(session), schema: Place })).object, PLACE, "its object"));
  await play(`streamObject, ${kind}`, {}, async (session) => same(await (await read(
    streamObject({ ...ask(session), schema: Place }), "partialObjectStream")).object, PLACE, "its object"));
  await play(`generateText, Output.object, ${kind}`, {}, async (session) =>
    same((await generateText({ ...ask(session), output: Output.object({ schema: Place }) })).output, PLACE, "its output"));
  const place = tool({ inputSchema: Place });
  for (const kind of kinds)
    for (const toolChoice of ["required", { type: "tool", toolName: "place" }])
      await play(`generateText, toolChoice ${toolChoice.type ?? toolChoice}, ${kind}`, {}, async (session) => same(
        (await generateText({ model: provide(session)[kind], prompt: "Where?", tools: { place }, toolChoice })).toolCalls
          .map((call) => [call.toolName, call.input]), [["place", PLACE]], "its call"));
}

await { loops, objects, elements, choices, both, forced }[part]();
finish();
