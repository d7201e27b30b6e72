/* SPDX-License-Identifier: MIT */
#include "lib/wire/data/datum_json.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/limits.h"
#include "lib/wire/format/json_read.h"
#include "support/test.h"
#include "tnk/error.h"

static char text[512];

/* Read an example; the arena and the JSON stay until drop(). */
typedef struct {
  json_t *json;
  tnk__arena_t arena;
  tnk_datum_t datum;
} example_t;

static int read_example(example_t *e, const char *json) {
  text[0] = '\0';
  CHECK_INT(tnk__json_parse(&e->json, json, strlen(json)), TNK_OK);
  tnk__arena_init(&e->arena, test_allocator(), TNK__MIB);
  return tnk__datum_read(&e->datum, &e->arena, e->json, text, sizeof(text));
}

static void drop(example_t *e) {
  tnk__arena_deinit(&e->arena);
  json_decref(e->json);
}

static const char whole[] =
    "{\"model_input\":{\"chunks\":["
    "{\"type\":\"encoded_text\",\"tokens\":[1,2]},{\"tokens\":[]},"
    "{\"type\":\"image\",\"format\":\"png\",\"data\":\"iVA=\","
    "\"expected_tokens\":1},"
    "{\"type\":\"image_asset_pointer\",\"format\":\"jpeg\","
    "\"location\":\"s3://a\"},"
    "{\"type\":\"dmel\",\"dmel\":\"AgIDBA==\"}]},"
    "\"loss_fn_inputs\":{"
    "\"target_tokens\":{\"data\":[5,6,7],\"dtype\":\"int64\"},"
    "\"sparse\":{\"data\":[0.5,1],\"dtype\":\"float32\",\"shape\":[2,3],"
    "\"sparse_crow_indices\":[0,1,2],\"sparse_col_indices\":[2,0]},"
    "\"scale\":{\"data\":[2],\"dtype\":\"float32\",\"shape\":[]}},"
    "\"model_input_spans\":[{\"kind\":\"prompt\",\"sequence_id\":\"p\","
    "\"length\":2},{\"kind\":\"sampled\",\"sequence_id\":\"q\",\"offset\":4,"
    "\"length\":1}],\"loss_fn_input_spans\":[{\"kind\":"
    "\"sampled\",\"sequence_id\":\"q\",\"length\":3}],\"turns\":[{}]}";

TEST(datum_json_reads_every_form) {
  const tnk_loss_input_t *input;
  const tnk_chunk_t *chunks;
  example_t e;

  CHECK_INT(read_example(&e, whole), TNK_OK);
  CHECK_INT(e.datum.input.n_chunks, 5);
  chunks = e.datum.input.chunks;
  CHECK_INT(chunks[0].n_tokens, 2);
  CHECK_INT(chunks[0].tokens[1], 2);
  CHECK_INT(chunks[1].n_tokens, 0);
  CHECK_INT(chunks[2].kind, TNK_CHUNK_IMAGE);
  CHECK_INT(chunks[2].n_bytes, 2);
  CHECK(memcmp(chunks[2].bytes, "\x89P", 2) == 0);
  CHECK_INT(chunks[2].expected_tokens, 1);
  CHECK_INT(chunks[3].kind, TNK_CHUNK_IMAGE_POINTER);
  CHECK_INT(chunks[3].format, TNK_JPEG);
  CHECK_STR(chunks[3].location, "s3://a");
  CHECK_INT(chunks[3].expected_tokens, -1);
  CHECK_INT(chunks[4].kind, TNK_CHUNK_DMEL);
  CHECK_INT(chunks[4].n_bytes, 4);
  CHECK(memcmp(chunks[4].bytes, "\2\2\3\4", 4) == 0);
  CHECK_INT(e.datum.n_loss_inputs, 3);
  for (size_t i = 0; i < 3; i++) {
    input = &e.datum.loss_inputs[i];
    if (strcmp(input->name, "target_tokens") == 0) {
      CHECK_INT(input->tensor.n_values, 3);
      CHECK_INT(((const int64_t *)input->tensor.data)[2], 7);
    } else if (strcmp(input->name, "sparse") == 0) {
      CHECK_INT(input->tensor.n_dims, 2);
      CHECK_INT(input->tensor.crow[2], 2);
      CHECK_INT(input->tensor.col[0], 2);
      CHECK(((const double *)input->tensor.data)[0] == 0.5);
    }
  }
  e.datum.input.n_chunks = 3; /* training takes no pointers */
  tnk_data_check(&e.datum, 1, NULL, text, sizeof(text));
  CHECK_STR(text, "");
  drop(&e);
}

#define CHUNK(json)                                                            \
  "{\"model_input\":{\"chunks\":[" json "]},\"loss_fn_inputs\":{}}"
#define TENSOR(json)                                                           \
  "{\"model_input\":{\"chunks\":[]},\"loss_fn_inputs\":{\"w\":" json "}}"

#define SPANS(json)                                                            \
  "{\"model_input\":{\"chunks\":[]},\"loss_fn_inputs\":{},"                    \
  "\"model_input_spans\":" json "}"

static const char *const places[][2] = {
    {"[]", "it is not an object"},
    {"{}", "model_input is missing, or not an object"},
    {"{\"model_input\":{}}", "model_input.chunks is missing, or not an array"},
    {"{\"model_input\":{\"chunks\":[]}}",
     "loss_fn_inputs is missing, or not an object"},
    {CHUNK("1"), "model_input.chunks[0] is not an object"},
    {CHUNK("{}"), "model_input.chunks[0] has no array \"tokens\""},
    {CHUNK("{\"tokens\":[1]},{\"tokens\":[1,2.5]}"),
     "model_input.chunks[1].tokens[1] is not an integer"},
    {CHUNK("{\"tokens\":[4294967296]}"),
     "model_input.chunks[0].tokens[0] is 4294967296, more than 32 bits"},
    {CHUNK("{\"type\":\"x\"}"),
     "model_input.chunks[0].type is \"x\", which is not known"},
    {CHUNK("{\"type\":\"image\",\"format\":\"gif\"}"),
     "model_input.chunks[0].format is neither \"png\" nor \"jpeg\""},
    {CHUNK("{\"type\":\"image\",\"format\":\"png\"}"),
     "model_input.chunks[0] has no text \"data\""},
    {CHUNK("{\"type\":\"image\",\"format\":\"png\",\"data\":\"*\"}"),
     "model_input.chunks[0].data is not base64"},
    {CHUNK("{\"type\":\"image_asset_pointer\",\"format\":\"png\"}"),
     "model_input.chunks[0] has no text \"location\""},
    {CHUNK("{\"type\":\"image_asset_pointer\",\"expected_tokens\":-1}"),
     "model_input.chunks[0].expected_tokens is not a number of tokens"},
    {CHUNK("{\"type\":\"dmel\"}"),
     "model_input.chunks[0] has no text \"dmel\""},
    {CHUNK("{\"type\":\"dmel\",\"dmel\":\"A\"}"),
     "model_input.chunks[0].dmel is not base64"},
    {TENSOR("[1]"), "loss_fn_inputs.w has no array \"data\""},
    {TENSOR("{\"data\":[1]}"),
     "loss_fn_inputs.w.dtype is neither \"int64\" nor \"float32\""},
    {TENSOR("{\"data\":[1,1.5],\"dtype\":\"int64\"}"),
     "loss_fn_inputs.w.data[1] is not an integer"},
    {TENSOR("{\"data\":[1,null],\"dtype\":\"float32\"}"),
     "loss_fn_inputs.w.data[1] is not a number"},
    {TENSOR("{\"data\":[1],\"dtype\":\"int64\",\"shape\":1}"),
     "loss_fn_inputs.w.shape is not an array"},
    {TENSOR("{\"data\":[1],\"dtype\":\"int64\",\"shape\":[-1]}"),
     "loss_fn_inputs.w.shape[0] is not a size"},
    {TENSOR("{\"data\":[1],\"dtype\":\"int64\","
            "\"shape\":[1,1,1,1,1,1,1,1,1]}"),
     "loss_fn_inputs.w.shape has 9 dimensions, at most 8"},
    {TENSOR("{\"data\":[1,2],\"dtype\":\"int64\",\"shape\":[]}"),
     "loss_fn_inputs.w has 2 values, but its shape [] is that of one"},
    {TENSOR("{\"data\":[],\"dtype\":\"int64\","
            "\"sparse_crow_indices\":[0]}"),
     "loss_fn_inputs.w has only one of sparse_crow_indices and "
     "sparse_col_indices"},
    {TENSOR("{\"data\":[],\"dtype\":\"int64\",\"shape\":[2,2],"
            "\"sparse_crow_indices\":[0],\"sparse_col_indices\":[]}"),
     "loss_fn_inputs.w.sparse_crow_indices must have one entry more than "
     "rows"},
    {TENSOR("{\"data\":[],\"dtype\":\"int64\",\"shape\":[0,2],"
            "\"sparse_crow_indices\":[0],\"sparse_col_indices\":[1]}"),
     "loss_fn_inputs.w.sparse_col_indices must have as many entries as "
     "data"},
    {SPANS("1"), "model_input_spans is not an array"},
    {SPANS("[1]"),
     "model_input_spans[0].kind is neither \"prompt\" nor \"sampled\""},
    {SPANS("[{\"kind\":\"x\"}]"),
     "model_input_spans[0].kind is neither \"prompt\" nor \"sampled\""},
    {SPANS("[{\"kind\":\"prompt\"}]"),
     "model_input_spans[0] has no text \"sequence_id\""},
    {SPANS("[{\"kind\":\"prompt\",\"sequence_id\":\"p\",\"offset\":-1}]"),
     "model_input_spans[0].offset is not a number of tokens"},
    {SPANS("[{\"kind\":\"sampled\",\"sequence_id\":\"p\"}]"),
     "model_input_spans[0].length is not a number of tokens"},
};

TEST(datum_json_reads_provenance) {
  const tnk_span_t *spans;
  example_t e;

  CHECK_INT(read_example(&e, whole), TNK_OK);
  CHECK_INT(e.datum.n_input_spans, 2);
  spans = e.datum.input_spans;
  CHECK_INT(spans[0].kind, TNK_SPAN_PROMPT);
  CHECK_STR(spans[0].sequence_id, "p");
  CHECK_INT(spans[0].offset, 0);
  CHECK_INT(spans[0].length, 2);
  CHECK_INT(spans[1].kind, TNK_SPAN_SAMPLED);
  CHECK_STR(spans[1].sequence_id, "q");
  CHECK_INT(spans[1].offset, 4);
  CHECK_INT(spans[1].length, 1);
  CHECK_INT(e.datum.n_loss_input_spans, 1);
  CHECK_INT(e.datum.loss_input_spans[0].length, 3);
  drop(&e);
}

TEST(datum_json_names_the_place) {
  for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
    example_t e;
    CHECK_INT(read_example(&e, places[i][0]), TNK_EINVAL);
    CHECK_STR(text, places[i][1]);
    drop(&e);
  }
}

TEST(datum_json_without_memory) {
  int err = TNK_ENOMEM;

  for (long n = 0; err != TNK_OK; n++) {
    example_t e;
    CHECK(n < 100);
    test_alloc_fail_at(n);
    err = read_example(&e, whole);
    CHECK_INT(err, test_alloc_did_fail() ? TNK_ENOMEM : TNK_OK);
    test_alloc_fail_at(-1);
    drop(&e);
  }
}

TEST(datum_json_long_names_are_cut_in_the_sentence) {
  char json[512];
  example_t e;

  snprintf(
      json, sizeof(json),
      "{\"model_input\":{\"chunks\":[]},\"loss_fn_inputs\":{\"%0300d\":1}}", 0);
  CHECK_INT(read_example(&e, json), TNK_EINVAL);
  CHECK(strlen(text) < 200);
  CHECK(strstr(text, "has no array \"data\"") != NULL);
  drop(&e);
}
