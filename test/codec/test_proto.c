/* SPDX-License-Identifier: MIT */
#include "tinker.pb-c.h"

#include "codec/vectors.h"
#include "support/test.h"

/* Unpack a vector and pack it again: our schema must lose nothing of it. */
static void check_round_trip(const ProtobufCMessageDescriptor *type,
                             const char *hex) {
  uint8_t bytes[1024];
  uint8_t again[1024];
  size_t n = test_unhex(bytes, sizeof(bytes), hex);
  ProtobufCMessage *message = protobuf_c_message_unpack(type, NULL, n, bytes);

  CHECK(message != NULL);
  CHECK(message->n_unknown_fields == 0);
  CHECK_INT(protobuf_c_message_get_packed_size(message), n);
  CHECK_MEM(again, protobuf_c_message_pack(message, again), bytes, n);
  protobuf_c_message_free_unpacked(message, NULL);
}

TEST(schema_keeps_requests) {
  const ProtobufCMessageDescriptor *type =
      &tinker_public__forward_backward_request__descriptor;

  check_round_trip(type, VEC_A);
  check_round_trip(type, VEC_B);
  check_round_trip(type, VEC_C);
  check_round_trip(type, VEC_D);
  check_round_trip(type, VEC_E);
  check_round_trip(type, VEC_F);
  check_round_trip(type, VEC_G);
  check_round_trip(&tinker_public__image_chunk__descriptor, VEC_H);
}

TEST(schema_keeps_answers) {
  check_round_trip(&tinker_public__sample_response__descriptor, VEC_I1);
  check_round_trip(&tinker_public__sample_response__descriptor, VEC_I2);
  check_round_trip(&tinker_public__sample_response__descriptor, VEC_I3);
  check_round_trip(&tinker_public__sample_response__descriptor, VEC_I4);
  check_round_trip(&tinker_public__forward_backward_output__descriptor, VEC_J1);
  check_round_trip(&tinker_public__forward_backward_output__descriptor, VEC_J2);
  check_round_trip(&tinker_public__forward_backward_output__descriptor, VEC_J3);
}

/* The decoder recurses without a limit, so no message may contain itself. */
static int depth_of(const ProtobufCMessageDescriptor *type, int limit) {
  int deepest = 0;

  if (limit == 0)
    return 1;
  for (unsigned i = 0; i < type->n_fields; i++) {
    if (type->fields[i].type == PROTOBUF_C_TYPE_MESSAGE) {
      int depth = depth_of(type->fields[i].descriptor, limit - 1);

      deepest = depth > deepest ? depth : deepest;
    }
  }
  return deepest + 1;
}

TEST(schema_is_not_recursive) {
  CHECK(depth_of(&tinker_public__forward_backward_request__descriptor, 10) < 8);
  CHECK(depth_of(&tinker_public__forward_backward_output__descriptor, 10) < 8);
  CHECK(depth_of(&tinker_public__sample_response__descriptor, 10) < 8);
}
