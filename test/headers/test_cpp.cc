/* SPDX-License-Identifier: MIT */
/* tnk/tnk.hpp without a server: nobody listens on port 1, so operations last
 * until they are canceled or the service closes. Output is TAP. */
#include <tnk/tnk.hpp>
#include <uv.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

int n_checks;

void check(bool is_ok, const char *what) {
  std::printf("%sok %d - %s\n", is_ok ? "" : "not ", ++n_checks, what);
  if (!is_ok)
    std::exit(1);
}

template <typename F> int code_of(F &&call) {
  try {
    call();
  } catch (const tnk::error &caught) {
    return caught.code();
  }
  return TNK_OK;
}

struct loop {
  uv_loop_t uv;

  loop() {
    check(uv_loop_init(&uv) == 0, "a loop begins");
  }
  ~loop() {
    uv_run(&uv, UV_RUN_DEFAULT);
    check(uv_loop_close(&uv) == 0, "nothing is left on the loop");
  }
};

tnk::service open_service(uv_loop_t *uv) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;

  options.base_url = "http://127.0.0.1:1";
  options.api_key = "tml-key";
  return tnk::service(uv, &options);
}

tnk::task<> wait_for(tnk::promise &wanted, int &n_resumed) {
  try {
    co_await wanted;
  } catch (const tnk::error &) {
    n_resumed++;
    throw;
  }
}

tnk::task<int> code_after(tnk::promise wanted, int &n_resumed) {
  try {
    co_await wait_for(wanted, n_resumed);
  } catch (const tnk::error &caught) {
    co_return caught.code();
  }
  co_return TNK_OK;
}

void an_awaited_error_is_thrown() {
  loop on;
  tnk::service service = open_service(&on.uv);
  tnk::promise health = service.health();
  int n = 0;
  tnk::task<int> task = code_after(health.copy(), n);

  check(!task.is_done() && !health.is_settled(), "a coroutine waits");
  check(code_of([&] { task.get(); }) == TNK_EPENDING, "it has no result yet");
  health.cancel();
  while (!task.is_done())
    uv_run(&on.uv, UV_RUN_ONCE);
  check(task.get() == TNK_ECANCELED && n == 1,
        "the error passes two coroutines");
  check(code_of([&] { health.loss(); }) == TNK_ECANCELED,
        "a rejected promise throws its error");
  n = 0;
  tnk::task<int> again = code_after(std::move(health), n);
  check(again.is_done() && again.get() == TNK_ECANCELED,
        "a settled promise is not waited for");
}

void a_destroyed_coroutine_does_not_continue() {
  loop on;
  tnk::service service = open_service(&on.uv);
  tnk::promise health = service.health();
  int n = 0;

  {
    tnk::task<> task = wait_for(health, n);
    check(!task.is_done(), "a coroutine waits");
  }
  health.cancel();
  while (!health.is_settled())
    uv_run(&on.uv, UV_RUN_ONCE);
  uv_run(&on.uv, UV_RUN_NOWAIT);
  check(n == 0, "a destroyed coroutine does not continue");
}

void a_closed_service_ends_what_waits() {
  loop on;
  int n = 0;
  std::optional<tnk::service> service = open_service(&on.uv);
  tnk::task<int> task = code_after(service->health(), n);

  service.reset();
  uv_run(&on.uv, UV_RUN_DEFAULT);
  check(task.is_done() && task.get() == TNK_ECLOSED,
        "a closed service ends what waits");
}

void errors_have_words() {
  loop on;
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  const std::int32_t one[] = {1};
  const std::int32_t three[] = {1, 2, 3};
  const float weights[] = {0, 1, 1};
  tnk::batch batch;

  options.api_key = "wrong";
  try {
    tnk::service service(&on.uv, &options);
    check(false, "a wrong key is refused");
  } catch (const std::exception &caught) {
    check(std::strstr(caught.what(), "key") != nullptr,
          "a wrong key is refused");
  }
  check(code_of([&] { batch.add_tokens(one); }) == TNK_EINVAL,
        "one token is too few");
  check(code_of([&] { batch.add_tokens(three, std::span(weights, 2)); }) ==
            TNK_EINVAL,
        "as many weights as tokens");
  batch.add_tokens(three, weights);
  batch.add_tokens(three);
  check(batch.data().size() == 2 && batch.data()[0].input.n_tokens == 2,
        "a batch has its data");
  batch.clear();
  check(batch.data().empty(), "a batch can be cleared");
  tnk::promise none;
  check(none.status() == TNK_EINVAL &&
            code_of([&] { none.wait(); }) == TNK_EINVAL &&
            code_of([&] { tnk::training from(std::move(none)); }) == TNK_EINVAL,
        "no promise is an error");
}

} // namespace

int main() {
  an_awaited_error_is_thrown();
  a_destroyed_coroutine_does_not_continue();
  a_closed_service_ends_what_waits();
  errors_have_words();
  std::printf("1..%d\n", n_checks);
}
