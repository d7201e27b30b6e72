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
  type = 'command',
  -- LuaJIT unloads modules at its end, and may call finalizers after that: nodelete.
  build_command = '$(CC) $(CFLAGS) -std=c11 -D_POSIX_C_SOURCE=200809L -fvisibility=hidden '
    .. '-I$(LUA_INCDIR) -I$(TNK_INCDIR) -I$(UV_INCDIR) -I../.. native/*.c $(LIBFLAG) -Wl,-z,nodelete '
    .. '-L$(TNK_LIBDIR) -L$(UV_LIBDIR) -ltnk -luv -o native.so',
  install = {
    lua = { tnk = 'lua/tnk.lua' },
    lib = { ['tnk.native'] = 'native.so' },
  },
}
