// SPDX-License-Identifier: MIT
'use strict';

const tnk = require('tnk');

/** The ids of a text: each byte is one. */
const bytes = (text) => Int32Array.from(Buffer.from(text));

function example() {
  const text = bytes('hello, world');
  return { input: text.subarray(0, -1), targets: text.subarray(1) };
}

function open(options) {
  return new tnk.Service({ baseURL: process.env.TINKER_BASE_URL, apiKey: 'tml-local', ...options });
}

/** Wait until a condition holds that depends on the collector of garbage. The
 * runner of the tests ends a program for which it never does. */
async function settled(condition) {
  while (!condition()) {
    global.gc();
    await new Promise((resolve) => setImmediate(resolve));
  }
}

module.exports = { bytes, example, open, settled };
