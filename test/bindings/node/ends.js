// SPDX-License-Identifier: MIT
// Programs and threads that end while operations run.
'use strict';

const assert = require('node:assert');
const { spawnSync } = require('node:child_process');
const test = require('node:test');
const { Worker, isMainThread, workerData } = require('node:worker_threads');
const { open } = require('./support.js');

const START = `
  const tnk = require('tnk');
  const { open, example } = require(${JSON.stringify(require.resolve('./support.js'))});
  const service = open();
`;

function run(program) {
  const ended = spawnSync(process.execPath, ['--expose-gc', '-e', START + program], { encoding: 'utf8', timeout: 60000 });
  assert.strictEqual(ended.signal, null, ended.stderr);
  return ended;
}

const BUSY = `
  const model = await service.createLora({ baseModel: 'tnk/byte-lm', rank: 2 });
  const sampler = await model.saveWeightsAndGetSampling();
  const pending = [];
  for (let i = 0; i < 20; i++) pending.push(model.forwardBackward([example()], { lend: true }));
  for (let i = 0; i < 20; i++) pending.push(sampler.sample([104], { maxTokens: 500 }));
  const stream = sampler.stream([104], { maxTokens: 500 });
  const ledger = await service.openLedger(process.env.TNK_TEST_FOLDER + '/ends');
  const gateway = service.openGateway();
`;

if (!isMainThread) {
  work(workerData);
} else {
  main();
}

/** In a worker: sample, and end as the data says. */
async function work({ how }) {
  const service = open();
  const sampler = await service.createSampling({ baseModel: 'tnk/byte-lm' });
  await sampler.sample([104], { maxTokens: 2 });
  const pending = Array.from({ length: 20 }, () => sampler.sample([104], { maxTokens: 500 }));
  // An open gateway keeps its thread alive, like any server.
  if (how !== 'nothing') service.openGateway();
  if (how === 'close') {
    const ends = Promise.allSettled(pending);
    await service.close();
    await ends;
  } else if (how === 'exit') {
    process.exit(0);
  } else if (how === 'throw') {
    throw new Error('thrown on purpose');
  }
}

function main() {
  test('process.exit() with work in progress', () => {
    const ended = run(`(async () => { ${BUSY} process.exit(7); })()`);
    assert.strictEqual(ended.status, 7, ended.stderr);
    assert.strictEqual(ended.stderr, '');
  });

  test('an exception that nobody catches', () => {
    const ended = run(`(async () => { ${BUSY} throw new Error('on purpose'); })()`);
    assert.strictEqual(ended.status, 1);
    assert.match(ended.stderr, /on purpose/);
  });

  test('a service that is left open lets the program end', () => {
    const ended = run(`service.createSampling({ baseModel: 'tnk/byte-lm' }).then((s) => s.sample([1], { maxTokens: 2 }))
      .then(() => console.log('done'))`);
    assert.strictEqual(ended.status, 0, ended.stderr);
    assert.strictEqual(ended.stdout, 'done\n');
  });

  test('closing rejects what is in progress', () => {
    const ended = run(`(async () => { ${BUSY}
      const closing = service.close();
      const ends = await Promise.allSettled([...pending, stream.result]);
      await closing;
      console.log(ends.filter((end) => end.status === 'rejected' && end.reason.code !== 'TNK_ECLOSED').length,
        tnk.counts().promises, tnk.counts().services, tnk.counts().gateways);
    })()`);
    assert.strictEqual(ended.status, 0, ended.stderr);
    assert.strictEqual(ended.stdout, '0 0 0 0\n');
  });

  test('objects are collected in any order', () => {
    const ended = run(`(async () => {
      await (async () => {
        const model = await service.createLora({ baseModel: 'tnk/byte-lm', rank: 2 });
        const sampler = await model.saveWeightsAndGetSampling();
        const ledger = await service.openLedger(process.env.TNK_TEST_FOLDER + '/collected');
        ledger.isDue(model);
        await sampler.sample([1], { maxTokens: 2 });
      })();
      while (tnk.counts().objects > 1) {
        gc();
        await new Promise((resolve) => setImmediate(resolve));
      }
      await (async () => {
        const pending = (await open().createSampling({ baseModel: 'tnk/byte-lm' })).sample([1], { maxTokens: 50 });
        for (let i = 0; i < 20; i++) { gc(); await new Promise((resolve) => setImmediate(resolve)); }
        console.log((await pending).sequences.length);
      })();
      while (tnk.counts().services > 1) {
        gc();
        await new Promise((resolve) => setImmediate(resolve));
      }
      console.log('collected', service.stats.pending);
    })()`);
    assert.strictEqual(ended.status, 0, ended.stderr);
    assert.strictEqual(ended.stdout, '1\ncollected 0\n');
  });

  test('an object belongs to its thread', async () => {
    const service = open();
    assert.throws(() => structuredClone(service), { name: 'DataCloneError' });
    const worker = new Worker('setInterval(() => {}, 1000)', { eval: true });
    assert.throws(() => worker.postMessage(service), { name: 'DataCloneError' });
    await worker.terminate();
    await service.close();
  });

  for (const how of ['close', 'exit', 'throw', 'nothing', 'terminate']) {
    test(`eight workers: ${how}`, async () => {
      const ends = Array.from({ length: 8 }, () => {
        const worker = new Worker(__filename, { workerData: { how } });
        if (how === 'terminate') worker.once('online', () => setImmediate(() => worker.terminate()));
        return new Promise((resolve, reject) => {
          worker.once('error', (error) => (how === 'throw' ? resolve() : reject(error)));
          worker.once('exit', resolve);
        });
      });
      await Promise.all(ends);
    });
  }

  test('a worker that is terminated amid its work', async () => {
    for (let i = 0; i < 4; i++) {
      const worker = new Worker(
        `const { parentPort } = require('worker_threads');
         const { open } = require(${JSON.stringify(require.resolve('./support.js'))});
         const service = open();
         service.createSampling({ baseModel: 'tnk/byte-lm' }).then(async (sampler) => {
           parentPort.postMessage('busy');
           for (;;) await Promise.all(Array.from({ length: 20 }, () => sampler.sample([1], { maxTokens: 20 })));
         });`,
        { eval: true }
      );
      await new Promise((resolve) => worker.once('message', resolve));
      await worker.terminate();
    }
  });
}
