-- SPDX-License-Identifier: MIT
rockspec_format = '3.0'
package = 'tnk'
version = '0.1.0-1'
source = { url = '.' }
description = {
  summary = 'The Tinker training API on the loop of luv',
  license = 'MIT',
}
dependencies = { 'lua >= 5.1', 'luv >= 1.42' }
external_dependencies = {
  TNK = { header = 'tnk/tnk.h', library = 'tnk' },
  UV = { header = 'uv.h', library = 'uv' },
}
build = {
  type = 'builtin',
  modules = {
    tnk = 'lua/tnk.lua',
    ['tnk.native'] = {
      sources = {
        'native/client.c',
        'native/data.c',
        'native/event.c',
        'native/object.c',
        'native/operation.c',
        'native/result.c',
        'native/service.c',
        'native/value.c',
      },
      incdirs = { '$(TNK_INCDIR)', '$(UV_INCDIR)', '../..' },
      libdirs = { '$(TNK_LIBDIR)', '$(UV_LIBDIR)' },
      libraries = { 'tnk', 'uv' },
    },
  },
}
