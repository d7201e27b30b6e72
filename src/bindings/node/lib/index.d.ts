// SPDX-License-Identifier: MIT

/**
 * The Tinker training API for Node, on Node's own event loop.
 *
 * Methods that send a request return a promise. Typed arrays of arguments are
 * read during the call. Every object belongs to the thread that made it.
 */

declare global {
  interface SymbolConstructor {
    readonly asyncDispose: unique symbol;
  }
}

/** Options of each operation. */
export interface OperationOptions {
  /** Cancels the operation, whose promise rejects with an {@link AbortError}. */
  signal?: AbortSignal;
  /** Milliseconds after which the promise rejects with a {@link TimeoutError}. */
  timeout?: number;
}

/** Token ids. An Int32Array is used without a conversion. */
export type Tokens = Int32Array | readonly number[];

/** A part of a model input. */
export type Chunk =
  | { tokens: Tokens }
  /** The bytes of an image file. */
  | { image: Uint8Array; format: 'png' | 'jpeg'; expectedTokens?: number }
  /** An image that the service has stored. */
  | { location: string; format?: 'png' | 'jpeg'; expectedTokens?: number }
  /** Audio in the service's container format. */
  | { dmel: Uint8Array };

/** Token ids, or chunks. */
export type ModelInput = Tokens | readonly Chunk[];

/** The elements of a tensor. Integers are sent as 64 bits, others as 32 bits. */
export type TensorArray = Float32Array | Float64Array | Int32Array | BigInt64Array;
/** A vector, or a tensor with a shape. Plain arrays are copied. */
export type Tensor = TensorArray | readonly number[] | { data: TensorArray; shape?: readonly number[] };

/** One training example. */
export interface Datum {
  input: ModelInput;
  /** Loss input "target_tokens": one id for each token of the input. */
  targets?: Tensor;
  /** Loss input "weights". */
  weights?: Tensor;
  /** Further inputs of the loss, by name. */
  lossInputs?: Readonly<Record<string, Tensor>>;
}

/** Result of a pass. Large arrays are views of the library's memory. */
export interface Pass {
  /** Sum of the loss. */
  loss: number;
  metrics: Record<string, number>;
  outputType?: string;
  /** Outputs of the loss for each datum, such as `logprobs`. */
  outputs: Record<string, Float32Array | BigInt64Array>[];
}

export interface PassOptions extends OperationOptions {
  /** Name of the loss function. Default: "cross_entropy". */
  lossFn?: string;
  /** Settings of the loss function. */
  settings?: Readonly<Record<string, number | string>>;
  /**
   * Read the typed arrays while they are sent, instead of copying them. They
   * must not be changed, transferred or resized until the promise has settled.
   */
  lend?: boolean;
}

export interface OptimOptions extends OperationOptions {
  optimizer?: 'adamw' | 'dimuon' | 'raw';
  learningRate?: number;
  beta1?: number;
  beta2?: number;
  eps?: number;
  weightDecay?: number;
  gradClipNorm?: number;
  /** For "raw": the parameters as JSON. */
  json?: string;
}

export interface SaveOptions extends OperationOptions {
  /** Lifetime of the checkpoint. Default: until it is deleted. */
  ttlSeconds?: number;
  overwrite?: boolean;
  userMetadata?: Readonly<Record<string, string>>;
  /** Public keys for which external weights are encrypted. */
  recipients?: readonly string[];
}

export interface Saved {
  /** The path of the checkpoint, "tinker://...". */
  path?: string;
  /** Optimizer steps in the weights. */
  steps: number;
  /** Passes with gradients before it. */
  passes: number;
}

export interface SamplingParams {
  /** Maximum number of tokens. */
  maxTokens?: number;
  topK?: number;
  topP?: number;
  seed?: number;
  temperature?: number;
  /** Texts that end the sample. */
  stop?: string | readonly string[];
  /** Tokens that end the sample. */
  stopTokens?: Tokens;
}

export interface SampleOptions extends SamplingParams, OperationOptions {
  /** Number of sequences. Default: 1. */
  numSamples?: number;
  /** Also compute the logprobs of the prompt. */
  promptLogprobs?: boolean;
  /** Only for the last tokens of the prompt. */
  promptLogprobsLastN?: number;
  topkPromptLogprobs?: number;
  topkSampleLogprobs?: number;
}

export interface StreamOptions extends SamplingParams, OperationOptions {
  /** Maximum time without a byte. Default: ten minutes. */
  silenceMs?: number;
}

/** The most likely tokens: `k` for each position. */
export interface TopK {
  k: number;
  tokens: Int32Array;
  logprobs: Float32Array;
}

export interface Sequence {
  tokens: Int32Array;
  logprobs?: Float32Array;
  stopReason: 'stop' | 'length';
  id?: string;
  topk?: TopK;
}

export interface Samples {
  sequences: Sequence[];
  /** One for each token of the prompt; NaN if it was not computed. */
  promptLogprobs?: Float32Array;
  promptTopk?: TopK;
  cacheHitTokens?: number;
}

export interface StreamToken {
  token: number;
  /** Position in the sequence. */
  index: number;
  logprob?: number;
  /** Empty if the token ends inside a character. */
  text?: string;
}

/** Tokens while they are sampled. Leaving the loop ends the stream. */
export class SampleStream implements AsyncIterable<StreamToken> {
  private constructor();
  /** All tokens. It rejects if the stream fails or is canceled. */
  readonly result: Promise<Samples>;
  cancel(): void;
  [Symbol.asyncIterator](): AsyncIterator<StreamToken>;
}

/** Counts of tokens and money. */
export interface Totals {
  promptTokens: number;
  cachedTokens: number;
  sampledTokens: number;
  trainedTokens: number;
  /** Tokens of requests whose response was not received. */
  doubtfulTokens: number;
  requests: number;
  bytesSent: number;
  bytesReceived: number;
  unpricedTokens: number;
  costUsd: number;
  doubtfulUsd: number;
  reservedUsd: number;
}

/** Weights that can be sampled from. */
export class SamplingClient {
  private constructor();
  readonly id: string;
  readonly baseModel?: string;
  readonly totals: Totals;
  sample(prompt: ModelInput, options?: SampleOptions): Promise<Samples>;
  /** Sample one sequence, token by token. Not every server offers it. */
  stream(prompt: ModelInput, options?: StreamOptions): SampleStream;
  /** The logprob of each token of the prompt; NaN for the first one. */
  computeLogprobs(prompt: ModelInput, options?: OperationOptions & { lastN?: number }): Promise<Float32Array>;
  clone(options?: OperationOptions): Promise<SamplingClient>;
  /** A string for {@link Service.createSampling} in another process or thread. */
  export(): string;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface TrainingInfo {
  id: string;
  baseModel: string;
  arch?: string;
  tokenizerId?: string;
  optimizer?: string;
  loraRank: number;
}

/** A model in training. Its operations run in the order of the calls. */
export class TrainingClient {
  private constructor();
  readonly info: TrainingInfo;
  readonly totals: Totals;
  forwardBackward(data: readonly Datum[], options?: PassOptions): Promise<Pass>;
  /** A pass without gradients. */
  forward(data: readonly Datum[], options?: PassOptions): Promise<Pass>;
  /** Resolves with metrics of the optimizer. */
  optimStep(options?: OptimOptions): Promise<Record<string, number>>;
  /** Save weights and optimizer state. */
  saveState(name: string, options?: SaveOptions): Promise<Saved>;
  saveWeightsForSampler(name: string, options?: SaveOptions): Promise<Saved>;
  saveWeightsExternal(name: string, options?: SaveOptions): Promise<Saved>;
  /** A client that samples from the current weights. */
  saveWeightsAndGetSampling(
    options?: OperationOptions & { kind?: 'snapshot' | 'inflight'; recordStabilityInfo?: boolean }
  ): Promise<SamplingClient>;
  loadState(
    path: string,
    options?: OperationOptions & { withOptimizer?: boolean; weightsAccessToken?: string }
  ): Promise<void>;
  /** Waits until a lost model has been restored. */
  ready(options?: OperationOptions): Promise<Saved>;
  /** Accept the weights as they are, after the server has lost some. */
  goOn(): void;
  unload(options?: OperationOptions): Promise<void>;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface Checkpoint {
  path: string;
  id: string;
  type: string;
  kind: 'other' | 'training' | 'sampler' | 'external';
  isPublic: boolean;
  time?: Date;
  expires?: Date;
  sizeBytes?: number;
  userMetadata: Record<string, string>;
}

export interface Run {
  id: string;
  baseModel: string;
  owner: string;
  isLora: boolean;
  isCorrupted: boolean;
  loraRank?: number;
  lastRequest?: Date;
  lastCheckpoint?: Checkpoint;
  lastSamplerCheckpoint?: Checkpoint;
  userMetadata: Record<string, string>;
}

/** A session; a list of sessions has only the ids. */
export interface Session {
  id: string;
  displayName?: string;
  owner?: string;
  projectId?: string;
  created?: Date;
  status?: string;
  checkpoints?: number;
  checkpointBytes?: number;
  userMetadata: Record<string, string>;
  runIds: string[];
  samplerIds: string[];
}

export interface WeightsInfo {
  baseModel: string;
  isLora: boolean;
  loraRank?: number;
  trainMlp?: boolean;
  trainAttn?: boolean;
  trainUnembed?: boolean;
  optimizerJson?: string;
}

export interface ListOptions extends OperationOptions {
  /** Records in one page. */
  limit?: number;
  offset?: number;
  scope?: 'owned' | 'accessible';
  projectId?: string;
}

/** Records of one kind. Pages are requested as they are read. */
export interface Records<T> extends AsyncIterable<T> {
  pages(): AsyncGenerator<{ items: T[]; total?: number }>;
  all(): Promise<T[]>;
}

/** Records of the service. */
export interface Rest {
  runs(options?: ListOptions): Records<Run>;
  checkpoints(options?: Omit<ListOptions, 'scope' | 'projectId'>): Records<Checkpoint>;
  sessions(options?: Omit<ListOptions, 'projectId'>): Records<Session>;
  runCheckpoints(runId: string, options?: OperationOptions): Records<Checkpoint>;
  run(id: string, options?: OperationOptions): Promise<Run>;
  session(id: string, options?: OperationOptions): Promise<Session>;
  sampler(id: string, options?: OperationOptions): Promise<{ id: string; baseModel: string; modelPath?: string }>;
  weights(path: string, options?: OperationOptions): Promise<WeightsInfo>;
  whoami(options?: OperationOptions): Promise<{ userUrn: string; orgUrn: string; email?: string }>;
  deleteCheckpoint(path: string, options?: OperationOptions): Promise<void>;
  publishCheckpoint(path: string, options?: OperationOptions): Promise<void>;
  unpublishCheckpoint(path: string, options?: OperationOptions): Promise<void>;
  /** null keeps the checkpoint forever. */
  setCheckpointTtl(path: string, seconds: number | null, options?: OperationOptions): Promise<void>;
  /** Resolves with the path of the copy. */
  copyWeights(
    path: string,
    options?: OperationOptions & { projectId?: string; ttlSeconds?: number; weightsAccessToken?: string }
  ): Promise<string>;
}

export interface LedgerOptions extends OperationOptions {
  /** Name of the run, to find it if the directory is lost. */
  run?: string;
  /** A save is due after so many steps. */
  everySteps?: number;
  everySeconds?: number;
  ttlSeconds?: number;
  /** Number of rolling saves to keep. */
  rolling?: number;
}

export interface LedgerEntry {
  name: string;
  statePath?: string;
  samplerPath?: string;
  /** As passed to {@link Ledger.save}. */
  cursor?: string;
  json?: string;
  batch?: number;
  epoch?: number;
  steps: number;
  passes: number;
  time?: Date;
  expires?: Date;
  isFinal: boolean;
  isRolling: boolean;
  isDeleted: boolean;
  used?: Totals;
}

export interface LedgerSaveOptions extends OperationOptions {
  name?: string;
  /** Data that the program needs to resume; at most 2048 bytes. */
  cursor?: string;
  batch?: number;
  epoch?: number;
  ttlSeconds?: number;
  withSampler?: boolean;
  isFinal?: boolean;
  isRolling?: boolean;
}

/** The file that records the saves of a run. */
export class Ledger {
  private constructor();
  readonly entries: LedgerEntry[];
  /** The save from which the run would resume. */
  readonly last: LedgerEntry | undefined;
  /** The save from which {@link Ledger.resume} has resumed. */
  readonly resumed: LedgerEntry | undefined;
  save(training: TrainingClient, options?: LedgerSaveOptions): Promise<LedgerEntry>;
  isDue(training: TrainingClient): boolean;
  resume(options?: OperationOptions & { withOptimizer?: boolean }): Promise<TrainingClient>;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Text to token ids and back. All functions are synchronous. */
export class Tokenizer {
  private constructor();
  /** From a folder, or a tokenizer.json, or a file of tiktoken. Blocks. */
  static load(path: string): Tokenizer;
  static fromBytes(bytes: Uint8Array): Tokenizer;
  encode(
    text: string,
    options?: { addSpecial?: boolean; splitSpecial?: boolean; plain?: boolean; lossy?: boolean }
  ): Int32Array;
  decode(tokens: Tokens, options?: { skipSpecial?: boolean }): string;
  tokenId(token: string): number | undefined;
  readonly vocabSize: number;
  readonly bos: number | undefined;
  readonly eos: number | undefined;
}

export type Family =
  | 'plain' | 'think' | 'hermes' | 'xml' | 'deepseek' | 'dsml' | 'kimi' | 'glm' | 'harmony' | 'mistral' | 'llama'
  | 'xtml';

export interface ChatOptions {
  /** The format of the messages. Default: "openai". */
  shape?: 'template' | 'openai' | 'responses' | 'anthropic';
  /** Variables of the template. */
  variables?: Readonly<Record<string, unknown>>;
  generationPrompt?: boolean;
  byParts?: boolean;
  /** The tokens that have a weight. Default: "nothing". */
  trainOn?: 'nothing' | 'last-answer' | 'all-answers' | 'roles' | 'everything';
  roles?: readonly string[];
  /** Roles whose messages cannot contain control tokens. */
  textRoles?: readonly string[];
}

/** Messages, or a request body with messages and tools. */
export type Messages = readonly object[] | object;

/** A chat template of a model. */
export class ChatTemplate {
  private constructor();
  static load(path: string, options?: { config?: string; name?: string }): ChatTemplate;
  /** undefined is the plain template of roles. */
  static fromText(text: string | undefined, options?: { config?: string; name?: string }): ChatTemplate;
  /** Texts that end an answer. */
  readonly stops: string[];
  render(messages: Messages, options?: ChatOptions): string;
  /** Without a tokenizer each byte is a token. */
  encode(
    tokenizer: Tokenizer | null | undefined,
    messages: Messages,
    options?: ChatOptions
  ): { tokens: Int32Array; weights: Float32Array; messages: Int32Array };
}

export interface ChatDelta {
  kind: 'thinking' | 'content' | 'call-begin' | 'arguments' | 'call-end' | 'unparsed';
  /** Index of the tool call. */
  call: number;
  text?: string;
  name?: string;
  id?: string;
}

/** Sampled tokens to a message. */
export class ChatParser {
  constructor(
    tokenizer: Tokenizer | null | undefined,
    options?: { family?: Family; prompt?: Tokens; stops?: readonly string[] }
  );
  feed(tokens: Tokens): ChatDelta[];
  finish(): { deltas: ChatDelta[]; message: Record<string, unknown> };
}

/** The settings for a renderer of Tinker's cookbook, such as "qwen3". */
export function findRenderer(
  name: string
): { name: string; family: Family; variables: Record<string, unknown>; stops: string[]; note?: string } | undefined;

export interface GatewayOptions {
  /** Without one each byte is a token, as in tnk/byte-lm. */
  tokenizer?: Tokenizer;
  template?: ChatTemplate;
  host?: string;
  /** Default: a free port. */
  port?: number;
  /** The key of agents. Without it every local client is served. */
  key?: string;
  /** The key for rewards, weights and the record. */
  adminKey?: string;
  model?: string;
  /** File of the record. Default: memory. */
  record?: string;
  variables?: Readonly<Record<string, unknown>>;
  family?: Family;
  maxRequests?: number;
  maxTokens?: number;
  maxMemory?: number;
  maxBody?: number;
  maxConnections?: number;
  keepAliveMs?: number;
  tlsCert?: string;
  tlsKey?: string;
  recordSync?: boolean;
  keepControlTokens?: boolean;
  usdPrompt?: number;
  usdSampled?: number;
  usdCached?: number;
  formats?: 'hint' | 'retry' | 'refuse';
  maxAttempts?: number;
  /** For a record at valkeys://: trusted certificates, and a client certificate. */
  recordCaFile?: string;
  recordCertFile?: string;
  recordKeyFile?: string;
  /** The label of this process in the metrics. */
  worker?: string;
  repeatMs?: number;
  /** Lets other processes listen on the same port. */
  sharePort?: boolean;
  /** For a shared record: which sessions stay in it. */
  keepUnexported?: boolean;
  keepSessions?: number;
  keepAgeMs?: number;
  /** Authorities of the certificates of clients, revocation lists of them, and whether
   * clients without a certificate are served too. */
  clientCaFile?: string;
  clientCrlFile?: string;
  clientOptional?: boolean;
}

export interface WeightsOptions extends OperationOptions {
  /** A checkpoint, "tinker://...". */
  modelPath?: string;
  baseModel?: string;
  /** From {@link SamplingClient.export}. */
  exported?: string;
  recordStabilityInfo?: boolean;
}

export interface GatewayKeyOptions {
  session?: string;
  expiresInSeconds?: number;
  maxRequests?: number;
  maxTokens?: number;
  maxTurns?: number;
  maxUsd?: number;
  maxBody?: number;
  maxConcurrent?: number;
  maxPerMinute?: number;
  mayReward?: boolean;
  /** Of the client that may use the key: "sha256:HEX", "DNS:NAME", "URI:TEXT" or "CN:TEXT". */
  certificate?: string;
}

/** A server of chat APIs for agents, which records every sampled token. */
export class Gateway {
  private constructor();
  /** "http://127.0.0.1:PORT". OpenAI clients need "/v1" behind it. */
  readonly address: string;
  readonly stats: Record<
    | 'requests' | 'answered' | 'failed' | 'gone' | 'tokens' | 'continued' | 'underWay' | 'connections' | 'version'
    | 'oldSamplers',
    number
  >;
  /** Sample new requests from these weights. */
  use(weights: WeightsOptions): Promise<void>;
  reward(reward: number, options?: { session?: string; id?: string; choice?: number }): void;
  createKey(options?: GatewayKeyOptions): { id: string; key: string };
  rotateKey(id: string): string;
  revokeKey(id: string): void;
  keys(): Record<string, unknown>[];
  /** The record as training examples. Blocks while it is read. */
  datums(options?: { session?: string; rewarded?: boolean }): Record<string, unknown>[];
  /** Tell load balancers that this gateway will end. */
  leave(): void;
  /** Accept no more connections. */
  drain(): void;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export type LogLevel = 'error' | 'warn' | 'info' | 'debug' | 'trace';

export interface ServiceOptions {
  /** Default: TINKER_API_KEY, or the stored credentials. */
  apiKey?: string;
  /** A command that prints a credential. */
  credentialCmd?: string;
  /** Default: TINKER_BASE_URL, or the hosted service. */
  baseURL?: string;
  projectId?: string;
  tags?: string;
  userMetadata?: Readonly<Record<string, string>>;
  displayName?: string;
  headers?: Readonly<Record<string, string>>;
  caFile?: string;
  certFile?: string;
  keyFile?: string;
  proxy?: string;
  noProxy?: string;
  proxyHeaders?: Readonly<Record<string, string>>;
  connectTimeoutMs?: number;
  /** Idle timeout of one request. */
  timeoutMs?: number;
  pollTimeoutMs?: number;
  /** Infinity disables retries. */
  maxRetries?: number;
  maxPolls?: number;
  /** Operations in progress. Further calls wait until one has ended. */
  maxPending?: number;
  limiterScope?: 'shared' | 'private';
  retrySamples?: boolean;
  keepLoopAlive?: boolean;
  httpVersion?: 'auto' | '1.1' | '2' | '2-prior-knowledge';
  maxHttp2Connections?: number;
  maxBillingPauseMs?: number;
  /** The time for which a failed request is retried. Infinity means without limit. */
  patienceMs?: number;
  traceparent?: string;
  dumpFile?: string;
  /** Restore models that the server has lost. */
  recovery?: boolean;
  recoveryAttempts?: number;
  recoveryDelayMs?: number;
  recoveryMaxDelayMs?: number;
  recoveryPollMs?: number;
  onQueueState?: (event: { client: string; state: string; reason?: string }) => void;
  onRecovery?: (event: {
    state: 'detected' | 'started' | 'completed' | 'failed' | 'exhausted';
    attempt: number;
    client: string;
    path?: string;
    steps: number;
    retryMs: number;
    reason?: string;
  }) => void;
  onLog?: (line: { level: LogLevel; subject: string; message: string }) => void;
  /** Default: "warn". */
  logLevel?: LogLevel;
}

export interface LoraOptions extends OperationOptions {
  baseModel: string;
  rank?: number;
  optimizer?: 'adamw' | 'dimuon' | 'raw';
  optimizerJson?: string;
  seed?: number;
  trainMlp?: boolean;
  trainAttn?: boolean;
  trainUnembed?: boolean;
  userMetadata?: Readonly<Record<string, string>>;
}

export interface RestoreOptions extends OperationOptions {
  /** A training state, "tinker://...". */
  path: string;
  baseModel?: string;
  withOptimizer?: boolean;
  classic?: boolean;
  weightsAccessToken?: string;
  optimizer?: 'adamw' | 'dimuon' | 'raw';
  optimizerJson?: string;
  userMetadata?: Readonly<Record<string, string>>;
}

/** A connection to one service with one credential. */
export class Service {
  constructor(options?: ServiceOptions);
  readonly rest: Rest;
  /** Undefined until the session exists. */
  readonly sessionId: string | undefined;
  readonly stats: Record<
    | 'requests' | 'retries' | 'bytesSent' | 'bytesReceived' | 'pending' | 'connections' | 'polls' | 'resubmits'
    | 'stalls' | 'loopLagMs' | 'maxLoopLagMs',
    number
  >;
  readonly totals: Totals;
  createLora(options: LoraOptions): Promise<TrainingClient>;
  restore(options: RestoreOptions): Promise<TrainingClient>;
  createSampling(options: WeightsOptions): Promise<SamplingClient>;
  openLedger(directory: string, options?: LedgerOptions): Promise<Ledger>;
  /** Open a gateway and listen. It serves until it is closed. */
  openGateway(options?: GatewayOptions): Gateway;
  models(
    options?: OperationOptions
  ): Promise<{ name: string; maxContextLength?: number; trainable?: boolean; sampleable?: boolean }[]>;
  health(options?: OperationOptions): Promise<void>;
  setBudget(budget: { maxTokens?: number; maxUsd?: number; pricesFile?: string }): void;
  /** The state of everything, for debugging. */
  dump(): Record<string, unknown>;
  /** Pending promises reject with a {@link ClosedError}. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** An error of the library or of the service. */
export class TnkError extends Error {
  /** Such as "TNK_ERATE". */
  readonly code: string;
  /** HTTP status. */
  readonly status?: number;
  /** Whether the service ran the operation. */
  readonly ran?: 'unknown' | 'no' | 'yes' | 'partly';
  readonly category?: 'unknown' | 'server' | 'user';
  /** The number of times that the request was sent. */
  readonly attempts?: number;
  readonly retryAfterMs?: number;
  readonly requestId?: string;
  readonly serverMessage?: string;
  /** Code of libuv or mbedTLS. */
  readonly errno?: number;
  readonly cause?: unknown;
}
export class AbortError extends TnkError {}
export class AuthenticationError extends TnkError {}
export class BillingError extends TnkError {}
export class BudgetError extends TnkError {}
export class ClosedError extends TnkError {}
export class ConflictError extends TnkError {}
export class ConnectionError extends TnkError {}
export class TimeoutError extends ConnectionError {}
export class NotFoundError extends TnkError {}
export class RateLimitError extends TnkError {}
export class ServerError extends TnkError {}
export class SessionError extends TnkError {}

/** Numbers of objects in this thread, to look for leaks. */
export function counts(): Record<
  'objects' | 'promises' | 'streams' | 'controls' | 'lent' | 'buffers' | 'services' | 'gateways',
  number
>;

/** Version of this library. */
export const version: string;
/** Version of Node's libuv. */
export const libuvVersion: string;
export const http2Version: string | undefined;
