-- SPDX-License-Identifier: MIT
-- Checks that print lines of TAP, for ../run_lua.py.
local support = {}

function support.check(ok, what, got)
  print((ok and 'ok - ' or 'not ok - ') .. what)
  if not ok then
    print('# got: ' .. tostring(got))
    os.exit(1, false)
  end
end

function support.equal(got, expected, what)
  support.check(got == expected, what, tostring(got) .. ', expected ' .. tostring(expected))
end

--- Check that a call raises an error with a code and a text.
function support.raises(code, text, what, fn, ...)
  local ok, err = pcall(fn, ...)
  local fits = not ok and type(err) == 'table' and err.code == code and tostring(err):find(text, 1, true)
  support.check(fits, what, ok and 'no error' or err)
end

--- A datum of a string, for a model of bytes.
function support.datum(tnk, text)
  return { input = tnk.bytes(text:sub(1, -2)), targets = tnk.bytes(text:sub(2)) }
end

return support
