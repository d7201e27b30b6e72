-- SPDX-License-Identifier: MIT
-- Threads of luv: objects stay in their thread, and each thread opens services of its own.
local tnk = require 'tnk'
local support = require 'support'
local uv = require 'luv'
local check, equal = support.check, support.equal

local function stay(service, model, sampler)
  local objects = { service = service, ['training client'] = model, ['sampling client'] = sampler, future = service:health() }
  for name, object in pairs(objects) do
    local ok, err = pcall(uv.new_thread, function() end, object)
    check(not ok and tostring(err):find("not support type 'table'", 1, true), 'a thread gets no ' .. name, err)
  end
end

local function open_their_own()
  local path = os.tmpname()
  local thread = uv.new_thread(function(file)
    local own = require 'tnk'
    own.run(function()
      local mine = own.service()
      local models = mine:models():await()
      mine:close():await()
      local out = assert(io.open(file, 'w'))
      out:write(#models > 0 and 'models' or 'none')
      out:close()
    end)
  end, path)
  thread:join()
  local out = assert(io.open(path))
  equal(out:read '*a', 'models', 'a thread has a service of its own')
  out:close()
  os.remove(path)
end

tnk.run(function()
  local service = tnk.service()
  local model = service:create_lora_training({ base_model = 'tnk/byte-lm' }):await()
  local sampler = model:save_weights_and_sampler():await()
  stay(service, model, sampler)
  open_their_own()
  service:close():await()
end)
print 'ok - the end'
