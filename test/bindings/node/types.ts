// SPDX-License-Identifier: MIT
// Compiled with --strict, and not run: what must have a type, and what must not.
import { AbortError, ChatTemplate, Service, TnkError, type Samples, type StreamToken } from 'tnk';

export async function uses(): Promise<void> {
  const service = new Service({ baseURL: 'http://127.0.0.1:1', apiKey: 'k', onLog: (line) => line.message.trim() });
  const model = await service.createLora({ baseModel: 'm', rank: 8 });
  const pass = await model.forwardBackward([{ input: [1, 2], targets: BigInt64Array.of(2n, 3n), weights: [1, 1] }], {
    lend: true,
  });
  const loss: number = pass.loss;
  const sampler = await model.saveWeightsAndGetSampling();
  const samples: Samples = await sampler.sample(Int32Array.of(1), { maxTokens: loss, signal: new AbortController().signal });
  const ids: Int32Array | undefined = samples.sequences[0]?.tokens;
  for await (const token of sampler.stream([1])) {
    const one: StreamToken = token;
    console.log(one.token, ids);
  }
  for await (const run of service.rest.runs({ limit: 5 })) console.log(run.lastCheckpoint?.path.length);
  const ledger = await service.openLedger('folder');
  const entry = await ledger.save(model, { cursor: '1' });
  console.log(entry.steps + 1, ChatTemplate.fromText(undefined).stops.length);
  try {
    await service.health();
  } catch (error) {
    if (error instanceof AbortError || error instanceof TnkError) console.log(error.code.length, error.ran);
  }
  // @ts-expect-error An option that does not exist.
  await model.optimStep({ lerningRate: 1 });
  // @ts-expect-error A base model is required.
  await service.createLora({});
  // @ts-expect-error Text is not a prompt.
  await sampler.sample('text');
  await service.close();
}
