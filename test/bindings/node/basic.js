// SPDX-License-Identifier: MIT
// What a program does with the package, against a local server.
'use strict';

const assert = require('node:assert');
const test = require('node:test');
const tnk = require('tnk');
const { bytes, example, open, settled } = require('./support.js');

test('the loss falls', async () => {
  await using_(open(), async (service) => {
    const model = await service.createLora({ baseModel: 'tnk/byte-lm', rank: 8, seed: 1 });
    const first = await model.forwardBackward([example()]);
    await model.optimStep({ learningRate: 0.02 });
    for (let i = 0; i < 20; i++) {
      model.forwardBackward([example()], { lossFn: 'cross_entropy' });
      await model.optimStep({ learningRate: 0.02 });
    }
    const last = await model.forward([example()]);
    assert.ok(last.loss < first.loss / 2, `${first.loss}, ${last.loss}`);
    assert.ok(last.outputs[0].logprobs instanceof Float32Array);
    assert.strictEqual(last.outputs[0].logprobs.length, 11);
    assert.strictEqual(model.info.loraRank, 8);
    assert.ok(model.totals.trainedTokens > 200);
  });
});

test('each kind of array gives the same loss', async () => {
  await using_(open(), async (service) => {
    const model = await service.createLora({ baseModel: 'tnk/byte-lm', rank: 8, seed: 1 });
    const [input, targets] = [[...'hello'].map((c) => c.charCodeAt(0)), [...'ello!'].map((c) => c.charCodeAt(0))];
    const weights = [1, 1, 0.5, 0.5, 1];
    const forms = [
      { input, targets, weights },
      { input: Int32Array.from(input), targets: Int32Array.from(targets), weights: Float32Array.from(weights) },
      { input, targets: BigInt64Array.from(targets.map(BigInt)), weights: Float64Array.from(weights) },
      { input: [{ tokens: input }], lossInputs: { target_tokens: Int32Array.from(targets), weights } },
      { input, lossInputs: { target_tokens: { data: Int32Array.from(targets), shape: [5] }, weights } },
    ];
    const losses = await Promise.all(forms.map((form) => model.forward([form]).then((pass) => pass.loss)));
    losses.push((await model.forward([forms[1]], { lend: true })).loss);
    assert.strictEqual(new Set(losses).size, 1, String(losses));
    await settled(() => tnk.counts().lent === 0);
  });
});

test('samples, logprobs and streams', async () => {
  await using_(open(), async (service) => {
    const sampler = await service.createSampling({ baseModel: 'tnk/byte-lm' });
    const options = { maxTokens: 20, temperature: 0, seed: 3 };
    const { sequences } = await sampler.sample(bytes('he'), { ...options, numSamples: 2 });
    assert.strictEqual(sequences.length, 2);
    assert.strictEqual(sequences[0].tokens.length, 20);
    assert.strictEqual(sequences[0].logprobs.length, 20);
    assert.strictEqual(sequences[0].stopReason, 'length');
    const logprobs = await sampler.computeLogprobs([104, 101]);
    assert.ok(Number.isNaN(logprobs[0]) && logprobs[1] < 0);
    const stream = sampler.stream(bytes('he'), options);
    const streamed = [];
    for await (const { token, index } of stream) assert.strictEqual(streamed.push(token) - 1, index);
    assert.deepStrictEqual(Int32Array.from(streamed), sequences[0].tokens);
    assert.deepStrictEqual((await stream.result).sequences[0].tokens, sequences[0].tokens);
    const again = await (await service.createSampling({ exported: sampler.export() })).sample([104, 101], options);
    assert.deepStrictEqual(again.sequences[0].tokens, sequences[0].tokens);
    assert.strictEqual((await sampler.clone()).baseModel, 'tnk/byte-lm');
  });
});

test('large results are views of the memory of the library', async () => {
  await using_(open(), async (service) => {
    const sampler = await service.createSampling({ baseModel: 'tnk/byte-lm' });
    let { sequences } = await sampler.sample([104], { maxTokens: 1100, temperature: 0 });
    assert.strictEqual(sequences[0].tokens.length, 1100);
    assert.strictEqual(tnk.counts().buffers, 2);
    await service.close();
    assert.ok(sequences[0].tokens.every((token) => token >= 0 && token < 258));
    sequences = undefined;
    await settled(() => tnk.counts().buffers === 0);
  });
});

test('saves, records and a restored model', async () => {
  await using_(open(), async (service) => {
    const model = await service.createLora({ baseModel: 'tnk/byte-lm', rank: 4, userMetadata: { a: 'b' } });
    await model.forwardBackward([example()]);
    await model.optimStep();
    const saved = await model.saveState('kept', { ttlSeconds: 7200 });
    assert.strictEqual(saved.steps, 1);
    const all = await service.rest.checkpoints().all();
    assert.ok(all.some((one) => one.path === saved.path && one.kind === 'training' && one.time instanceof Date));
    const run = await service.rest.run(model.info.id);
    assert.strictEqual(run.lastCheckpoint.path, saved.path);
    assert.strictEqual((await service.rest.weights(saved.path)).loraRank, 4);
    const copy = await service.restore({ path: saved.path, withOptimizer: true });
    const [one, two] = await Promise.all([model.forward([example()]), copy.forward([example()])]);
    assert.strictEqual(one.loss, two.loss);
    await service.rest.deleteCheckpoint(saved.path);
    await assert.rejects(service.rest.weights(saved.path), tnk.NotFoundError);
  });
});

test('lists are read page by page', async () => {
  await using_(open(), async (service) => {
    for (let i = 0; i < 5; i++) await service.createLora({ baseModel: 'tnk/byte-lm', rank: 1 });
    const pages = [];
    for await (const page of service.rest.runs({ limit: 2 }).pages()) pages.push(page.items.length);
    assert.ok(pages.length >= 3 && pages.every((n) => n <= 2), String(pages));
    const ids = (await service.rest.runs({ limit: 2 }).all()).map((run) => run.id);
    assert.strictEqual(new Set(ids).size, ids.length);
    let first;
    for await (const run of service.rest.runs()) {
      first = run.id;
      break;
    }
    assert.ok(ids.includes(first));
  });
});

test('errors name what is wrong', async () => {
  await using_(open(), async (service) => {
    const model = await service.createLora({ baseModel: 'tnk/byte-lm', rank: 1 });
    await assert.rejects(model.forward([{ input: [1, 2], targets: [1] }]), /datum 0: "target_tokens" has 1 values/);
    assert.throws(() => model.forward([{ input: [1.5], targets: [1] }]), /datum 0: input: 1.5 is not a token id/);
    assert.throws(() => model.forward([{ input: 'text' }]), /encode text with a tokenizer/);
    assert.throws(() => model.optimStep({ lerningRate: 1 }), /optimStep: unknown option "lerningRate"/);
    await assert.rejects(model.optimStep({ learningRate: '1' }), /learningRate: expected a number/);
    await assert.rejects(service.rest.setCheckpointTtl('tinker://x', 'soon'), /seconds: expected a number/);
    await assert.rejects(model.optimStep({ optimizer: 'sgd' }), /optimizer: expected one of "adamw"/);
    await assert.rejects(service.createLora({ baseModel: 'no-such' }), /no-such/);
    await assert.rejects(service.createLora({ baseModel: 'tnk/byte-lm', rank: -1 }), /rank: expected a whole number/);
    assert.throws(() => new tnk.Service({ baseURL: 'nonsense', apiKey: 'k' }), tnk.TnkError);
    assert.throws(() => new tnk.TrainingClient(), /no public constructor/);
    const refused = new tnk.Service({ baseURL: 'http://127.0.0.1:1', apiKey: 'tml-local', patienceMs: 1 });
    await assert.rejects(refused.createLora({ baseModel: 'x', timeout: 1 }), tnk.ConnectionError);
    await refused.close();
    await service.close();
    await assert.rejects(model.optimStep(), (e) => e instanceof tnk.ClosedError && /service has been closed/.test(e.message));
    await service.close();
  });
});

test('calls wait for room', async () => {
  await using_(open({ maxPending: 4 }), async (service) => {
    const sampler = await service.createSampling({ baseModel: 'tnk/byte-lm' });
    const all = await Promise.all(Array.from({ length: 100 }, (_, i) => sampler.sample([104], { maxTokens: 2, seed: i })));
    assert.strictEqual(all.length, 100);
    const many = Array.from({ length: 20 }, () => sampler.sample([104], { maxTokens: 2 }));
    const control = new AbortController();
    const canceled = sampler.sample([104], { maxTokens: 2, signal: control.signal });
    control.abort();
    await assert.rejects(canceled, (e) => e instanceof tnk.AbortError && e.ran === 'no');
    await Promise.all(many);
    const left = Array.from({ length: 20 }, () => sampler.sample([104], { maxTokens: 2 }));
    const closing = service.close();
    const ends = await Promise.allSettled(left);
    assert.ok(ends.every((end) => end.status === 'rejected' && end.reason instanceof tnk.ClosedError));
    await closing;
  });
});

test('chat, tokenizers and parsers', () => {
  const template = tnk.ChatTemplate.fromText('{% for m in messages %}<{{ m.role }}>{{ m.content }}{{ mark }}{% endfor %}');
  const messages = [{ role: 'user', content: 'Hi' }];
  const options = { variables: { mark: '!' } };
  assert.strictEqual(template.render(messages, options), '<user>Hi!');
  const { tokens, weights } = template.encode(undefined, messages, { ...options, trainOn: 'everything' });
  assert.strictEqual(Buffer.from(tokens).toString(), '<user>Hi!');
  assert.ok(weights.every((weight) => weight === 1));
  const parser = new tnk.ChatParser(undefined, { family: 'think', prompt: [], stops: ['</s>'] });
  const deltas = parser.feed(bytes('<think>why</think>so</s>'));
  const { message } = parser.finish();
  assert.strictEqual(message.content, 'so');
  assert.ok(deltas.some((delta) => delta.kind === 'thinking'));
  assert.throws(() => tnk.ChatTemplate.fromText('{% for %}'), tnk.TnkError);
  assert.throws(() => tnk.Tokenizer.load('/no/such/file'), tnk.NotFoundError);
  assert.strictEqual(tnk.findRenderer('qwen3').family, 'hermes');
  assert.strictEqual(tnk.findRenderer('none of these'), undefined);
  const tokenizer = tnk.Tokenizer.fromBytes(Buffer.from(JSON.stringify(byteTokenizer())));
  assert.deepStrictEqual([...tokenizer.encode('abba')], [256, 98, 97]);
  assert.strictEqual(tokenizer.decode([256, 98, 97]), 'abba');
  assert.strictEqual(tokenizer.decode(tokenizer.encode('Grüße')), 'Grüße');
  assert.strictEqual(tokenizer.vocabSize, 257);
  assert.strictEqual(tokenizer.tokenId('ab'), 256);
});

/** A token for each byte, in the characters of GPT-2, and one for "ab". */
function byteTokenizer() {
  const vocab = {};
  let extra = 256;
  for (let byte = 0; byte < 256; byte++) {
    const isShown = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    vocab[String.fromCodePoint(isShown ? byte : extra++)] = byte;
  }
  return {
    version: '1.0',
    added_tokens: [],
    pre_tokenizer: { type: 'ByteLevel', add_prefix_space: false, use_regex: true },
    decoder: { type: 'ByteLevel' },
    model: { type: 'BPE', vocab: { ...vocab, ab: 256 }, merges: ['a b'] },
  };
}

test('a gateway answers and records', async () => {
  await using_(open(), async (service) => {
    const gateway = service.openGateway({ model: 'mine', adminKey: 'admin', key: 'agent' });
    await gateway.use({ baseModel: 'tnk/byte-lm' });
    const ask = (key) =>
      fetch(`${gateway.address}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
        body: JSON.stringify({ model: 'mine', max_tokens: 5, messages: [{ role: 'user', content: 'Hi' }] }),
      });
    assert.strictEqual((await ask('wrong')).status, 401);
    const { key, id } = gateway.createKey({ session: 'one', maxRequests: 1 });
    const answer = await (await ask(key)).json();
    assert.ok(answer.usage.completion_tokens <= 5);
    assert.strictEqual((await ask(key)).status, 403);
    gateway.reward(0.5, { id: answer.id });
    const [datum] = gateway.datums({ session: 'one', rewarded: true });
    assert.strictEqual(datum.session, 'one');
    assert.strictEqual(gateway.keys()[0].id, id);
    gateway.revokeKey(id);
    assert.strictEqual((await ask(key)).status, 401);
    assert.strictEqual(gateway.stats.answered, 1);
    const { address } = gateway;
    await service.close();
    await assert.rejects(fetch(`${address}/health`));
  });
});

test('a budget, events and a dump', async () => {
  await using_(open(), async (service) => {
    const sampler = await service.createSampling({ baseModel: 'tnk/byte-lm' });
    const { sequences } = await sampler.sample([1, 2], { maxTokens: 3 });
    assert.strictEqual(service.totals.sampledTokens, sequences[0].tokens.length);
    assert.ok(service.stats.requests >= 3);
    assert.ok(service.dump() !== null);
    assert.ok((await service.models()).some((model) => model.name === 'tnk/byte-lm'));
    await service.health();
    service.setBudget({ maxTokens: 6 });
    await assert.rejects(sampler.sample([1, 2], { maxTokens: 30 }), tnk.BudgetError);
  });
  const events = [];
  const onQueueState = (event) => events.push(event.state);
  const unreachable = new tnk.Service({ baseURL: 'http://127.0.0.1:1', apiKey: 'tml-local', onQueueState });
  unreachable.health().catch(() => {});
  await settled(() => events.length > 0);
  assert.strictEqual(events[0], 'unreachable');
  await unreachable.close();
});

/** `await using`, which Node 18 to 22 do not have. */
async function using_(service, body) {
  try {
    await body(service);
  } finally {
    await service.close();
  }
}
