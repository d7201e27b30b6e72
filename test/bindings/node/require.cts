// SPDX-License-Identifier: MIT
// Compiled with --strict, and not run: the types for a CommonJS module.
import tnk = require('tnk');

export const service: tnk.Service = new tnk.Service();
// @ts-expect-error An option that does not exist.
export const wrong = new tnk.Service({ baseUrl: 'http://127.0.0.1:1' });
