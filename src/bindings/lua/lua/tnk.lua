-- SPDX-License-Identifier: MIT
--- libtnk for LuaJIT, Lua 5.4 and Neovim, on the loop of luv.
--
-- The C part, tnk.native, has a libuv loop of its own. This file lets luv's loop turn it:
-- a poll handle watches the loop's descriptor, and a timer waits as long as the loop would.
-- When the loop would not wait, an idle handle turns it in the next iteration of luv's loop.
-- Functions of the user run here only, never inside the library.

local uv = vim and (vim.uv or vim.loop) or require 'luv'
local native = require 'tnk.native'
local unpack = table.unpack or unpack

local tnk = { version = native.version(), libuv_version = native.libuv_version() }

-- ---- Errors ----

local Error = native.error
Error.__index = Error
Error.__name = 'tnk.error'

function Error:__tostring()
  return self.code .. ': ' .. self.text
end

local function fail(level, text, ...)
  error(setmetatable({ code = 'TNK_EINVAL', text = text:format(...) }, Error), level + 1)
end

--- Returns whether a value is an error of this module.
function tnk.is_error(value)
  return getmetatable(value) == Error
end

--- Called with a message when a callback or a coroutine of the user fails.
function tnk.on_error(message)
  if vim then
    vim.api.nvim_err_writeln(message)
  else
    io.stderr:write(message, '\n')
  end
end

local function traced(err)
  if type(err) == 'string' then
    return debug.traceback(err, 2)
  end
  return err
end

local function report(err)
  pcall(tnk.on_error, 'tnk: ' .. tostring(err))
end

-- ---- The loop ----

local poll, timer, idle -- handles of luv
local pending = {} -- futures by the number of their operation
local services = {} -- by the address of the service
local queue = {} -- functions to call, with their arguments
local is_scheduled = false
local last_id = 0

-- Call what is in the queue. A function may add to it.
local function drain()
  is_scheduled = false
  local now = queue
  queue = {}
  for i = 1, #now do
    local call = now[i]
    local ok, err = xpcall(function()
      return call[1](unpack(call, 2, call.n))
    end, traced)
    if not ok then
      report(err)
    end
  end
end

-- In Neovim functions of the user run when the editor's own functions may be called.
local function schedule()
  if is_scheduled or #queue == 0 then
    return
  end
  is_scheduled = true
  if vim then
    vim.schedule(drain)
  else
    drain()
  end
end

local function later(...)
  queue[#queue + 1] = { n = select('#', ...), ... }
end

local handle = {} -- of events, by their kind

local function turn()
  native.turn()
  local kind, key, a, b, c, d = native.take()
  while kind do
    handle[kind](key, a, b, c, d)
    kind, key, a, b, c, d = native.take()
  end
  schedule()
  -- Callbacks may have started or ended operations, or added to the queue.
  local timeout, is_busy = native.timeout()
  if not vim and #queue > 0 then
    timeout = 0
  end
  -- A timer of 0 ms would call this function again before luv's loop gets to its other
  -- handles.
  if timeout > 0 then
    timer:start(timeout, 0, turn)
  else
    timer:stop()
  end
  if timeout == 0 then
    idle:start(turn)
  else
    idle:stop()
  end
  -- A pending callback keeps the host's loop alive. An idle service does not.
  if is_busy or #queue > 0 then
    poll:ref()
    timer:ref()
    idle:ref()
  else
    poll:unref()
    timer:unref()
    idle:unref()
  end
end

-- Turn the loop soon, after a call from outside of it.
local function wake()
  if not poll then
    poll = assert(uv.new_poll(native.fd()))
    timer = assert(uv.new_timer())
    idle = assert(uv.new_idle())
    assert(poll:start('r', turn))
  end
  poll:ref()
  timer:ref()
  idle:ref()
  idle:start(turn)
end

-- ---- Futures ----

local Future = {}
Future.__index = Future
Future.__name = 'tnk.future'

local function new_future()
  return setmetatable({ is_settled = false }, Future)
end

local function settle(future, value, err)
  future.is_settled = true
  future.value = value
  future.error = err
  future.owner = nil
  local callbacks = future.callbacks
  future.callbacks = nil
  for _, callback in ipairs(callbacks or {}) do
    later(callback, value, err)
  end
  if future.token_wakes then
    later(future.token_wakes)
    future.token_wakes = nil
  end
end

--- Call fn(result, err) once the operation has ended; one of them is nil.
function Future:on(fn)
  if type(fn) ~= 'function' then
    fail(2, 'on: expected a function, got %s', type(fn))
  end
  self.is_watched = true
  if self.is_settled then
    later(fn, self.value, self.error)
    wake()
  else
    self.callbacks = self.callbacks or {}
    table.insert(self.callbacks, fn)
  end
  return self
end

local function running()
  local co, is_main = coroutine.running()
  return not is_main and co or nil
end

local function resume(co, ...)
  local ok, err = coroutine.resume(co, ...)
  if not ok then
    report(type(err) == 'string' and debug.traceback(co, err) or err)
  end
end

-- Suspend the coroutine until `is_ready` returns true. `subscribe` gets a function that
-- resumes it.
local function suspend(name, is_ready, subscribe)
  local co = running()
  if not co then
    fail(3, '%s: call it in a coroutine, for example in tnk.run()', name)
  end
  -- Another scheduler may resume the coroutine too.
  local is_waiting = true
  while not is_ready() do
    subscribe(function()
      if is_waiting and coroutine.status(co) == 'suspended' then
        resume(co)
      end
    end)
    coroutine.yield()
  end
  is_waiting = false
end

--- Wait in a coroutine. Returns the result or raises the error.
function Future:await()
  self.is_watched = true
  suspend('await', function()
    return self.is_settled
  end, function(wakes)
    self:on(wakes)
  end)
  if self.error ~= nil then
    error(self.error, 0)
  end
  return self.value
end

--- Cancel the operation. The future then fails with TNK_ECANCELED, unless it has ended.
function Future:cancel()
  if self.operation and not self.is_settled then
    native.cancel(self.operation)
    wake()
  end
end

-- Start an operation of the native module for an object.
local function start(future, name, object, ...)
  last_id = last_id + 1
  future.owner = object -- it is not collected meanwhile
  future.operation = native[name](last_id, object.handle, ...)
  pending[last_id] = future
  wake()
  return future
end

--- Call a function in a coroutine. Returns a future of its result.
function tnk.spawn(fn, ...)
  if type(fn) ~= 'function' then
    fail(2, 'spawn: expected a function, got %s', type(fn))
  end
  local future = new_future()
  local co = coroutine.create(function(...)
    local ok, value = xpcall(fn, traced, ...)
    if ok then
      settle(future, value)
    else
      settle(future, nil, value)
    end
    if not ok and not future.is_watched then
      later(function()
        if not future.is_watched then
          report(value)
        end
      end)
    end
    wake()
  end)
  resume(co, ...)
  return future
end

--- Call a function in a coroutine, and run the loop until it has returned.
function tnk.run(fn, ...)
  if type(fn) ~= 'function' then
    fail(2, 'run: expected a function, got %s', type(fn))
  end
  if running() or (not vim and uv.loop_mode and uv.loop_mode()) then
    fail(2, 'run: the loop runs already; use tnk.spawn()')
  end
  local future = tnk.spawn(fn, ...)
  future.is_watched = true
  if vim then
    while not future.is_settled do
      vim.wait(1000, function()
        return future.is_settled
      end, 10)
    end
  else
    while not future.is_settled do
      if not uv.run 'once' and not future.is_settled then
        fail(2, 'run: the function waits, and nothing is left that could resume it')
      end
    end
  end
  if future.error ~= nil then
    error(future.error, 0)
  end
  return future.value
end

--- A future of the results of several futures, in their order. It fails with the first
--- error.
function tnk.all(futures)
  if type(futures) ~= 'table' then
    fail(2, 'all: expected a table of futures, got %s', type(futures))
  end
  local future, left, results = new_future(), #futures, {}
  for i, one in ipairs(futures) do
    if type(one) ~= 'table' or type(one.on) ~= 'function' then
      fail(2, 'all: element %d is no future', i)
    end
    one:on(function(value, err)
      left = left - 1
      results[i] = value
      if not future.is_settled and (err ~= nil or left == 0) then
        settle(future, err == nil and results or nil, err)
        wake()
      end
    end)
  end
  if left == 0 then
    settle(future, results)
  end
  return future
end

-- ---- Streams ----

local Stream = setmetatable({}, { __index = Future })
Stream.__index = Stream
Stream.__name = 'tnk.stream'

--- Call fn(token, text, logprob, index) for each token. The text or logprob is nil if the
--- server sends none.
function Stream:on_token(fn)
  if type(fn) ~= 'function' then
    fail(2, 'on_token: expected a function, got %s', type(fn))
  end
  self.token_callback = fn
  for _, token in ipairs(self.tokens_left) do
    later(fn, unpack(token, 1, 4))
  end
  self.tokens_left = {}
  if #queue > 0 then
    wake()
  end
  return self
end

--- Iterate over the tokens in a coroutine: for token, text, logprob in stream:tokens() do.
--- Raises the error of the stream. Lua 5.4 cancels the stream if the loop is left.
function Stream:tokens()
  local function step()
    suspend('tokens', function()
      return #self.tokens_left > 0 or self.is_settled
    end, function(wakes)
      self.token_wakes = wakes
    end)
    local token = table.remove(self.tokens_left, 1)
    if token then
      return unpack(token, 1, 4)
    end
    if self.error ~= nil then
      error(self.error, 0)
    end
  end
  local closer = setmetatable({}, {
    __close = function()
      self:cancel()
    end,
  })
  return step, nil, nil, closer
end

-- ---- Events ----

function handle.done(id, value)
  local future = pending[id]
  pending[id] = nil
  if future.convert then
    value = future.convert(value)
  end
  settle(future, value)
end

function handle.failed(id, err)
  local future = pending[id]
  pending[id] = nil
  settle(future, nil, err)
end

function handle.token(id, token, index, text, logprob)
  local stream = pending[id]
  if stream.token_callback then
    later(stream.token_callback, token, text, logprob, index)
    return
  end
  table.insert(stream.tokens_left, { token, text, logprob, index })
  local wakes = stream.token_wakes
  stream.token_wakes = nil
  if wakes then
    later(wakes)
  end
end

function handle.closed(address)
  local entry = services[address]
  services[address] = nil
  if entry and entry.closing then
    settle(entry.closing)
  end
end

function handle.queue_state(address, event)
  local entry = services[address]
  if entry and entry.on_queue_state then
    later(entry.on_queue_state, event)
  end
end

function handle.log(address, event)
  local entry = services[address]
  if entry and entry.on_log then
    later(entry.on_log, event)
  end
end

-- ---- Objects ----

local function new_class(name)
  local class = { __name = 'tnk.' .. name }
  class.__index = class
  return class
end

local Service = new_class 'service'
local Training = new_class 'training client'
local Sampler = new_class 'sampling client'

-- Check the receiver of a method. A call with a dot instead of a colon has none.
local function check(self, class, name)
  if getmetatable(self) ~= class then
    fail(3, '%s: expected a %s; call it with a colon', name, class.__name:sub(5))
  end
end

local function convert_to(class, service)
  return function(object)
    return setmetatable({ handle = object, service = service }, class)
  end
end

--- Open a service. Options are those of tnk_service_options_t, and the functions
--- on_queue_state(event) and on_log(event).
function tnk.service(options)
  local object, address = native.open(options)
  local service = setmetatable({ handle = object, address = address }, Service)
  services[address] = {
    on_queue_state = options and options.on_queue_state,
    on_log = options and options.on_log,
  }
  wake()
  return service
end

--- A future of a model to train.
function Service:create_lora_training(options)
  check(self, Service, 'create_lora_training')
  local future = new_future()
  future.convert = convert_to(Training, self)
  return start(future, 'create_lora', self, options)
end

--- A future of a model that starts from a saved state.
function Service:restore_training(options)
  check(self, Service, 'restore_training')
  local future = new_future()
  future.convert = convert_to(Training, self)
  return start(future, 'restore', self, options)
end

--- A future of a client that samples.
function Service:create_sampler(options)
  check(self, Service, 'create_sampler')
  local future = new_future()
  future.convert = convert_to(Sampler, self)
  return start(future, 'create_sampling', self, options)
end

--- A future of the models that the server lists.
function Service:models(options)
  check(self, Service, 'models')
  return start(new_future(), 'models', self, options)
end

--- A future that fails if the server is not up.
function Service:health(options)
  check(self, Service, 'health')
  return start(new_future(), 'health', self, options)
end

--- The id of the session, or nil before it exists.
function Service:session_id()
  check(self, Service, 'session_id')
  return native.session_id(self.handle)
end

--- Counters of the service.
function Service:stats()
  check(self, Service, 'stats')
  return native.stats(self.handle)
end

--- Close the service and its clients. Returns a future; operations that have not ended fail
--- with TNK_ECLOSED.
function Service:close()
  check(self, Service, 'close')
  local entry = services[self.address]
  if native.close(self.handle) then
    entry.closing = new_future()
    entry.closing.owner = self
    self.closing = entry.closing
    wake()
  elseif not self.closing then
    self.closing = new_future()
    settle(self.closing)
  end
  return self.closing
end

local function close_client(class)
  return function(self)
    check(self, class, 'close')
    native.close(self.handle)
    wake()
  end
end

Training.close = close_client(Training)
Sampler.close = close_client(Sampler)

function Training:forward_backward(data, loss_fn, options)
  check(self, Training, 'forward_backward')
  return start(new_future(), 'forward_backward', self, data, loss_fn, options)
end

function Training:forward(data, loss_fn, options)
  check(self, Training, 'forward')
  return start(new_future(), 'forward', self, data, loss_fn, options)
end

function Training:optim_step(options)
  check(self, Training, 'optim_step')
  return start(new_future(), 'optim_step', self, options)
end

function Training:save_state(name, options)
  check(self, Training, 'save_state')
  return start(new_future(), 'save_state', self, name, options)
end

function Training:save_weights_for_sampler(name, options)
  check(self, Training, 'save_weights_for_sampler')
  return start(new_future(), 'save_weights', self, name, options)
end

--- A future of a sampling client of the current weights.
function Training:save_weights_and_sampler(options)
  check(self, Training, 'save_weights_and_sampler')
  local future = new_future()
  future.convert = convert_to(Sampler, self.service)
  return start(future, 'sampler', self, options)
end

function Training:load_state(path, options)
  check(self, Training, 'load_state')
  return start(new_future(), 'load_state', self, path, options)
end

--- The description of the model.
function Training:info()
  check(self, Training, 'info')
  return native.training_info(self.handle)
end

function Sampler:sample(options)
  check(self, Sampler, 'sample')
  return start(new_future(), 'sample', self, options)
end

--- Sample one sequence. Returns a stream, which is also a future of the whole sequence.
function Sampler:stream(options)
  check(self, Sampler, 'stream')
  local stream = setmetatable({ is_settled = false, tokens_left = {} }, Stream)
  return start(stream, 'stream', self, options)
end

function Sampler:compute_logprobs(options)
  check(self, Sampler, 'compute_logprobs')
  return start(new_future(), 'compute_logprobs', self, options)
end

--- A string with which create_sampler{exported = ...} creates a client of this sampler.
function Sampler:export()
  check(self, Sampler, 'export')
  return native.export(self.handle)
end

-- ---- Bytes ----

--- The bytes of a string as token ids, for models of bytes such as tnk/byte-lm.
function tnk.bytes(text)
  if type(text) ~= 'string' then
    fail(2, 'bytes: expected a string, got %s', type(text))
  end
  local ids = {}
  for i = 1, #text do
    ids[i] = text:byte(i)
  end
  return ids
end

--- The string of token ids that are bytes.
function tnk.text(ids)
  if type(ids) ~= 'table' then
    fail(2, 'text: expected a table of token ids, got %s', type(ids))
  end
  local characters = {}
  for i, id in ipairs(ids) do
    characters[i] = id >= 0 and id < 256 and string.char(id) or ''
  end
  return table.concat(characters)
end

return tnk
