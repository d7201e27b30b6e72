-- SPDX-License-Identifier: MIT
-- Bad arguments, closed objects, failing callbacks, and cancellation.
local tnk = require 'tnk'
local support = require 'support'
local uv = require 'luv'
local check, equal, raises = support.check, support.equal, support.raises

local function service_errors()
  for _, row in ipairs {
    { 'a string', 'x', 'service: expected a table of options, got string' },
    { 'an unknown option', { base_ulr = 'x' }, 'service: unknown option "base_ulr"' },
    { 'a key without a name', { 'x' }, 'service: options have names, got a key of type number' },
    { 'a number as text', { api_key = 1 }, 'service: option "api_key": expected a string, got number' },
    { 'a zero byte', { api_key = 'a\0b' }, 'expected a string without zero bytes' },
    { 'a text as number', { max_polls = '1' }, 'option "max_polls": expected a whole number, got string' },
    { 'a fraction', { max_polls = 1.5 }, 'option "max_polls": expected a whole number, got 1.5' },
    { 'infinity', { max_polls = math.huge }, 'option "max_polls": expected a whole number' },
    { 'NaN', { max_polls = 0 / 0 }, 'option "max_polls": expected a whole number' },
    { 'a number below the range', { max_polls = -1 }, 'is out of range' },
    { 'a number above the range', { max_polls = 2 ^ 32 }, 'is out of range' },
    { 'a number above every range', { timeout_ms = 2 ^ 63 }, 'is out of range' },
    { 'no boolean', { retry_samples = 1 }, 'option "retry_samples": expected a boolean, got number' },
    { 'no name of the enumeration', { http_version = '3' }, '"3" is none of "auto", "1.1", "2"' },
    { 'no pairs', { headers = 'x' }, 'option "headers": expected a table of names and strings, got string' },
    { 'a pair without a name', { headers = { 'x' } }, 'option "headers": expected a table of names and strings' },
    { 'a pair without a text', { headers = { x = 1 } }, 'option "headers": expected a string, got number' },
    { 'no function', { on_log = 1 }, 'on_log: expected a function, got number' },
    { 'no event function', { on_queue_state = 'x' }, 'on_queue_state: expected a function, got string' },
    { 'a bad address', { base_url = 'no url' }, 'base_url' },
  } do
    raises('TNK_EINVAL', row[3], 'service: ' .. row[1], tnk.service, row[2])
  end
end

-- For each method: its name, its good arguments, and the bad ones by their index.
local function method_errors(service, model, sampler)
  local datum = support.datum(tnk, 'hello')
  local input, targets = datum.input, datum.targets
  local prompt = { 1, 2 }
  local rows = {
    { service, 'create_lora_training', 1, 'x', 'create_lora_training: expected a table of options' },
    { service, 'create_lora_training', 1, { rank = -1 }, 'option "rank": -1' },
    { service, 'create_lora_training', 1, { optimizer = 'sgd' }, 'option "optimizer": "sgd" is none of "adamw"' },
    { service, 'create_lora_training', 1, { seed = {} }, 'option "seed": expected a whole number, got table' },
    { service, 'restore_training', 1, { path = 1 }, 'option "path": expected a string' },
    { service, 'create_sampler', 1, { base_model = {} }, 'option "base_model": expected a string, got table' },
    { service, 'models', 1, { x = 1 }, 'models: unknown option "x"' },
    { service, 'health', 1, 1, 'health: expected a table of options, got number' },
    { model, 'forward_backward', 1, nil, 'data: expected a table of datums, got nil' },
    { model, 'forward_backward', 1, { 1 }, 'datum 0: expected a table, got number' },
    { model, 'forward_backward', 1, { datum, {} }, 'datum 1: input: expected a table of token ids, got nil' },
    { model, 'forward_backward', 1, { { input = 'x' } }, 'datum 0: input: expected a table of token ids, got string' },
    { model, 'forward_backward', 1, { { input = { 1, 1.5 } } }, 'datum 0: input: value [2] is no token id' },
    { model, 'forward_backward', 1, { { input = { 2 ^ 31 } } }, 'datum 0: input: value [1] is no token id' },
    { model, 'forward_backward', 1, { { input = input, target = targets } }, 'datum 0: names: unknown key "target"' },
    { model, 'forward_backward', 1, { { input = input, 5 } }, 'datum 0: names: unknown key of type number' },
    { model, 'forward_backward', 1, { { input = input, targets = 1 } }, 'datum 0: target_tokens: expected a table of numbers' },
    { model, 'forward_backward', 1, { { input = input, targets = { 1.5 } } }, 'datum 0: target_tokens: expected a whole number' },
    { model, 'forward_backward', 1, { { input = input, weights = { 'x' } } }, 'datum 0: weights: value [1]: expected a number' },
    { model, 'forward_backward', 1, { { input = input, loss_inputs = 1 } }, 'datum 0: loss_inputs: expected a table' },
    { model, 'forward_backward', 1, { { input = input, loss_inputs = { {} } } }, 'datum 0: loss_inputs: expected a table' },
    { model, 'forward_backward', 1, { { input = input, weights = { data = { 1 }, shape = 1 } } }, 'expected a table as shape' },
    { model, 'forward_backward', 1, { { input = input, weights = { data = { 1 }, shape = { 1, 1, 1, 1, 1, 1, 1, 1, 1 } } } }, 'at most 8 dimensions' },
    { model, 'forward_backward', 1, { { input = { {} } } }, 'datum 0: input: a chunk needs tokens, image, dmel or location' },
    { model, 'forward_backward', 1, { { input = { { image = 1 } } } }, '"image": expected a string, got number' },
    { model, 'forward_backward', 2, 1, 'loss_fn: expected a string, got number' },
    { model, 'forward_backward', 3, { settings = 1 }, 'settings: expected a table' },
    { model, 'forward_backward', 3, { settings = { 1 } }, 'settings: expected a table of names' },
    { model, 'forward_backward', 3, { settings = { beta = {} } }, 'beta: expected a string, got table' },
    { model, 'forward', 3, { timeout_ms = 'x' }, 'forward: option "timeout_ms": expected a whole number' },
    { model, 'optim_step', 1, { learning_rate = 'x' }, 'option "learning_rate": expected a number, got string' },
    { model, 'optim_step', 1, { lr = 1 }, 'optim_step: unknown option "lr"' },
    { model, 'save_state', 1, nil, 'save_state: expected a string as name, got nil' },
    { model, 'save_state', 1, 5, 'save_state: expected a string, got number' },
    { model, 'save_state', 2, { ttl_seconds = -1 }, 'option "ttl_seconds": -1' },
    { model, 'save_state', 2, { recipients = 1 }, 'option "recipients": expected a table of strings' },
    { model, 'save_state', 2, { recipients = { 1 } }, 'option "recipients": expected a string' },
    { model, 'save_weights_for_sampler', 1, {}, 'save_weights_for_sampler: expected a string, got table' },
    { model, 'load_state', 1, nil, 'load_state: expected a string as path, got nil' },
    { model, 'save_weights_and_sampler', 1, { kind = 'x' }, '"x" is none of "snapshot", "inflight"' },
    { sampler, 'sample', 1, nil, 'sample: expected a table of options, got nil' },
    { sampler, 'sample', 1, {}, 'prompt: expected a table of token ids, got nil' },
    { sampler, 'sample', 1, { prompt = prompt, max_token = 1 }, 'sample: unknown option "max_token"' },
    { sampler, 'sample', 1, { prompt = prompt, stop = { 1 } }, 'option "stop": expected a string, got number' },
    { sampler, 'sample', 1, { prompt = prompt, stop_tokens = 1 }, 'option "stop_tokens": expected a table of token ids' },
    { sampler, 'stream', 1, { prompt = prompt, num_samples = 2 }, 'stream: unknown option "num_samples"' },
    { sampler, 'stream', 1, { prompt = prompt, top_p = {} }, 'option "top_p": expected a number, got table' },
    { sampler, 'compute_logprobs', 1, { prompt = false }, 'prompt: expected a table of token ids, got boolean' },
  }
  for _, row in ipairs(rows) do
    local object, name, index, bad, text = row[1], row[2], row[3], row[4], row[5]
    local good = { { datum }, 'cross_entropy' }
    if index == 2 and name ~= 'forward_backward' then
      good = { 'a-name' }
    end
    good[index] = bad
    raises('TNK_EINVAL', text, name .. ': ' .. text, object[name], object, good[1], good[2], good[3])
  end
end

local function receiver_errors(service, model, sampler)
  for class, object in pairs { service = service, ['training client'] = model, ['sampling client'] = sampler } do
    for name, method in pairs(getmetatable(object)) do
      if type(method) == 'function' then
        raises('TNK_EINVAL', name .. ': expected a ' .. class, name .. ' without its object', method, {})
        raises('TNK_EINVAL', 'call it with a colon', name .. ' with a dot', method)
      end
    end
  end
  raises('TNK_EINVAL', 'on: expected a function', 'on', service:health().on, service:health(), 1)
  raises('TNK_EINVAL', 'spawn: expected a function', 'spawn', tnk.spawn, 1)
  raises('TNK_EINVAL', 'run: expected a function', 'run', tnk.run, nil)
  raises('TNK_EINVAL', 'run: the loop runs already', 'run in run', tnk.run, print)
  raises('TNK_EINVAL', 'all: element 1 is no future', 'all', tnk.all, { 1 })
  raises('TNK_EINVAL', 'bytes: expected a string', 'bytes', tnk.bytes, 1)
  raises('TNK_EINVAL', 'text: expected a table', 'text', tnk.text, 'x')
end

local function library_errors(service, model, sampler)
  local short = { input = { 1, 2, 3 }, targets = { 2, 3, 4 }, weights = { 1 } }
  raises('TNK_EINVAL', 'datum 0: "weights" has 1 values, expected 3', 'the library names the value', function()
    model:forward_backward({ short }):await()
  end)
  raises('TNK_EINVAL', 'max_tokens', 'max_tokens of 0', function()
    sampler:sample({ prompt = { 1 }, max_tokens = 0 }):await()
  end)
  local ok, err = pcall(function()
    service:create_sampler({ model_path = 'tinker://no/sampler_weights/thing' }):await()
  end)
  check(not ok and tnk.is_error(err) and err.status, 'an error of the server has its status', err)
  equal(tnk.is_error({}), false, 'another table is no error')
end

-- A server that accepts connections and says nothing.
local function times_out()
  local silent = uv.new_tcp()
  silent:bind('127.0.0.1', 0)
  silent:listen(8, function() end)
  local service = tnk.service { base_url = 'http://127.0.0.1:' .. silent:getsockname().port }
  raises('TNK_ETIMEDOUT', '', 'timeout_ms', function()
    service:health({ timeout_ms = 20 }):await()
  end)
  service:close():await()
  silent:close()
end

local function cancels(sampler)
  local future = sampler:sample { prompt = { 104 }, max_tokens = 100000 }
  future:cancel()
  raises('TNK_ECANCELED', '', 'cancel', future.await, future)
  future:cancel()
  check(true, 'cancel after the end')

  local stream = sampler:stream { prompt = { 104 }, max_tokens = 100000 }
  stream:cancel()
  raises('TNK_ECANCELED', '', 'cancel of a stream', function()
    for _ in stream:tokens() do
      check(false, 'no token after the cancel')
    end
  end)
end

local function failing_callbacks(service)
  local reports = {}
  local on_error = tnk.on_error
  tnk.on_error = function(message)
    reports[#reports + 1] = message
  end
  local first, second = service:health(), service:health()
  first:on(function()
    error 'broken callback'
  end)
  first:on(function()
    error { 'a table' }
  end)
  second:await()
  first:await()
  check(reports[1] and reports[1]:find 'broken callback' and reports[1]:find 'errors.lua', 'an error in a callback', reports[1])
  check(reports[2] and reports[2]:find 'table', 'an error that is no string', reports[2])
  tnk.spawn(function()
    service:health():await()
    error 'broken coroutine'
  end)
  for _ = 1, 3 do
    service:health():await()
  end
  check(reports[3] and reports[3]:find 'broken coroutine', 'an error in a coroutine', reports[3])
  raises('TNK_ECLOSED', '', 'the error of a spawned function reaches who waits', function()
    tnk.spawn(function()
      error(setmetatable({ code = 'TNK_ECLOSED', text = '' }, getmetatable(select(2, pcall(tnk.bytes)))))
    end):await()
  end)
  service:health():await()
  equal(#reports, 3, 'and is not reported then')
  tnk.on_error = on_error
end

local function closes(service, model, sampler)
  local pass = model:forward_backward { support.datum(tnk, 'hello') }
  local stream = sampler:stream { prompt = { 104 }, max_tokens = 100000 }
  local closing = service:close()
  raises('TNK_ECLOSED', '', 'close ends a pass', pass.await, pass)
  raises('TNK_ECLOSED', '', 'close ends a stream', stream.await, stream)
  raises('TNK_ECLOSED', 'the service is closed', 'a closing service', service.health, service)
  raises('TNK_ECLOSED', 'the training client is closed', 'its model', model.optim_step, model)
  closing:await()
  service:close():await()
  check(true, 'a second close')
  for object, name in pairs { [service] = 'service', [model] = 'training client', [sampler] = 'sampling client' } do
    for method, fn in pairs(getmetatable(object)) do
      if type(fn) == 'function' and method ~= 'close' then
        raises('TNK_ECLOSED', 'the ' .. name .. ' is closed', name .. ' after close: ' .. method, fn, object,
          method:find '^save_[sw]' and 'name' or method == 'load_state' and 'path' or { prompt = { 1 } })
      end
    end
  end
  model:close()
  sampler:close()
end

-- tnk.run() outside of a coroutine, where it waits, and in a callback, where it must not.
local function runs()
  local reports, on_error = 0, tnk.on_error
  tnk.on_error = function()
    reports = reports + 1
  end
  local ok, err = pcall(tnk.run, function()
    error 'broken program'
  end)
  check(not ok and err:find 'broken program', 'run raises the error of its function', err)
  local service = tnk.service()
  service:health():on(function()
    raises('TNK_EINVAL', 'run: the loop runs already', 'run in a callback', tnk.run, print)
    service:close()
  end)
  uv.run()
  equal(reports, 0, 'and does not report it too')
  tnk.on_error = on_error
end

service_errors()
runs()
raises('TNK_EINVAL', 'await: call it in a coroutine', 'await outside of a coroutine', function()
  local service = tnk.service()
  service:close():await()
end)
raises('TNK_EINVAL', 'nothing is left that could resume it', 'a function that waits for ever', tnk.run, coroutine.yield)
tnk.run(function()
  local service = tnk.service()
  local model = service:create_lora_training({ base_model = 'tnk/byte-lm' }):await()
  local sampler = model:save_weights_and_sampler():await()
  method_errors(service, model, sampler)
  receiver_errors(service, model, sampler)
  library_errors(service, model, sampler)
  times_out()
  cancels(sampler)
  failing_callbacks(service)
  closes(service, model, sampler)
end)
-- luv 1.44 crashes when a Lua state ends before its loop has finished a close.
uv.run()
print 'ok - the end'
