-- SPDX-License-Identifier: MIT
-- In Neovim without a terminal: the example streams a sample into a buffer.
local function check(ok, what, got)
  print((ok and 'ok - ' or 'not ok - ') .. what .. '\n')
  if not ok then
    print('# got: ' .. vim.inspect(got) .. '\n')
    vim.cmd 'cquit'
  end
end

local ok, err = xpcall(function()
  local tnk = require 'tnk'
  local example = dofile(os.getenv 'TNK_EXAMPLE')
  example.setup { max_tokens = 12, seed = 7 }

  vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'say hello', 'behind it' })
  vim.api.nvim_win_set_cursor(0, { 1, 9 })
  local steps, last = 0, vim.api.nvim_buf_get_changedtick(0)
  local done = example.stream()
  check(not done.is_settled, 'the call does not wait')
  while not done.is_settled do
    vim.wait(1000, function()
      local tick = vim.api.nvim_buf_get_changedtick(0)
      if tick ~= last then
        steps, last = steps + 1, tick
      end
      return done.is_settled
    end, 1)
  end
  check(done.error == nil, 'the stream ends', tostring(done.error))
  local lines = vim.api.nvim_buf_get_lines(0, 0, -1, false)
  check(lines[1]:sub(1, 8) == 'say hell' and #table.concat(lines, '\n') > #'say hello\nbehind it', 'the buffer has the sample', lines)
  check(lines[#lines] == 'behind it', 'what was behind the cursor is still there', lines)
  check(steps > 0, 'the buffer changed meanwhile')

  -- Functions of the user may call the editor.
  local was_fast
  tnk.run(function()
    example.service:health():await()
    was_fast = vim.in_fast_event()
    vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'x' })
  end)
  check(was_fast == false, 'coroutines run where the editor may be called')

  local stopped = example.stream()
  example.stop()
  while not stopped.is_settled do
    vim.wait(100, function()
      return stopped.is_settled
    end, 1)
  end
  check(true, 'a stream can be stopped')
  tnk.run(function()
    example.service:close():await()
  end)
end, debug.traceback)
check(ok, 'no error', err)
check(true, 'the end')
