// SPDX-License-Identifier: MIT
// Nothing grows: what is counted is objects, because memory depends on the
// collector of garbage. N makes the loops longer.
'use strict';

const assert = require('node:assert');
const test = require('node:test');
const tnk = require('tnk');
const { bytes, open, settled } = require('./support.js');

const N = Number(process.env.N ?? 1);

const isEmpty = (objects) => {
  const { services, gateways, ...now } = tnk.counts();
  return Object.entries(now).every(([name, n]) => n === (name === 'objects' ? objects : 0));
};

test('1,000 aborts', async () => {
  const service = open();
  const sampler = await service.createSampling({ baseModel: 'tnk/byte-lm' });
  const shared = new AbortController();
  for (let round = 0; round < 10 * N; round++) {
    const controls = Array.from({ length: 100 }, () => new AbortController());
    const samples = controls.map(({ signal }) => sampler.sample([104], { maxTokens: 1000, signal }));
    controls.forEach((control, i) => (i % 2 ? control.abort() : setImmediate(() => control.abort())));
    const ends = await Promise.allSettled(samples);
    assert.ok(ends.every((end) => end.status === 'rejected' && end.reason.name === 'AbortError'));
    await sampler.sample([104], { maxTokens: 1, signal: shared.signal });
  }
  assert.strictEqual(require('node:events').getEventListeners(shared.signal, 'abort').length, 0);
  await settled(() => isEmpty(2));
  await assert.rejects(sampler.sample([104], { signal: AbortSignal.abort(new Error('before')) }), (error) => {
    return error.name === 'AbortError' && error.ran === 'no' && error.cause.message === 'before';
  });
  await service.close();
});

test('streams, some of which are left early', async () => {
  const service = open();
  const sampler = await service.createSampling({ baseModel: 'tnk/byte-lm' });
  const read = async (i) => {
    let n = 0;
    const isLeft = i % 50 === 0;
    const stream = sampler.stream([104], { maxTokens: isLeft ? 300 : 4, temperature: 0 });
    for await (const _ of stream) {
      n++;
      if (isLeft) break;
    }
    if (isLeft) await assert.rejects(stream.result, tnk.AbortError);
    return n;
  };
  for (let round = 0; round < 20 * N; round++) {
    const counts = await Promise.all(Array.from({ length: 100 }, (_, i) => read(i)));
    assert.ok(counts.every((n, i) => n === (i % 50 === 0 ? 1 : 4)), String(counts));
  }
  await settled(() => isEmpty(2));
  const control = new AbortController();
  const stream = sampler.stream([104], { maxTokens: 2000, signal: control.signal });
  control.abort();
  await assert.rejects(async () => {
    for await (const _ of stream);
  }, tnk.AbortError);
  await assert.rejects(stream.result, tnk.AbortError);
  await service.close();
});

/** A function of its own: a frame that waits keeps its variables. */
async function twentyServices() {
  const services = Array.from({ length: 20 }, () => open());
  const samplers = await Promise.all(services.map((service) => service.createSampling({ baseModel: 'tnk/byte-lm' })));
  await Promise.all(samplers.map((sampler) => sampler.sample(bytes('a'), { maxTokens: 1 })));
  await Promise.all(services.map((service) => service.close()));
}

test('200 services', async () => {
  for (let round = 0; round < 10 * N; round++) {
    await twentyServices();
    assert.strictEqual(tnk.counts().services, 0);
  }
  await settled(() => isEmpty(0));
});
