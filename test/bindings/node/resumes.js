// SPDX-License-Identifier: MIT
// A run with a ledger, for run_kills.py: node resumes.js DIRECTORY
'use strict';

const tnk = require('tnk');

const STEPS = 8;

async function main() {
  const service = new tnk.Service();
  const ledger = await service.openLedger(process.argv[2], { run: 'kills', everySteps: 1 });
  let entry = ledger.last;
  const training =
    entry === undefined
      ? await service.createLora({ baseModel: 'tnk/byte-lm', rank: 8, seed: 5 })
      : await ledger.resume({ withOptimizer: true });
  // A save that completed after the last program had ended is found while resuming.
  entry = ledger.resumed;
  const first = entry === undefined ? 0 : Number(entry.cursor);
  console.log(`begins ${first}`);
  const text = Int32Array.from(Buffer.from('hello'));
  for (let step = first; step < STEPS; step++) {
    const pass = training.forwardBackward([{ input: text.subarray(0, -1), targets: text.subarray(1) }]);
    await training.optimStep({ learningRate: 1e-2 });
    console.log(`loss ${step} ${(await pass).loss}`);
    entry = await ledger.save(training, { cursor: String(step + 1), isFinal: step + 1 === STEPS });
    console.log(`saved ${step + 1}`);
  }
  console.log(`final ${entry.statePath}`);
  await service.close();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
