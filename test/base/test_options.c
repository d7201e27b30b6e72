#include "base/options.h"

#include <stdlib.h>
#include <string.h>

#include "support/test.h"
#include "tnk/tnk.h"

/* A new field must not be able to hide in tail padding. */
#define NO_TAIL_PADDING(type, last)                                            \
  _Static_assert(                                                              \
      offsetof(type, last) + sizeof(((type *)0)->last) == sizeof(type), #type)

NO_TAIL_PADDING(tnk_service_options_t, reserved);
NO_TAIL_PADDING(tnk_lora_options_t, reserved);
NO_TAIL_PADDING(tnk_restore_options_t, reserved);
NO_TAIL_PADDING(tnk_sampling_options_t, reserved);
NO_TAIL_PADDING(tnk_pass_options_t, reserved);
NO_TAIL_PADDING(tnk_adam_t, grad_clip_norm);
NO_TAIL_PADDING(tnk_dimuon_t, beta1);
NO_TAIL_PADDING(tnk_save_options_t, n_recipients);
NO_TAIL_PADDING(tnk_sampling_params_t, n_stop_tokens);
NO_TAIL_PADDING(tnk_sample_options_t, reserved);

/* Three releases of one options struct; the library under test is at v2. */
struct v1 {
  size_t size;
  long long a;
};
struct v2 {
  size_t size;
  long long a;
  long long b;
};
struct v3 {
  size_t size;
  long long a;
  long long b;
  long long c;
};

/* A heap block of exactly the caller's size lets ASan see any over-read. */
static int load(struct v2 *out, const void *src, size_t size) {
  void *exact;
  int err;

  *out = (struct v2){sizeof(*out), 7, 9};
  exact = malloc(size);
  CHECK(exact != NULL);
  memcpy(exact, src, size);
  err = tnk__options_load(out, sizeof(*out), exact, sizeof(struct v1));
  free(exact);
  return err;
}

TEST(options_older_caller_keeps_defaults) {
  struct v1 older = {sizeof(older), 1};
  struct v2 got;

  CHECK_INT(load(&got, &older, sizeof(older)), TNK_OK);
  CHECK(got.a == 1 && got.b == 9 && got.size == sizeof(got));
}

TEST(options_newer_caller_is_accepted_while_unknown_bytes_are_zero) {
  struct v3 newer = {sizeof(newer), 2, 3, 0};
  struct v2 got;

  CHECK_INT(load(&got, &newer, sizeof(newer)), TNK_OK);
  CHECK(got.a == 2 && got.b == 3 && got.size == sizeof(got));
  newer.c = 1;
  CHECK_INT(load(&got, &newer, sizeof(newer)), TNK_ENOTSUP);
}

TEST(options_uninitialised_size_is_refused_and_null_is_default) {
  struct v1 older = {0, 1};
  struct v2 got = {sizeof(got), 7, 9};

  CHECK_INT(load(&got, &older, sizeof(older)), TNK_EINVAL);
  CHECK_INT(tnk__options_load(&got, sizeof(got), NULL, sizeof(older)), TNK_OK);
  CHECK(got.a == 7 && got.b == 9);
}
