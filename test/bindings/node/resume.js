// SPDX-License-Identifier: MIT
// A run that is killed at random moments and resumes from its ledger.
'use strict';

const assert = require('node:assert');
const { spawn } = require('node:child_process');
const path = require('node:path');
const test = require('node:test');
const { example, open } = require('./support.js');

const STEPS = 12;
const KILLS = Number(process.env.N ?? 1) * 6;

/** Train STEPS steps, and save after each one. */
async function train(directory) {
  const service = open();
  const ledger = await service.openLedger(directory, { run: path.basename(directory), everySteps: 1 });
  const last = ledger.last;
  const model =
    last === undefined
      ? await service.createLora({ baseModel: 'tnk/byte-lm', rank: 4, seed: 5 })
      : await ledger.resume({ withOptimizer: true });
  // The resumed save may be newer than the last entry of the file.
  const first = last === undefined ? 0 : Number(ledger.resumed.cursor);
  console.log(`begins ${first}`);
  let loss = 0;
  for (let step = first; step < STEPS; step++) {
    const pass = model.forwardBackward([example()]);
    await model.optimStep({ learningRate: 0.01 });
    loss = (await pass).loss;
    await ledger.save(model, { cursor: String(step + 1), isFinal: step + 1 === STEPS });
    console.log(`saved ${step + 1}`);
  }
  console.log(`loss ${loss}`);
  await service.close();
}

/** Run it in a process, and kill that after so many lines. */
function run(directory, lines) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [__filename, directory], { stdio: ['ignore', 'pipe', 'inherit'] });
    let text = '';
    child.stdout.on('data', (data) => {
      text += data;
      if (text.split('\n').length > lines) child.kill('SIGKILL');
    });
    child.on('close', () => resolve(text));
  });
}

if (process.argv.length > 2) {
  train(process.argv[2]);
} else {
  test('a killed run resumes from its ledger', async () => {
    const whole = await run(path.join(process.env.TNK_TEST_FOLDER, 'whole'), Infinity);
    const directory = path.join(process.env.TNK_TEST_FOLDER, 'killed');
    let saved = 0;
    for (let i = 0; i < KILLS; i++) {
      // After two lines it has begun and saved once more, or is about to.
      const text = await run(directory, 1 + (i % 3));
      const begun = /begins (\d+)/.exec(text);
      if (begun !== null) assert.ok(Number(begun[1]) >= saved, `${text} after ${saved}`);
      for (const [, n] of text.matchAll(/saved (\d+)/g)) saved = Number(n);
    }
    const text = await run(directory, Infinity);
    assert.match(text, /begins [1-9]/);
    const loss = (from) => /loss (.*)/.exec(from)[1];
    assert.strictEqual(loss(text), loss(whole));
  });
}
