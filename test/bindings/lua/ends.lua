-- SPDX-License-Identifier: MIT
-- Objects that are dropped in each order, and Lua states that end with work in progress.
local tnk = require 'tnk'
local support = require 'support'
local native = require 'tnk.native'
local uv = require 'luv'
local check, equal, raises = support.check, support.equal, support.raises

local function permutations(items)
  if #items <= 1 then
    return { items }
  end
  local all = {}
  for i = 1, #items do
    local rest = {}
    for j, item in ipairs(items) do
      if j ~= i then
        rest[#rest + 1] = item
      end
    end
    for _, tail in ipairs(permutations(rest)) do
      all[#all + 1] = { items[i], unpack and unpack(tail) }
      if table.unpack then
        all[#all] = { items[i], table.unpack(tail) }
      end
    end
  end
  return all
end

local function collect()
  collectgarbage()
  collectgarbage()
end

-- Drop the objects one by one. Nothing else refers to them.
local function drop(other, order, waits)
  local objects = {}
  objects.service = tnk.service()
  objects.model = objects.service:create_lora_training({ base_model = 'tnk/byte-lm' }):await()
  objects.sampler = objects.service:create_sampler({ base_model = 'tnk/byte-lm' }):await()
  objects.pass = objects.model:forward_backward { support.datum(tnk, 'hello') }
  objects.stream = objects.sampler:stream { prompt = { 104 }, max_tokens = 50 }
  for _, name in ipairs(order) do
    objects[name] = nil
    collect()
    if waits then
      other:health():await()
    end
  end
end

-- A finalizer of the user that uses an object, in both versions of Lua.
local function finalizer(fn)
  if newproxy then
    local proxy = newproxy(true)
    getmetatable(proxy).__gc = fn
    return proxy
  end
  return setmetatable({}, { __gc = fn })
end

-- The module's services that the native part still has.
local function is_collected(make)
  local weak = setmetatable({}, { __mode = 'v' })
  weak[1] = make()
  collect()
  return weak[1] == nil
end

tnk.run(function()
  local other = tnk.service()
  local n = 0
  for _, order in ipairs(permutations { 'service', 'model', 'sampler', 'pass', 'stream' }) do
    drop(other, order, n % 2 == 0)
    n = n + 1
  end
  equal(n, 120, 'objects are dropped in each order')

  -- An operation keeps what it needs.
  local sampler = tnk.service():create_sampler({ base_model = 'tnk/byte-lm' }):await()
  collect()
  equal(#sampler:sample({ prompt = { 104 }, max_tokens = 2 }):await().sequences, 1, 'a client keeps its service')
  local future = sampler:sample { prompt = { 104 }, max_tokens = 2 }
  sampler = nil
  collect()
  equal(#future:await().sequences, 1, 'an operation keeps its client')
  check(is_collected(function()
    return tnk.service()
  end), 'a service that nobody has is collected')

  -- A finalizer that starts an operation of another object.
  local called = false
  local sampled = other:create_sampler({ base_model = 'tnk/byte-lm' }):await()
  local proxy = finalizer(function()
    called = true
    sampled:sample({ prompt = { 104 }, max_tokens = 2 }):cancel()
    sampled:close()
  end)
  proxy = nil
  collect()
  other:health():await()
  check(called and proxy == nil, 'a finalizer uses an object')
  raises('TNK_ECLOSED', 'the sampling client is closed', 'and closes it', sampled.export, sampled)
  other:close():await()
end)

-- The host's loop ends with the last operation, not with the last service.
local idle = tnk.service()
local answered = false
idle:health():on(function()
  answered = true
end)
uv.run()
check(answered, 'an operation keeps the loop of the host alive')
uv.run()
check(true, 'an idle service does not')

-- A service that is collected while nothing else happens is closed at once: its loop is due,
-- although no timer of it is.
idle = nil
collect()
check(select(2, native.timeout()), 'a collected service closes')
local is_late = false
local other_work = uv.new_timer()
other_work:start(60000, 0, function()
  is_late = true
end)
while select(2, native.timeout()) and not is_late do
  uv.run 'once'
end
other_work:close()
-- luv 1.44 crashes when a Lua state ends before its loop has finished a close.
uv.run()
check(not is_late, 'without waiting for a timer')

-- The rest ends with the Lua state: open services, operations in progress, and a finalizer
-- that runs after the module is gone.
local service = tnk.service()
tnk.run(function()
  local model = service:create_lora_training({ base_model = 'tnk/byte-lm' }):await()
  local sampler = model:save_weights_and_sampler():await()
  model:forward_backward { support.datum(tnk, 'hello') }
  sampler:stream { prompt = { 104 }, max_tokens = 100000 }
  last = finalizer(function()
    pcall(service.health, service)
    pcall(sampler.sample, sampler, { prompt = { 104 } })
    pcall(model.close, model)
    pcall(tnk.service)
  end)
end)
tnk.service():close()
print 'ok - the end'
