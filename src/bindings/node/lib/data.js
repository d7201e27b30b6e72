// SPDX-License-Identifier: MIT
'use strict';
// Checks and conversions of arguments.

/** Reject an option that does not exist, which is usually a typing error. */
function check(options, known, what) {
  if (options === undefined) return {};
  if (options === null || typeof options !== 'object') {
    throw new TypeError(`${what}: expected an object of options`);
  }
  for (const name in options) {
    if (!known.has(name)) throw new TypeError(`${what}: unknown option "${name}"`);
  }
  return options;
}

/** Names that each operation has. */
const names = (...own) => new Set(['signal', 'timeout', ...own]);

function isTyped(value) {
  return ArrayBuffer.isView(value) && !(value instanceof DataView);
}

function ids(values, what) {
  if (values instanceof Int32Array) return values;
  if (typeof values === 'string') throw new TypeError(`${what}: expected token ids; encode text with a tokenizer`);
  if (values == null || typeof values[Symbol.iterator] !== 'function') {
    throw new TypeError(`${what}: expected an Int32Array or an array of token ids`);
  }
  const array = Array.from(values, Number);
  const out = Int32Array.from(array);
  for (let i = 0; i < array.length; i++) {
    if (out[i] !== array[i]) throw new TypeError(`${what}: ${array[i]} is not a token id`);
  }
  return out;
}

/** A model input: token ids, or chunks. */
function input(value, what = 'prompt') {
  if (value instanceof Int32Array) return value;
  if (Array.isArray(value) && value.length > 0 && typeof value[0] === 'object') {
    return value.map((chunk) => (chunk.tokens === undefined ? chunk : { tokens: ids(chunk.tokens, what) }));
  }
  return ids(value, what);
}

function tensor(value, name) {
  if (isTyped(value)) return [value, undefined];
  if (Array.isArray(value)) {
    if (value.some((item) => typeof item !== 'number')) throw new TypeError(`${name}: expected numbers`);
    const whole = name === 'target_tokens';
    return [whole ? ids(value, name) : Float64Array.from(value), undefined];
  }
  if (value !== null && typeof value === 'object' && isTyped(value.data)) return [value.data, value.shape];
  throw new TypeError(`${name}: expected a typed array, an array of numbers, or {data, shape}`);
}

/** A datum as the addon reads it: [input, [name, array, shape], ...]. */
function datum(value, index) {
  if (value === null || typeof value !== 'object') throw new TypeError(`datum ${index}: expected an object`);
  const list = [input(value.input, `datum ${index}: input`)];
  const named = { ...value.lossInputs };
  if (value.targets !== undefined) named.target_tokens = value.targets;
  if (value.weights !== undefined) named.weights = value.weights;
  for (const name of Object.keys(named)) {
    try {
      list.push([name, ...tensor(named[name], name)]);
    } catch (error) {
      error.message = `datum ${index}: ${error.message}`;
      throw error;
    }
  }
  return list;
}

function data(values) {
  if (!Array.isArray(values)) throw new TypeError('data: expected an array');
  return values.map(datum);
}

module.exports = { check, names, ids, input, data };
