-- SPDX-License-Identifier: MIT
-- What a program does: train, save, sample, stream.
local tnk = require 'tnk'
local support = require 'support'
local uv = require 'luv'
local check, equal = support.check, support.equal

tnk.run(function()
  local service = tnk.service { on_queue_state = function() end }
  equal(service:health():await(), nil, 'health')
  local models = service:models():await()
  equal(models[1].name, 'tnk/byte-lm', 'models')

  local model = service:create_lora_training({ base_model = 'tnk/byte-lm', rank = 8, seed = 1 }):await()
  equal(model:info().lora_rank, 8, 'info')
  check(#service:session_id() > 0, 'session id')
  local datum = support.datum(tnk, 'hello, world')
  local losses = {}
  for i = 1, 20 do
    local pass = model:forward_backward({ datum }, 'cross_entropy')
    local step = model:optim_step { learning_rate = 0.02 }
    local results = tnk.all({ pass, step }):await()
    losses[i] = results[1].loss
    if i == 1 then
      equal(#results[1].outputs, 1, 'a pass has an output for each datum')
      equal(#results[1].outputs[1].logprobs, 11, 'with a logprob for each token')
    end
  end
  check(losses[20] < losses[1] / 2, 'the loss falls', losses[20])
  equal(model:forward({ datum }):await().metrics ~= nil, true, 'forward')
  local weighted = model:forward({
    { input = datum.input, targets = datum.targets, weights = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1 } },
  }):await()
  check(weighted.loss < losses[1], 'weights')

  local saved = model:save_state('twenty'):await()
  check(saved.path:find('^tinker://') and saved.n_steps == 20, 'save_state', saved.path)
  model:load_state(saved.path, { with_optimizer = true }):await()
  local restored = service:restore_training({ path = saved.path }):await()
  equal(restored:info().base_model, 'tnk/byte-lm', 'restore_training')
  restored:close()

  local sampler = model:save_weights_and_sampler():await()
  local params = { prompt = tnk.bytes 'hel', max_tokens = 8, temperature = 0 }
  local sample = sampler:sample(params):await()
  local sequence = sample.sequences[1]
  equal(#sequence.tokens, 8, 'sample')
  equal(sequence.stop_reason, 'length', 'stop_reason')
  equal(#sequence.logprobs, 8, 'logprobs')
  equal(#sampler:compute_logprobs({ prompt = tnk.bytes 'hello' }):await(), 5, 'compute_logprobs')

  local streamed, texts = {}, {}
  local stream = sampler:stream(params)
  for token, text, logprob in stream:tokens() do
    streamed[#streamed + 1] = token
    texts[#texts + 1] = text
    check(logprob <= 0, 'a token has a logprob', logprob)
  end
  equal(tnk.text(streamed), tnk.text(sequence.tokens), 'a stream has the tokens of a sample')
  equal(table.concat(texts), tnk.text(sequence.tokens), 'and their text')
  equal(#stream:await().sequences[1].tokens, 8, 'it is a future of the whole')

  local called, last = 0, nil
  stream = sampler:stream(params)
  stream:on_token(function(token, _, _, index)
    called = called + 1
    last = { token, index }
  end)
  stream:await()
  equal(called, 8, 'a function is called for each token')
  equal(last[2], 8, 'with its index')

  local again = service:create_sampler({ exported = sampler:export() }):await()
  equal(#again:sample({ prompt = { 104 }, max_tokens = 3, num_samples = 4 }):await().sequences, 4, 'num_samples')

  -- 200 at once, by callbacks.
  local left, waiting = 200, coroutine.running()
  for i = 1, 200 do
    sampler:sample({ prompt = { 104 }, max_tokens = 2, seed = i }):on(function(result, err)
      check(result and not err, 'a sample in a callback', err)
      left = left - 1
      if left == 0 then
        coroutine.resume(waiting)
      end
    end)
  end
  coroutine.yield()
  equal(left, 0, 'all callbacks were called')
  check(service:stats().n_requests > 200, 'stats')
  service:close():await()
end)

equal(tnk.run(function(value)
  return value
end, false), false, 'run returns what the function returns')

-- Work that is always due does not keep the host's loop from its other handles.
local iterations = 0
local check_handle = uv.new_check()
check_handle:start(function()
  iterations = iterations + 1
end)
tnk.run(function()
  local service = tnk.service()
  local settled = service:health()
  settled:await()
  iterations = 0
  for _ = 1, 50 do
    local again = coroutine.running()
    settled:on(function()
      coroutine.resume(again)
    end)
    coroutine.yield()
  end
  check(iterations >= 25, 'the host has its turns', iterations)
  service:close():await()
end)
check_handle:close()
-- luv 1.44 crashes when a Lua state ends before its loop has finished a close.
uv.run()
print 'ok - the end'
