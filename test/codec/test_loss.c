/* SPDX-License-Identifier: MIT */
/* Losses of the caller's on the service: checked, written, read. */
#include <string.h>

#include "codec/loss_graph.h"
#include "lib/base/limits.h"
#include "lib/wire/data/check.h"
#include "lib/wire/message/calls_training.h"
#include "support/test.h"
#include "tnk/error.h"

static char text[256];

static void expect(const tnk_loss_options_t *options, const char *sentence) {
  int err = tnk__check_new_loss(options, text, sizeof(text));

  if (sentence == NULL) {
    CHECK_INT(err, TNK_OK);
    return;
  }
  CHECK_INT(err, TNK_EINVAL);
  CHECK_STR(text, sentence);
}

TEST(P5_7_vector_L) {
  static const char front[] =
      "{\"session_id\":\"S1\",\"custom_loss_seq_id\":0,\"name\":\"nll\","
      "\"inputs\":[{\"name\":\"logprobs\",\"rank\":1},"
      "{\"name\":\"advantages\",\"rank\":1}],\"graph\":";
  static const char back[] = ",\"type\":\"create_custom_loss\"}";
  const size_t n = strlen(loss_graph);
  tnk_loss_options_t options = loss_options();
  tnk__buf_t buf;

  tnk__buf_init(&buf, test_allocator(), TNK__MIB);
  tnk__create_loss_write(&buf, "S1", 0, &options);
  CHECK_INT(buf.err, TNK_OK);
  CHECK_INT(buf.len, strlen(front) + n + strlen(back));
  CHECK_MEM(buf.data, strlen(front), front, strlen(front));
  CHECK_MEM(buf.data + strlen(front), n, loss_graph, n);
  CHECK_MEM(buf.data + strlen(front) + n, strlen(back), back, strlen(back));
  tnk__buf_deinit(&buf);
  expect(&options, NULL);
}

TEST(P5_7_the_result_is_an_id) {
  static const char good[] = "{\"loss_id\":\"L1\"}";
  static const char bad[] = "{\"loss_id\":1}";
  tnk__arena_t arena;
  const char *id = NULL;

  tnk__arena_init(&arena, test_allocator(), TNK__MIB);
  CHECK_INT(
      tnk__create_loss_read(&id, &arena, (const uint8_t *)good, strlen(good)),
      TNK_OK);
  CHECK_STR(id, "L1");
  CHECK_INT(
      tnk__create_loss_read(&id, &arena, (const uint8_t *)bad, strlen(bad)),
      TNK_EPROTO);
  tnk__arena_deinit(&arena);
}

TEST(P5_7_what_a_loss_is_called_with) {
  tnk_loss_argument_t arguments[17] = {{.name = "logprobs"}, {.name = "a_1"}};
  tnk_loss_options_t options = loss_options();
  char name[66];

  options.name = "";
  expect(&options, "name is empty");
  options = loss_options();
  options.n_arguments = 0;
  expect(&options, "arguments is missing");
  options.arguments = arguments;
  options.n_arguments = 17;
  expect(&options, "there are 17 arguments, at most 16");
  options.n_arguments = 2;
  arguments[1].n_dims = 3;
  expect(&options, "argument 1: \"a_1\" has 3 dimensions, at most 2");
  arguments[1] = (tnk_loss_argument_t){.name = "logprobs"};
  expect(&options, "argument 1: \"logprobs\" is given twice");
  memset(name, 'a', 65);
  name[65] = '\0';
  for (int i = 0; i < 4; i++) {
    static const char *const names[] = {"", "A", "1a", NULL};

    arguments[1].name = names[i] != NULL ? names[i] : name;
    expect(&options, "argument 1: its name must be 1 to 64 lowercase letters, "
                     "digits and underscores, and must not begin with a digit");
  }
  arguments[0].name = "advantages";
  expect(&options, "argument 0: the first one must be \"logprobs\"");
}

#define NODE(op, name, target)                                                 \
  "{\"op\":\"" op "\",\"name\":\"" name "\",\"target\":\"" target              \
  "\",\"args\":[],\"kwargs\":{}}"
#define GRAPH(nodes) "{\"format\":1,\"nodes\":[" nodes "]}"
#define P0 NODE("placeholder", "x", "logprobs")
#define P1 NODE("placeholder", "y", "advantages")
#define OUT NODE("output", "output", "output")

TEST(P5_7_the_form_of_a_graph) {
  static const struct {
    const char *graph;
    const char *sentence;
  } cases[] = {
      {GRAPH(P0 "," P1 "," OUT), NULL},
      {"[]", "the graph is not an object in JSON"},
      {"{", "the graph is not an object in JSON"},
      {"{\"nodes\":[]}", "the graph has no \"format\" of 1"},
      {"{\"format\":2,\"nodes\":[]}", "the graph has no \"format\" of 1"},
      {"{\"format\":1}", "the graph has no nodes"},
      {GRAPH("1"), "graph node 0: it has no text under \"op\""},
      {GRAPH(P0 ",{\"op\":\"x\"}"),
       "graph node 1: it has no text under \"name\""},
      {GRAPH("{\"op\":\"x\",\"name\":\"x\",\"target\":\"\"}"),
       "graph node 0: it has no text under \"target\""},
      {GRAPH("{\"op\":\"x\",\"name\":\"x\",\"target\":\"y\"}"),
       "graph node 0: it has no array under \"args\""},
      {GRAPH("{\"op\":\"x\",\"name\":\"x\",\"target\":\"y\",\"args\":[]}"),
       "graph node 0: it has no object under \"kwargs\""},
      {GRAPH(P0 "," P1), "graph node 1: it is the last one and no output"},
      {GRAPH(P0 "," OUT "," OUT),
       "graph node 1: it is an output and not the last one"},
      {GRAPH(P0 "," OUT),
       "graph node 1: there is no placeholder for \"advantages\""},
      {GRAPH(P1 "," P0 "," OUT),
       "graph node 0: it stands for \"advantages\", expected \"logprobs\""},
      {GRAPH(P0 "," P1 "," P1 "," OUT),
       "graph node 2: there is no argument for its \"advantages\""},
  };
  tnk_loss_options_t options = loss_options();

  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    options.graph = cases[i].graph;
    expect(&options, cases[i].sentence);
  }
  options.graph = NULL;
  CHECK_INT(tnk__check_new_loss(&options, text, sizeof(text)), TNK_EINVAL);
}

TEST(P5_7_data_has_what_the_loss_reads) {
  static const int32_t tokens[] = {1, 2};
  static const int64_t targets[] = {2, 3};
  static const float advantages[] = {1, 2};
  tnk_loss_input_t input = {"advantages", tnk_tensor_f32(advantages, 2)};
  tnk_datum_t data[2] = {
      {.input = {.tokens = tokens, .n_tokens = 2},
       .targets = targets,
       .loss_inputs = &input,
       .n_loss_inputs = 1},
      {.input = {.tokens = tokens, .n_tokens = 2}, .targets = targets}};
  tnk_loss_argument_t arguments[] = {{.name = "logprobs"},
                                     {.name = "advantages", .n_dims = 1}};

#define CHECK_DATA() tnk__check_arguments(data, 2, arguments, 2, text, 256)
  CHECK_INT(CHECK_DATA(), TNK_EINVAL);
  CHECK_STR(text, "datum 1: the loss needs \"advantages\"");
  data[1] = data[0];
  CHECK_INT(CHECK_DATA(), TNK_OK);
  arguments[1].n_dims = 2;
  CHECK_INT(CHECK_DATA(), TNK_EINVAL);
  CHECK_STR(text, "datum 0: \"advantages\" has 1 dimension, the loss reads 2");
  arguments[1].n_dims = 0;
  input.tensor.n_dims = 2;
  input.tensor.shape[0] = 2;
  input.tensor.shape[1] = 1;
  CHECK_INT(CHECK_DATA(), TNK_EINVAL);
  CHECK_STR(text, "datum 0: \"advantages\" has 2 dimensions, the loss reads 1");
  input.tensor.n_dims = 0;
  data[0].targets = NULL;
  CHECK_INT(CHECK_DATA(), TNK_EINVAL);
  CHECK_STR(text, "datum 0: the loss needs \"target_tokens\"");
}
