// SPDX-License-Identifier: MIT
'use strict';

const native = require('./native.js');
const { classes, makeError } = require('./errors.js');
const { check, names, ids, input, data } = require('./data.js');

native.setup(makeError);

const asyncDispose = Symbol.asyncDispose ?? Symbol.for('nodejs.asyncDispose');
const worker = require('worker_threads');

/** An object of this library belongs to its thread: postMessage() fails. */
function keepHere(object) {
  if (worker.markAsUncloneable) {
    worker.markAsUncloneable(object);
    return;
  }
  Object.defineProperty(object, 'thread', { value: thisBelongsToItsThread, enumerable: true });
}

/** The error of structuredClone() has this text: functions cannot be cloned. */
function thisBelongsToItsThread() {}

function aborted(signal) {
  const error = makeError('TNK_ECANCELED', 'canceled by its signal', { ran: 'no' });
  error.cause = signal.reason;
  return error;
}

// ---- Operations ----

/** Starts the operations of one service, and lets them wait for room. */
class Starter {
  #waiting = [];

  /** Call start(control), which returns undefined while there is no room. */
  run(start, signal) {
    if (signal !== undefined) return this.#runWithSignal(start, signal);
    if (this.#waiting.length === 0) {
      const promise = start(undefined);
      if (promise !== undefined) return promise;
    }
    return this.#wait(start, undefined, undefined);
  }

  async #runWithSignal(start, signal) {
    if (signal.aborted) throw aborted(signal);
    const control = {};
    const entry = {};
    const onAbort = () => {
      native.cancel(control);
      if (entry.reject !== undefined) entry.reject(aborted(signal));
    };
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      let promise;
      if (this.#waiting.length === 0) promise = start(control);
      return await (promise ?? this.#wait(start, control, entry));
    } catch (error) {
      if (signal.aborted && error.code === 'TNK_ECANCELED') error.cause ??= signal.reason;
      throw error;
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  #wait(start, control, entry = {}) {
    return new Promise((resolve, reject) => {
      Object.assign(entry, { start, control, resolve, reject, isOver: false });
      entry.reject = (error) => {
        entry.isOver = true;
        reject(error);
      };
      this.#waiting.push(entry);
    });
  }

  /** Some operation has ended. */
  onRoom() {
    while (this.#waiting.length > 0) {
      const entry = this.#waiting[0];
      if (!entry.isOver) {
        let promise;
        try {
          promise = entry.start(entry.control);
          if (promise === undefined) return;
          entry.resolve(promise);
        } catch (error) {
          entry.reject(error);
        }
      }
      this.#waiting.shift();
    }
  }

  /** The service closes: nothing that waits will start. */
  end() {
    for (const entry of this.#waiting.splice(0)) {
      entry.reject(makeError('TNK_ECLOSED', 'the service has been closed', { ran: 'no' }));
    }
  }
}

/** Run native[name](handle, ...args, options, control). */
function operate(owner, name, args, options) {
  const handle = handles.get(owner);
  try {
    return starters.get(owner).run(
      (control) => native[name](handle, ...args, options, control),
      options.signal
    );
  } catch (error) {
    return Promise.reject(error);
  }
}

/** The handle of an object, which only this module sees. */
const handles = new WeakMap();
const starters = new WeakMap();

function adopt(object, handle, starter) {
  handles.set(object, handle);
  if (starter !== undefined) starters.set(object, starter);
  keepHere(object);
  return object;
}

function handleOf(object, Class, what) {
  if (!(object instanceof Class) || !handles.has(object)) throw new TypeError(`${what}: expected a ${Class.name}`);
  return handles.get(object);
}

const SECRET = Symbol('made by tnk');

class Client {
  constructor(secret) {
    if (secret !== SECRET) throw new TypeError(`${new.target.name} has no public constructor; a Service makes it`);
  }

  close() {
    return native.close(handles.get(this));
  }

  [asyncDispose]() {
    return this.close();
  }
}

function client(Class, handle, starter) {
  return adopt(new Class(SECRET), handle, starter);
}

// ---- Sampling ----

const PARAMS = ['maxTokens', 'topK', 'seed', 'temperature', 'topP', 'stop', 'stopTokens'];
const SAMPLE = names(...PARAMS, 'numSamples', 'promptLogprobs', 'topkPromptLogprobs', 'topkSampleLogprobs',
  'promptLogprobsLastN');
const STREAM = names(...PARAMS, 'silenceMs');
const LOGPROBS = names('lastN');
const NOTHING = names();

function params(options) {
  const changed = {};
  if (typeof options.stop === 'string') changed.stop = [options.stop];
  if (options.stopTokens !== undefined) changed.stopTokens = ids(options.stopTokens, 'stopTokens');
  return changed.stop || changed.stopTokens ? { ...options, ...changed } : options;
}

/** The tokens of a stream, and its result. */
class SampleStream {
  #tokens = [];
  #wake;
  #stops = false;
  #isOver = false;
  #error;
  #cancel;

  constructor(start, cancel) {
    this.#cancel = cancel;
    /** The same as sample() resolves with. */
    this.result = start((token, index, logprob, text) => {
      if (this.#stops) return true;
      this.#tokens.push(logprob === logprob ? { token, index, logprob, text } : { token, index, text });
      this.#wake?.();
      return false;
    });
    this.result.then(
      () => this.#end(),
      (error) => this.#end(error)
    );
  }

  #end(error) {
    this.#isOver = true;
    this.#error = error;
    this.#wake?.();
  }

  /** End the stream. Its result rejects with an AbortError. */
  cancel() {
    this.#stops = true;
    this.#cancel();
  }

  async *[Symbol.asyncIterator]() {
    try {
      for (;;) {
        const tokens = this.#tokens;
        this.#tokens = [];
        yield* tokens;
        if (this.#tokens.length > 0) continue;
        if (this.#isOver) {
          if (this.#error !== undefined) throw this.#error;
          return;
        }
        await new Promise((resolve) => {
          this.#wake = resolve;
        });
        this.#wake = undefined;
      }
    } finally {
      if (!this.#isOver) this.cancel();
    }
  }
}

class SamplingClient extends Client {
  sample(prompt, options) {
    const known = params(check(options, SAMPLE, 'sample'));
    return operate(this, 'sample', [input(prompt)], known);
  }

  stream(prompt, options) {
    const known = params(check(options, STREAM, 'stream'));
    const from = input(prompt);
    const handle = handles.get(this);
    const own = new AbortController();
    const forward = () => own.abort(known.signal.reason);
    if (known.signal?.aborted) forward();
    known.signal?.addEventListener('abort', forward, { once: true });
    return new SampleStream(
      (onToken) =>
        starters
          .get(this)
          .run((control) => native.stream(handle, from, known, control, onToken), own.signal)
          .finally(() => known.signal?.removeEventListener('abort', forward)),
      () => own.abort()
    );
  }

  computeLogprobs(prompt, options) {
    return operate(this, 'computeLogprobs', [input(prompt)], check(options, LOGPROBS, 'computeLogprobs'));
  }

  async clone(options) {
    const handle = await operate(this, 'cloneSampling', [], check(options, NOTHING, 'clone'));
    return client(SamplingClient, handle, starters.get(this));
  }

  get id() {
    return native.samplingInfo(handles.get(this)).id;
  }

  get baseModel() {
    return native.samplingInfo(handles.get(this)).baseModel;
  }

  get totals() {
    return native.samplingInfo(handles.get(this)).totals;
  }

  /** A string from which another process makes a client of the same sampler. */
  export() {
    return native.samplingInfo(handles.get(this)).exported;
  }
}

// ---- Training ----

const PASS = names('lossFn', 'settings', 'lend');
const OPTIM = names('optimizer', 'learningRate', 'beta1', 'beta2', 'eps', 'weightDecay', 'gradClipNorm', 'json');
const SAVE = names('ttlSeconds', 'overwrite', 'userMetadata', 'recipients');
const SAMPLER = names('kind', 'recordStabilityInfo');
const LOAD = names('path', 'withOptimizer', 'weightsAccessToken');

class TrainingClient extends Client {
  forwardBackward(examples, options) {
    return operate(this, 'forwardBackward', [data(examples)], check(options, PASS, 'forwardBackward'));
  }

  forward(examples, options) {
    return operate(this, 'forward', [data(examples)], check(options, PASS, 'forward'));
  }

  optimStep(options) {
    return operate(this, 'optimStep', [], check(options, OPTIM, 'optimStep'));
  }

  saveState(name, options) {
    return operate(this, 'saveState', [name], check(options, SAVE, 'saveState'));
  }

  saveWeightsForSampler(name, options) {
    return operate(this, 'saveForSampler', [name], check(options, SAVE, 'saveWeightsForSampler'));
  }

  saveWeightsExternal(name, options) {
    return operate(this, 'saveExternal', [name], check(options, SAVE, 'saveWeightsExternal'));
  }

  async saveWeightsAndGetSampling(options) {
    const handle = await operate(this, 'sampler', [], check(options, SAMPLER, 'saveWeightsAndGetSampling'));
    return client(SamplingClient, handle, starters.get(this));
  }

  loadState(path, options) {
    return operate(this, 'loadState', [], { ...check(options, LOAD, 'loadState'), path });
  }

  ready(options) {
    return operate(this, 'ready', [], check(options, NOTHING, 'ready'));
  }

  unload(options) {
    return operate(this, 'unload', [], check(options, NOTHING, 'unload'));
  }

  goOn() {
    native.goOn(handles.get(this));
  }

  get info() {
    const { totals, ...info } = native.trainingInfo(handles.get(this));
    return info;
  }

  get totals() {
    return native.trainingInfo(handles.get(this)).totals;
  }
}

// ---- Records of the service ----

const LIST = names('limit', 'scope', 'offset', 'projectId');

/** Records of one kind, page by page. */
class Records {
  #service;
  #first;

  constructor(service, first) {
    this.#service = service;
    this.#first = first;
  }

  async *pages() {
    let page = await this.#first();
    for (;;) {
      const { next, ...rest } = page;
      yield rest;
      if (next === undefined) return;
      page = await operate(this.#service, 'restNext', [next], {});
    }
  }

  async *[Symbol.asyncIterator]() {
    for await (const page of this.pages()) yield* page.items;
  }

  async all() {
    const items = [];
    for await (const item of this) items.push(item);
    return items;
  }
}

class Rest {
  #service;

  constructor(service) {
    this.#service = service;
  }

  #list(kind, options) {
    const known = check(options, LIST, kind);
    return new Records(this.#service, () => operate(this.#service, 'restList', [kind], known));
  }

  #get(kind, id, options) {
    return operate(this.#service, 'restGet', [kind, id], check(options, NOTHING, kind));
  }

  runs(options) {
    return this.#list('runs', options);
  }

  checkpoints(options) {
    return this.#list('checkpoints', options);
  }

  sessions(options) {
    return this.#list('sessions', options);
  }

  runCheckpoints(runId, options) {
    return new Records(this.#service, () => this.#get('runCheckpoints', runId, options));
  }

  run(id, options) {
    return this.#get('run', id, options);
  }

  session(id, options) {
    return this.#get('session', id, options);
  }

  sampler(id, options) {
    return this.#get('sampler', id, options);
  }

  weights(path, options) {
    return this.#get('weights', path, options);
  }

  whoami(options) {
    return this.#get('whoami', '', options);
  }

  deleteCheckpoint(path, options) {
    return this.#get('delete', path, options);
  }

  publishCheckpoint(path, options) {
    return this.#get('publish', path, options);
  }

  unpublishCheckpoint(path, options) {
    return this.#get('unpublish', path, options);
  }

  setCheckpointTtl(path, seconds, options) {
    return operate(this.#service, 'restTtl', [path, seconds ?? 0], check(options, NOTHING, 'setCheckpointTtl'));
  }

  copyWeights(path, options) {
    const known = check(options, names('projectId', 'ttlSeconds', 'weightsAccessToken'), 'copyWeights');
    return operate(this.#service, 'restCopy', [], { ...known, path });
  }
}

// ---- Ledger ----

const LEDGER = names('run', 'everySteps', 'everySeconds', 'ttlSeconds', 'rolling');
const LEDGER_SAVE = names('name', 'cursor', 'batch', 'epoch', 'ttlSeconds', 'withSampler', 'isFinal', 'isRolling');

class Ledger extends Client {
  save(training, options) {
    const handle = handleOf(training, TrainingClient, 'save');
    return operate(this, 'ledgerSave', [handle], check(options, LEDGER_SAVE, 'save'));
  }

  isDue(training) {
    return native.ledgerDue(handles.get(this), handleOf(training, TrainingClient, 'isDue'));
  }

  async resume(options) {
    const handle = await operate(this, 'ledgerResume', [], check(options, names('withOptimizer'), 'resume'));
    return client(TrainingClient, handle, starters.get(this));
  }

  get entries() {
    return native.ledgerEntries(handles.get(this));
  }

  get last() {
    return native.ledgerLast(handles.get(this));
  }

  get resumed() {
    return native.ledgerResumed(handles.get(this));
  }
}

// ---- Text ----

const ENCODE = { addSpecial: 1, splitSpecial: 2, plain: 4, lossy: 8 };

function flags(options, known, what) {
  let sum = 0;
  for (const name in options) {
    if (!(name in known)) throw new TypeError(`${what}: unknown option "${name}"`);
    if (options[name]) sum |= known[name];
  }
  return sum;
}

class Tokenizer {
  constructor(secret, handle) {
    if (secret !== SECRET) throw new TypeError('use Tokenizer.load()');
    adopt(this, handle);
  }

  static load(path) {
    return new Tokenizer(SECRET, native.tokenizerLoad(path));
  }

  static fromBytes(bytes) {
    return new Tokenizer(SECRET, native.tokenizerLoad(undefined, bytes));
  }

  encode(text, options) {
    return native.encode(handles.get(this), text, flags(options, ENCODE, 'encode'));
  }

  decode(tokens, options) {
    return native.decode(handles.get(this), ids(tokens, 'tokens'), flags(options, { skipSpecial: 1 }, 'decode'));
  }

  tokenId(token) {
    return native.tokenId(handles.get(this), token);
  }

  get vocabSize() {
    return native.tokenizerInfo(handles.get(this)).vocabSize;
  }

  get bos() {
    return native.tokenizerInfo(handles.get(this)).bos;
  }

  get eos() {
    return native.tokenizerInfo(handles.get(this)).eos;
  }
}

function tokenizerOf(tokenizer) {
  return tokenizer == null ? undefined : handleOf(tokenizer, Tokenizer, 'tokenizer');
}

const CHAT = new Set(['shape', 'variables', 'generationPrompt', 'byParts', 'trainOn', 'roles', 'textRoles']);
const TEMPLATE = new Set(['config', 'name']);

/** Values of variables are JSON for the library. */
function variables(options) {
  if (options.variables === undefined) return options;
  const values = {};
  for (const [name, value] of Object.entries(options.variables)) values[name] = JSON.stringify(value);
  return { ...options, variables: values };
}

class ChatTemplate {
  constructor(secret, handle) {
    if (secret !== SECRET) throw new TypeError('use ChatTemplate.load() or ChatTemplate.fromText()');
    adopt(this, handle);
  }

  static load(path, options) {
    return new ChatTemplate(SECRET, native.templateLoad(path, undefined, check(options, TEMPLATE, 'load')));
  }

  static fromText(text, options) {
    return new ChatTemplate(SECRET, native.templateLoad(undefined, text, check(options, TEMPLATE, 'fromText')));
  }

  get stops() {
    return native.templateStops(handles.get(this));
  }

  render(messages, options) {
    return native.chatText(handles.get(this), JSON.stringify(messages), variables(check(options, CHAT, 'render')));
  }

  encode(tokenizer, messages, options) {
    const known = variables(check(options, CHAT, 'encode'));
    return native.chatEncode(handles.get(this), tokenizerOf(tokenizer), JSON.stringify(messages), known);
  }
}

class ChatParser {
  constructor(tokenizer, options) {
    const known = check(options, new Set(['family', 'stops', 'prompt']), 'ChatParser');
    adopt(this, native.parserOpen(tokenizerOf(tokenizer), ids(known.prompt ?? [], 'prompt'), known));
  }

  feed(tokens) {
    return native.parserFeed(handles.get(this), ids(tokens, 'tokens'));
  }

  finish() {
    const { deltas, json } = native.parserFinish(handles.get(this));
    return { deltas, message: JSON.parse(json) };
  }
}

function findRenderer(name) {
  const found = native.findRenderer(name);
  if (found !== undefined) {
    for (const key of Object.keys(found.variables)) found.variables[key] = JSON.parse(found.variables[key]);
  }
  return found;
}

// ---- Gateway ----

const GATEWAY = new Set(['tokenizer', 'template', 'host', 'key', 'model', 'record', 'variables', 'family', 'port',
  'maxRequests', 'maxTokens', 'maxMemory', 'maxBody', 'maxConnections', 'keepAliveMs', 'tlsCert', 'tlsKey',
  'recordSync', 'keepControlTokens', 'adminKey', 'usdPrompt', 'usdSampled', 'usdCached', 'formats', 'maxAttempts',
  'recordCaFile', 'recordCertFile', 'recordKeyFile', 'worker', 'repeatMs', 'sharePort',
  'keepUnexported', 'keepSessions', 'keepAgeMs', 'clientCaFile', 'clientCrlFile', 'clientOptional']);
const KEY = new Set(['session', 'expiresInSeconds', 'maxRequests', 'maxTokens', 'maxTurns', 'maxUsd', 'maxBody',
  'maxConcurrent', 'maxPerMinute', 'mayReward', 'certificate']);
const WEIGHTS = names('modelPath', 'baseModel', 'exported', 'recordStabilityInfo');

class Gateway extends Client {
  get address() {
    return native.gatewayAddress(handles.get(this));
  }

  get stats() {
    return native.gatewayStats(handles.get(this));
  }

  use(weights) {
    return operate(this, 'gatewayUse', [], check(weights, WEIGHTS, 'use'));
  }

  reward(reward, options) {
    native.gatewayReward(handles.get(this), reward, check(options, new Set(['session', 'id', 'choice']), 'reward'));
  }

  createKey(options) {
    return native.gatewayKeyCreate(handles.get(this), check(options, KEY, 'createKey'));
  }

  rotateKey(id) {
    return native.gatewayKeyRotate(handles.get(this), id);
  }

  revokeKey(id) {
    native.gatewayKeyRevoke(handles.get(this), id);
  }

  keys() {
    return native.gatewayKeys(handles.get(this)).map((line) => JSON.parse(line));
  }

  datums(options) {
    const { session, rewarded } = check(options, new Set(['session', 'rewarded']), 'datums');
    return native.gatewayDatums(handles.get(this), session, rewarded).map((line) => JSON.parse(line));
  }

  leave() {
    native.gatewayLeave(handles.get(this));
  }

  drain() {
    native.gatewayDrain(handles.get(this));
  }
}

// ---- Service ----

const SERVICE = new Set(['apiKey', 'credentialCmd', 'baseURL', 'projectId', 'tags', 'userMetadata', 'displayName',
  'headers', 'caFile', 'proxy', 'noProxy', 'proxyHeaders', 'connectTimeoutMs', 'timeoutMs', 'pollTimeoutMs',
  'maxRetries', 'maxPolls', 'maxPending', 'limiterScope', 'retrySamples', 'keepLoopAlive', 'certFile', 'keyFile',
  'httpVersion', 'maxHttp2Connections', 'maxBillingPauseMs', 'patienceMs', 'traceparent', 'dumpFile', 'recovery',
  'recoveryAttempts', 'recoveryDelayMs', 'recoveryMaxDelayMs', 'recoveryPollMs', 'onQueueState', 'onRecovery',
  'onLog', 'logLevel']);
const LORA = names('baseModel', 'rank', 'optimizer', 'seed', 'trainMlp', 'trainAttn', 'trainUnembed', 'optimizerJson',
  'userMetadata');
const RESTORE = names('path', 'baseModel', 'withOptimizer', 'classic', 'weightsAccessToken', 'optimizer',
  'optimizerJson', 'userMetadata');
const BUDGET = new Set(['maxTokens', 'maxUsd', 'pricesFile']);

class Service {
  #starter = new Starter();
  #gateways = new Set();
  #rest = new Rest(this);
  #closing;

  constructor(options) {
    const known = check(options, SERVICE, 'Service');
    const starter = this.#starter;
    const { onQueueState, onRecovery, onLog } = known;
    // It must not refer to this service, which could not be collected then.
    const emit = (event, value) => {
      if (event === 'room') starter.onRoom();
      else if (event === 'queueState') onQueueState?.(value);
      else if (event === 'recovery') onRecovery?.(value);
      else if (event === 'log') onLog?.(value);
    };
    adopt(this, native.serviceOpen(known, emit), starter);
  }

  async createLora(options) {
    const handle = await operate(this, 'createLora', [], check(options, LORA, 'createLora'));
    return client(TrainingClient, handle, this.#starter);
  }

  async restore(options) {
    const handle = await operate(this, 'restore', [], check(options, RESTORE, 'restore'));
    return client(TrainingClient, handle, this.#starter);
  }

  async createSampling(options) {
    const handle = await operate(this, 'createSampling', [], check(options, WEIGHTS, 'createSampling'));
    return client(SamplingClient, handle, this.#starter);
  }

  async openLedger(directory, options) {
    const handle = await operate(this, 'ledgerOpen', [directory], check(options, LEDGER, 'openLedger'));
    return client(Ledger, handle, this.#starter);
  }

  openGateway(options) {
    const { tokenizer, template, ...rest } = check(options, GATEWAY, 'openGateway');
    const chosen = template == null ? undefined : handleOf(template, ChatTemplate, 'template');
    const handle = native.gatewayOpen(handles.get(this), tokenizerOf(tokenizer), chosen, variables(rest));
    const gateway = client(Gateway, handle, this.#starter);
    this.#gateways.add(gateway);
    return gateway;
  }

  models(options) {
    return operate(this, 'models', [], check(options, NOTHING, 'models'));
  }

  health(options) {
    return operate(this, 'health', [], check(options, NOTHING, 'health'));
  }

  get rest() {
    return this.#rest;
  }

  get sessionId() {
    return native.sessionId(handles.get(this));
  }

  get stats() {
    return native.stats(handles.get(this));
  }

  get totals() {
    return native.totals(handles.get(this));
  }

  setBudget(budget) {
    native.setBudget(handles.get(this), check(budget, BUDGET, 'setBudget'));
  }

  dump() {
    return JSON.parse(native.dump(handles.get(this)));
  }

  close() {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close() {
    // A gateway must end before its service.
    await Promise.all([...this.#gateways].map((gateway) => gateway.close()));
    this.#starter.end();
    await native.close(handles.get(this));
  }

  [asyncDispose]() {
    return this.close();
  }
}

module.exports = {
  Service,
  TrainingClient,
  SamplingClient,
  SampleStream,
  Ledger,
  Gateway,
  Tokenizer,
  ChatTemplate,
  ChatParser,
  findRenderer,
  ...classes,
  counts: native.counts,
  version: native.version,
  libuvVersion: native.libuv,
  http2Version: native.http2,
};
