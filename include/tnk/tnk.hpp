/* SPDX-License-Identifier: MIT */
#ifndef TNK_TNK_HPP
#define TNK_TNK_HPP

#if !defined(__cplusplus) || __cplusplus < 202002L
#error "tnk/tnk.hpp needs C++20; with an older standard include tnk/tnk.h"
#endif

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "tnk/tnk.h"

/*
 * The API for C++20: handles that release themselves, errors as exceptions,
 * arrays as std::span, and co_await for promises. All of it is inline and calls
 * the C functions, whose headers have the contracts. Every C function can still
 * be used: get() returns the C handle of an object.
 *
 *     tnk::task<double> step(tnk::training &model, const tnk::batch &batch) {
 *       tnk::promise pass = model.forward_backward(batch.data());
 *       co_await model.optim_step();
 *       co_return (co_await std::move(pass)).loss();
 *     }
 *
 * Everything belongs to the thread of the loop. A coroutine continues in a
 * callback of the loop.
 */
namespace tnk {

/** A rejected promise, or a call that failed. */
class error : public std::runtime_error {
public:
  error(int code, const std::string &text, int http_status = 0)
      : std::runtime_error(text), code_(code), http_status_(http_status) {
  }
  /** The error of a rejected promise. */
  explicit error(const tnk_promise_t *promise)
      : error(tnk_promise_status(promise), tnk_promise_text(promise),
              status_of(promise)) {
  }

  int code() const noexcept {
    return code_;
  }
  /** 0 if there was no response. */
  int http_status() const noexcept {
    return http_status_;
  }
  bool is_retryable() const {
    return tnk_err_is_retryable(code_) != 0;
  }

private:
  static int status_of(const tnk_promise_t *promise) {
    const tnk_error_t *why = tnk_promise_error(promise);
    return why != nullptr ? why->http_status : 0;
  }

  int code_;
  int http_status_;
};

/** The result of sample(). Valid as long as its promise. */
class samples {
public:
  explicit samples(const tnk_samples_t *result) : result_(result) {
  }

  std::size_t size() const {
    return tnk_samples_count(result_);
  }
  std::span<const std::int32_t> tokens(std::size_t index) const {
    std::size_t n = 0;
    const std::int32_t *values = tnk_samples_tokens(result_, index, &n);
    return {values, values != nullptr ? n : 0};
  }
  /** Empty if the service gave none. */
  std::span<const float> logprobs(std::size_t index) const {
    std::size_t n = 0;
    const float *values = tnk_samples_logprobs(result_, index, &n);
    return {values, values != nullptr ? n : 0};
  }
  tnk_stop_reason_t stop_reason(std::size_t index) const {
    return tnk_samples_stop_reason(result_, index);
  }
  const tnk_samples_t *get() const noexcept {
    return result_;
  }

private:
  const tnk_samples_t *result_;
};

class awaiter;

/** One reference to a promise. `co_await` gives the promise back once it has
 * resolved, and throws tnk::error if it rejects. */
class promise {
public:
  promise() = default;
  /** Takes the reference, such as that of an operation's result. */
  explicit promise(tnk_promise_t *taken) noexcept : promise_(taken) {
  }

  tnk_promise_t *get() const noexcept {
    return promise_.get();
  }
  tnk_promise_t *release() noexcept {
    return promise_.release();
  }
  promise copy() const {
    return promise(tnk_promise_ref(get()));
  }

  bool is_settled() const {
    return tnk_promise_state(get()) != TNK_PENDING;
  }
  int status() const {
    return tnk_promise_status(get());
  }
  void cancel() {
    tnk_promise_cancel(get());
  }
  /** Throw the error of a promise that is not resolved. */
  void check() const {
    if (status() != TNK_OK)
      throw error(get());
  }
  /** tnk_wait(), for scripts: not inside callbacks and coroutines. */
  void wait() const {
    const int err = tnk_wait(get());
    if (err != TNK_OK)
      throw status() == err ? error(get()) : error(err, tnk_strerror(err));
  }

  double loss() const {
    return tnk_pass_loss(of_type(tnk_promise_pass(get())));
  }
  const tnk_pass_t *pass() const {
    return of_type(tnk_promise_pass(get()));
  }
  tnk::samples samples() const {
    return tnk::samples(of_type(tnk_promise_samples(get())));
  }
  std::span<const float> logprobs() const {
    std::size_t n = 0;
    const float *values = of_type(tnk_promise_logprobs(get(), &n));
    return {values, n};
  }
  const char *path() const {
    return of_type(tnk_promise_path(get()));
  }

  inline awaiter operator co_await() &&;
  inline awaiter operator co_await() const &;

private:
  template <typename T> T *of_type(T *result) const {
    check();
    if (result == nullptr)
      throw error(TNK_EINVAL, "the promise has a result of another type");
    return result;
  }

  struct unref {
    void operator()(tnk_promise_t *taken) const {
      tnk_promise_unref(taken);
    }
  };
  std::unique_ptr<tnk_promise_t, unref> promise_;
};

/** What `co_await` needs of a promise. If the coroutine is destroyed while it
 * waits, the operation continues without it. */
class awaiter {
public:
  explicit awaiter(promise held) : held_(std::move(held)) {
  }
  awaiter(const awaiter &) = delete;
  awaiter &operator=(const awaiter &) = delete;
  ~awaiter() {
    if (waiting_)
      tnk_promise_forget(held_.get(), on_settled, this);
  }

  bool await_ready() const {
    return held_.is_settled();
  }
  void await_suspend(std::coroutine_handle<> coroutine) {
    const int err = tnk_then(tnk_promise_ref(held_.get()), on_settled, this);
    if (err != TNK_OK)
      throw error(err, tnk_strerror(err));
    waiting_ = coroutine;
  }
  promise await_resume() {
    held_.check();
    return std::move(held_);
  }

private:
  static void on_settled(tnk_promise_t *, int, void *user) {
    std::exchange(static_cast<awaiter *>(user)->waiting_, nullptr).resume();
  }

  promise held_;
  std::coroutine_handle<> waiting_;
};

inline awaiter promise::operator co_await() && {
  return awaiter(std::move(*this));
}
inline awaiter promise::operator co_await() const & {
  return awaiter(copy());
}

namespace detail {
/* The result of a coroutine. */
template <typename T> struct outcome {
  std::optional<T> value;
  void return_value(T result) {
    value.emplace(std::move(result));
  }
  T take() {
    return std::move(*value);
  }
};
template <> struct outcome<void> {
  void return_void() noexcept {
  }
  void take() noexcept {
  }
};
} // namespace detail

/** A coroutine that begins at once. Another coroutine may co_await it.
 * Destroying the task ends the coroutine where it waits; the coroutine itself
 * must not do that. */
template <typename T = void> class [[nodiscard]] task {
public:
  struct promise_type : detail::outcome<T> {
    struct final_awaiter {
      bool await_ready() const noexcept {
        return false;
      }
      std::coroutine_handle<>
      await_suspend(std::coroutine_handle<promise_type> ended) noexcept {
        if (ended.promise().next)
          return ended.promise().next;
        return std::noop_coroutine();
      }
      void await_resume() const noexcept {
      }
    };

    task get_return_object() {
      return task(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_never initial_suspend() const noexcept {
      return {};
    }
    final_awaiter final_suspend() const noexcept {
      return {};
    }
    void unhandled_exception() {
      failure = std::current_exception();
    }

    std::exception_ptr failure;
    std::coroutine_handle<> next;
  };

  task(task &&other) noexcept
      : coroutine_(std::exchange(other.coroutine_, nullptr)) {
  }
  task &operator=(task &&other) noexcept {
    std::swap(coroutine_, other.coroutine_);
    return *this;
  }
  ~task() {
    if (coroutine_)
      coroutine_.destroy();
  }

  bool is_done() const {
    return coroutine_.done();
  }
  /** The result, once, or the exception of the coroutine. It must be done. */
  T get() {
    if (!is_done())
      throw error(TNK_EPENDING, "the coroutine has not ended");
    if (coroutine_.promise().failure)
      std::rethrow_exception(coroutine_.promise().failure);
    return coroutine_.promise().take();
  }

  bool await_ready() const {
    return is_done();
  }
  void await_suspend(std::coroutine_handle<> next) {
    coroutine_.promise().next = next;
  }
  T await_resume() {
    return get();
  }

private:
  explicit task(std::coroutine_handle<promise_type> coroutine)
      : coroutine_(coroutine) {
  }

  std::coroutine_handle<promise_type> coroutine_;
};

/** Training data that owns its memory (batch.h). */
class batch {
public:
  batch() : batch_(tnk_batch_new(nullptr)) {
    if (!batch_)
      throw error(TNK_ENOMEM, tnk_strerror(TNK_ENOMEM));
  }

  /** @param weights  As many as tokens, or none: 1 for each. */
  void add_tokens(std::span<const std::int32_t> tokens,
                  std::span<const float> weights = {}) {
    if (!weights.empty() && weights.size() != tokens.size())
      throw error(TNK_EINVAL, "there are as many weights as tokens, or none");
    done(tnk_batch_add_tokens(get(), tokens.data(),
                              weights.empty() ? nullptr : weights.data(),
                              tokens.size()));
  }
  void add_sample(std::span<const std::int32_t> prompt, const samples &from,
                  std::size_t index, double advantage) {
    done(tnk_batch_add_sample(get(), prompt.data(), prompt.size(), from.get(),
                              index, advantage));
  }
  std::span<const tnk_datum_t> data() const {
    std::size_t n = 0;
    const tnk_datum_t *values = tnk_batch_data(get(), &n);
    return {values, n};
  }
  void clear() {
    tnk_batch_clear(get());
  }
  tnk_batch_t *get() const noexcept {
    return batch_.get();
  }

private:
  void done(int err) const {
    if (err != TNK_OK)
      throw error(err, tnk_batch_text(get()));
  }

  struct free_batch {
    void operator()(tnk_batch_t *taken) const {
      tnk_batch_free(taken);
    }
  };
  std::unique_ptr<tnk_batch_t, free_batch> batch_;
};

/** A sampling client, which is closed with the object. */
class sampling {
public:
  /** From a promise that has resolved with one. */
  explicit sampling(promise made) : made_(std::move(made)) {
    made_.check();
    client_ = tnk_promise_sampling(made_.get());
    if (client_ == nullptr)
      throw error(TNK_EINVAL, "the promise has no open sampling client");
  }
  sampling(sampling &&) = default;
  ~sampling() {
    /* NULL if the service has closed it. */
    if (tnk_promise_sampling(made_.get()) != nullptr)
      tnk_sampling_close(client_, nullptr, nullptr);
  }

  promise sample(std::span<const std::int32_t> prompt,
                 const tnk_sampling_params_t &params,
                 const tnk_sample_options_t *options = nullptr) {
    const tnk_model_input_t input = {prompt.data(), prompt.size(), nullptr, 0};
    return promise(tnk_sampling_sample(client_, &input, &params, options));
  }
  promise compute_logprobs(std::span<const std::int32_t> prompt) {
    const tnk_model_input_t input = {prompt.data(), prompt.size(), nullptr, 0};
    return promise(tnk_sampling_compute_logprobs(client_, &input, nullptr));
  }
  tnk_sampling_t *get() const noexcept {
    return client_;
  }

private:
  promise made_; /* the handle is valid as long as it */
  tnk_sampling_t *client_;
};

/** A training client, which is closed with the object. */
class training {
public:
  /** From a promise that has resolved with one. */
  explicit training(promise made) : made_(std::move(made)) {
    made_.check();
    client_ = tnk_promise_training(made_.get());
    if (client_ == nullptr)
      throw error(TNK_EINVAL, "the promise has no open training client");
  }
  training(training &&) = default;
  ~training() {
    if (tnk_promise_training(made_.get()) != nullptr)
      tnk_training_close(client_, nullptr, nullptr);
  }

  promise forward(std::span<const tnk_datum_t> data,
                  const tnk_pass_options_t *options = nullptr) {
    return promise(
        tnk_training_forward(client_, data.data(), data.size(), options));
  }
  promise forward_backward(std::span<const tnk_datum_t> data,
                           const tnk_pass_options_t *options = nullptr) {
    return promise(tnk_training_forward_backward(client_, data.data(),
                                                 data.size(), options));
  }
  promise optim_step(const tnk_optim_t *optim = nullptr) {
    return promise(tnk_training_optim_step(client_, optim));
  }
  promise save_state(const char *name,
                     const tnk_save_options_t *options = nullptr) {
    return promise(tnk_training_save_state(client_, name, options));
  }
  promise save_weights_and_get_sampling(
      tnk_sampling_kind_t kind,
      const tnk_sampling_options_t *options = nullptr) {
    return promise(
        tnk_training_save_weights_and_get_sampling(client_, kind, options));
  }
  tnk_training_t *get() const noexcept {
    return client_;
  }

private:
  promise made_;
  tnk_training_t *client_;
};

/** A service, which is closed with the object. Run the loop afterwards until it
 * ends. */
class service {
public:
  explicit service(uv_loop_t *loop,
                   const tnk_service_options_t *options = nullptr) {
    char why[512] = "";
    const int err =
        tnk_service_open(&service_, loop, options, why, sizeof(why));
    if (err != TNK_OK)
      throw error(err, why);
  }
  service(service &&other) noexcept
      : service_(std::exchange(other.service_, nullptr)) {
  }
  ~service() {
    close();
  }

  /** Pending promises reject with TNK_ECLOSED. */
  void close() {
    if (service_ != nullptr)
      tnk_service_close(std::exchange(service_, nullptr), nullptr, nullptr);
  }
  promise create_lora(const tnk_lora_options_t &options) {
    return promise(tnk_service_create_lora(service_, &options));
  }
  promise create_sampling(const tnk_sampling_options_t &options) {
    return promise(tnk_service_create_sampling(service_, &options));
  }
  promise restore(const tnk_restore_options_t &options) {
    return promise(tnk_service_restore(service_, &options));
  }
  promise capabilities() {
    return promise(tnk_service_capabilities(service_));
  }
  promise health() {
    return promise(tnk_service_health(service_));
  }
  tnk_service_t *get() const noexcept {
    return service_;
  }

private:
  tnk_service_t *service_ = nullptr;
};

} // namespace tnk

#endif
