-- SPDX-License-Identifier: MIT
--- A command for Neovim: :TnkStream continues the text before the cursor with a sample,
--- which appears while it is generated. :TnkStop ends it.
---
--- Put this file into lua/ of your configuration, beside the module tnk, and call
---     require('tnk_stream').setup { base_model = 'tnk/byte-lm', max_tokens = 200 }
local tnk = require 'tnk'

local M = {}
local settings = { base_model = 'tnk/byte-lm', max_tokens = 200, temperature = 1 }
local sampler -- a future, so that the session is created once
local stream

local function get_sampler()
  if not sampler then
    sampler = tnk.spawn(function()
      M.service = tnk.service(settings.service)
      return M.service:create_sampler({ base_model = settings.base_model }):await()
    end)
  end
  return sampler:await()
end

-- Insert text at a mark, which stays behind it.
local function insert(buffer, namespace, mark, text)
  local place = vim.api.nvim_buf_get_extmark_by_id(buffer, namespace, mark, {})
  vim.api.nvim_buf_set_text(buffer, place[1], place[2], place[1], place[2], vim.split(text, '\n', { plain = true }))
end

--- Stream a sample behind the cursor. Returns a future that ends with the stream.
function M.stream()
  local buffer = vim.api.nvim_get_current_buf()
  local row, column = unpack(vim.api.nvim_win_get_cursor(0))
  local before = vim.api.nvim_buf_get_text(buffer, 0, 0, row - 1, column, {})
  local namespace = vim.api.nvim_create_namespace 'tnk_stream'
  local mark = vim.api.nvim_buf_set_extmark(buffer, namespace, row - 1, column, {})
  return tnk.spawn(function()
    local prompt = tnk.bytes(table.concat(before, '\n'))
    stream = get_sampler():stream {
      prompt = prompt,
      max_tokens = settings.max_tokens,
      temperature = settings.temperature,
      seed = settings.seed,
    }
    for _, text in stream:tokens() do
      -- A buffer that is gone ends the stream.
      if not vim.api.nvim_buf_is_valid(buffer) then
        stream:cancel()
        return
      end
      if text then
        insert(buffer, namespace, mark, text)
      end
    end
    vim.api.nvim_buf_del_extmark(buffer, namespace, mark)
  end)
end

--- End the stream.
function M.stop()
  if stream then
    stream:cancel()
  end
end

function M.setup(options)
  settings = vim.tbl_extend('force', settings, options or {})
  vim.api.nvim_create_user_command('TnkStream', function()
    M.stream():on(function(_, err)
      if err and err.code ~= 'TNK_ECANCELED' then
        vim.notify(tostring(err), vim.log.levels.ERROR)
      end
    end)
  end, {})
  vim.api.nvim_create_user_command('TnkStop', M.stop, {})
  vim.api.nvim_create_autocmd('VimLeavePre', {
    callback = function()
      if M.service then
        M.service:close()
      end
    end,
  })
end

return M
