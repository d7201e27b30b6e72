// SPDX-License-Identifier: MIT
'use strict';
// Finds the addon: TNK_NODE_ADDON, the prebuilt one of this platform, or the one
// that node-gyp has built. The layout is that of node-gyp-build.

const fs = require('fs');
const path = require('path');

function isMusl() {
  const header = process.report?.getReport?.()?.header;
  return process.platform === 'linux' && header !== undefined && !header.glibcVersionRuntime;
}

function load() {
  if (process.versions.bun) {
    throw new Error('tnk needs the event loop of Node; Bun has none of libuv. Run this program with node.');
  }
  if (process.env.TNK_NODE_ADDON) return require(path.resolve(process.env.TNK_NODE_ADDON));
  const root = path.join(__dirname, '..');
  const platform = `${process.platform}-${process.arch}`;
  const built = path.join(root, 'build', 'Release', 'tnk.node');
  const prebuilt = path.join(root, 'prebuilds', platform, 'tnk.node');
  if (fs.existsSync(built)) return require(built);
  if (fs.existsSync(prebuilt) && !isMusl()) return require(prebuilt);
  throw new Error(
    `tnk has no addon for ${platform}${isMusl() ? ' with musl' : ''}. ` +
      'Install libtnk with its headers, then run "npm rebuild tnk".'
  );
}

if (require.main === module) {
  try {
    load();
  } catch (error) {
    console.error(error.message);
    process.exitCode = 1;
  }
} else {
  module.exports = load();
}
