/* SPDX-License-Identifier: MIT */
#include "gateway/telemetry/span.h"

#include <stdio.h>
#include <string.h>

#include "tnk/sampling.h"

enum { MAX_ATTRIBUTES = 24, MAX_NAME = 256, N_ENDS = 3 };

typedef struct {
  tnk_otlp_attribute_t items[MAX_ATTRIBUTES];
  size_t n;
} attributes_t;

static void put_text(attributes_t *all, const char *key, const char *text) {
  if (text != NULL)
    all->items[all->n++] = (tnk_otlp_attribute_t){.key = key, .text = text};
}

static void put_integer(attributes_t *all, const char *key, int64_t value) {
  all->items[all->n++] = (tnk_otlp_attribute_t){
      .key = key, .type = TNK_OTLP_INTEGER, .integer = value};
}

static void put_number(attributes_t *all, const char *key, double value) {
  all->items[all->n++] = (tnk_otlp_attribute_t){
      .key = key, .type = TNK_OTLP_NUMBER, .number = value};
}

static void put_given(attributes_t *all, const char *key, int64_t value) {
  if (value != TNK_ABSENT)
    put_integer(all, key, value);
}

static const char *const routes[] = {[TNK__GW_CHAT] = "/v1/chat/completions",
                                     [TNK__GW_COMPLETION] = "/v1/completions",
                                     [TNK__GW_MESSAGE] = "/v1/messages",
                                     [TNK__GW_RESPONSE] = "/v1/responses"};

int tnk__gw_span_is_route(const char *path, tnk__gw_api_t *api) {
  for (size_t i = 0; i < sizeof(routes) / sizeof(*routes); i++) {
    const size_t n = strlen(routes[i]);

    *api = (tnk__gw_api_t)i;
    if (strncmp(routes[i], path, n) == 0 &&
        (path[n] == '\0' || strcmp(path + n, "/") == 0))
      return 1;
  }
  return 0;
}

/* The parameters of the request. Without a body nothing could be read. */
static void put_request(attributes_t *all, const tnk__gw_ask_t *ask) {
  if (ask->body == NULL)
    return;
  if (ask->n > 1)
    put_integer(all, "gen_ai.request.choice.count", ask->n);
  put_given(all, "gen_ai.request.max_tokens", ask->max_tokens);
  put_given(all, "gen_ai.request.top_k", ask->top_k);
  put_given(all, "gen_ai.request.seed", ask->seed);
  if (ask->temperature != (double)TNK_ABSENT)
    put_number(all, "gen_ai.request.temperature", ask->temperature);
  if (ask->top_p != (double)TNK_ABSENT)
    put_number(all, "gen_ai.request.top_p", ask->top_p);
  if (ask->is_stream)
    all->items[all->n++] = (tnk_otlp_attribute_t){
        .key = "gen_ai.request.stream", .type = TNK_OTLP_BOOL, .integer = 1};
}

/* What it got. `id` and `reasons` have the memory of strings. */
static void put_answer(attributes_t *all, const tnk__gw_span_of_t *of,
                       char id[TNK__GW_MAX_NAME], const char **reasons) {
  static const char *const names[N_ENDS] = {[TNK__GW_END_STOP] = "stop",
                                            [TNK__GW_END_LENGTH] = "length",
                                            [TNK__GW_END_CALLS] = "tool_calls"};
  size_t n = 0;

  if (of->end->status != 200)
    return;
  put_text(all, "gen_ai.response.model", of->model);
  for (size_t i = 0; i < N_ENDS; i++)
    if ((of->ends >> i & 1) != 0)
      reasons[n++] = names[i];
  if (of->number == 0)
    return;
  tnk__gw_name(of->end->api, of->number, id);
  put_text(all, "gen_ai.response.id", id);
  all->items[all->n++] =
      (tnk_otlp_attribute_t){.key = "gen_ai.response.finish_reasons",
                             .type = TNK_OTLP_TEXTS,
                             .texts = reasons,
                             .n_texts = n};
  put_integer(all, "gen_ai.usage.input_tokens", (int64_t)of->end->n_prompt);
  put_integer(all, "gen_ai.usage.output_tokens", (int64_t)of->end->n_sampled);
  if (of->n_cached > 0)
    put_integer(all, "gen_ai.usage.cache_read.input_tokens",
                (int64_t)of->n_cached);
}

void tnk__gw_span_end(tnk_otlp_t *otlp, const tnk_otlp_span_t *span,
                      const tnk__gw_span_of_t *of) {
  const char *operation = tnk__gw_operation_name(of->end->api);
  const char *error = tnk__gw_error_type(of->end->status);
  const char *reasons[N_ENDS];
  char name[MAX_NAME], id[TNK__GW_MAX_NAME];
  attributes_t all = {.n = 0};
  /* An error of the client is no error of this span. */
  tnk_otlp_end_t end = {.name = name,
                        .kind = TNK_OTLP_SERVER,
                        .is_error = of->end->status >= 500,
                        .attributes = all.items};

  (void)snprintf(name, sizeof(name), "%s %s", operation, of->model);
  put_text(&all, "gen_ai.operation.name", operation);
  put_text(&all, "gen_ai.provider.name", "tinker");
  put_text(&all, "gen_ai.request.model", of->model);
  put_text(&all, "gen_ai.conversation.id", of->session);
  put_text(&all, "http.request.method", "POST");
  put_text(&all, "http.route", routes[of->end->api]);
  if (of->end->status > 0)
    put_integer(&all, "http.response.status_code", of->end->status);
  put_text(&all, "error.type", error[0] != '\0' ? error : NULL);
  put_request(&all, of->ask);
  put_answer(&all, of, id, reasons);
  if (of->n_attempts > 1)
    put_integer(&all, "tnk.attempts", of->n_attempts);
  if (of->version > 0)
    put_integer(&all, "tnk.weights.version", of->version);
  if (of->is_repeat)
    all.items[all.n++] = (tnk_otlp_attribute_t){
        .key = "tnk.is_repeat", .type = TNK_OTLP_BOOL, .integer = 1};
  end.n_attributes = all.n;
  tnk_otlp_end(otlp, span, &end);
}
