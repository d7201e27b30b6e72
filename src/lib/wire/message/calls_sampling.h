/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_WIRE_MESSAGE_CALLS_SAMPLING_H
#define TNK_LIB_WIRE_MESSAGE_CALLS_SAMPLING_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/buf.h"

/* Bodies and responses of the calls that create sampling clients. The rules of
 * lib/wire/message/calls_session.h apply. */

void tnk__create_sampling_write(tnk__buf_t *out, const char *session_id,
                                uint64_t sampling_seq_id,
                                const char *base_model, const char *model_path);
int tnk__create_sampling_read(const char **sampling_session_id,
                              tnk__arena_t *arena, const uint8_t *body,
                              size_t n);

/* Request the number of another client of a sampling session. */
void tnk__join_sampling_write(tnk__buf_t *out, const char *sampling_session_id);
int tnk__join_sampling_read(uint64_t *client_counter, const uint8_t *body,
                            size_t n);

/* The response of GET samplers/{id}. */
typedef struct {
  const char *sampler_id; /* or NULL */
  const char *base_model;
  const char *model_path; /* or NULL */
} tnk__sampler_t;

int tnk__sampler_read(tnk__sampler_t *out, tnk__arena_t *arena,
                      const uint8_t *body, size_t n);

#endif
