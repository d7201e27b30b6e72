// SPDX-License-Identifier: MIT
// A program whose allocations fail, one after the other, see ../preload.c. It repeats
// its life and fails allocation FIRST of the addon, then FIRST + STEP, up to the last
// one. With a STEP of 0 it lives once, and loads the addon only then.
'use strict';

const assert = require('node:assert');
const fs = require('node:fs');

const [first, step] = process.argv.slice(2).map(Number);
const control = fs.openSync(process.env.TNK_TEST_CONTROL, 'r+');
const number = Buffer.alloc(8);
// The library repeats some requests after a second.
const LIMIT = 60_000;

function failAt(n) {
  number.writeBigInt64LE(BigInt(n));
  fs.writeSync(control, number, 0, 8, 0);
}

function hasFailed() {
  fs.readSync(control, number, 0, 8, 0);
  return number.readBigInt64LE() <= 0n;
}

/** An operation that does not end is the end of this program. */
function inTime(promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new assert.AssertionError({ message: 'it does not end' })), LIMIT);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

async function live() {
  const { ChatParser, ChatTemplate, Service } = require('tnk');
  const text = Int32Array.from(Buffer.from('hello, world'));
  const datum = { input: text.subarray(0, -1), targets: text.subarray(1), weights: new Array(11).fill(1) };
  const lossInputs = { logprobs: new Array(11).fill(-1), advantages: new Array(11).fill(1) };
  const turn = { input: datum.input, targets: datum.targets, lossInputs };
  const options = { maxTokens: 3, temperature: 0, seed: 1 };
  const results = [];
  const service = new Service({ baseURL: process.env.TINKER_BASE_URL, apiKey: 'tml-local' });
  try {
    const model = await inTime(service.createLora({ baseModel: 'tnk/byte-lm', rank: 8, seed: 1 }));
    const pass = await inTime(model.forwardBackward([datum], { lend: true }));
    results.push(pass.loss, [...pass.outputs[0].logprobs]);
    const ppo = { lossFn: 'ppo', settings: { clip_low_threshold: 0.8 } };
    results.push((await inTime(model.forward([turn], ppo))).loss);
    const signal = new AbortController().signal;
    const sampler = await inTime(model.saveWeightsAndGetSampling({ signal }));
    results.push([...(await inTime(sampler.sample([104, 101], { ...options, stop: ['x'] }))).sequences[0].tokens]);
    const streamed = [];
    const stream = sampler.stream([104, 101], options);
    const reads = (async () => {
      for await (const { token } of stream) streamed.push(token);
    })();
    await inTime(Promise.all([reads, stream.result]));
    results.push(streamed);
    results.push((await inTime(service.rest.runs({ limit: 1 }).pages().next())).value.items.length);
    const template = ChatTemplate.fromText(undefined);
    results.push(template.encode(null, [{ role: 'user', content: 'hi' }], { generationPrompt: true }).tokens.length);
    const parser = new ChatParser(null, { family: 'think' });
    parser.feed(text);
    results.push(parser.finish().message.content);
    const gateway = service.openGateway({ template, adminKey: 'admin', key: 'key' });
    results.push(gateway.createKey({ session: 's' }).key.length, gateway.keys().length);
    const canceled = new AbortController();
    const late = inTime(sampler.sample([104], { maxTokens: 1000, signal: canceled.signal }));
    canceled.abort();
    results.push(await late.catch((error) => (error.name === 'AbortError' ? 'aborted' : Promise.reject(error))));
    await inTime(gateway.close());
    return results;
  } finally {
    await inTime(service.close());
  }
}

/** Returns whether the life had that many allocations. */
async function fails(n, wanted) {
  failAt(n);
  try {
    const results = await live();
    if (wanted !== undefined) assert.deepStrictEqual(results, wanted);
  } catch (error) {
    if (!hasFailed() || error instanceof assert.AssertionError) {
      error.message = `allocation ${n}: ${error.message}`;
      throw error;
    }
    console.log(`# ${n}: ${error}`);
  }
  const wasReached = hasFailed();
  failAt(0);
  return wasReached;
}

async function main() {
  const wanted = step > 0 ? await live() : undefined;
  let n = first;
  while ((await fails(n, wanted)) && step > 0) n += step;
  console.log(`ended at ${n}`);
}

main();
