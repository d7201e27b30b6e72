/* SPDX-License-Identifier: MIT */
/* tnk chat. */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/wire/format/json_read.h"
#include "tnk/hosted.h"
#include "tools/common/base/input.h"
#include "tools/common/base/terminal.h"
#include "tools/common/frame/commands.h"
#include "tools/tnk/ask/prompt.h"
#include "tools/tnk/out/json.h"

static struct {
  const char *model;
  const char *system;
  const char *path;
  int64_t max_tokens;
  double temperature;
} args = {.max_tokens = TNK_ABSENT, .temperature = TNK_ABSENT};

static const cli_option_t options[] = {
    {.name = "model",
     .letter = 'm',
     .value = "NAME",
     .text = &args.model,
     .help = "Name of a model, or sampler weights, tinker://..."},
    {.name = "system",
     .value = "TEXT",
     .text = &args.system,
     .help = "System message."},
    {.name = "max-tokens",
     .value = "N",
     .number = &args.max_tokens,
     .min = 1,
     .max = INT32_MAX,
     .help = "Maximum number of tokens of an answer. Default: the service's."},
    {.name = "temperature",
     .value = "T",
     .real = &args.temperature,
     .max_real = 100,
     .help = "Temperature; 0 always selects the likeliest token. Default: the "
             "service's."},
    {.name = "path",
     .value = "PATH",
     .text = &args.path,
     .help = "Path of the endpoint, such as /v1/chat/completions for a "
             "gateway. Default: that of the hosted service."},
    {.name = NULL}};

static const char *check(const cli_t *cli) {
  (void)cli;
  if (args.model == NULL)
    return "--model is missing";
  if (args.path != NULL && (args.path[0] != '/' || args.path[1] == '/'))
    return "--path must begin with one /";
  return NULL;
}

/* ---- A turn ---- */

typedef struct {
  const cli_t *cli;
  cli_ask_t ask;
  cli_lines_t lines;
  json_t *messages;
  tnk__buf_t answer; /* of this turn */
  char finish[32];   /* the finish reason; "": unknown */
  int is_broken;     /* memory for it was missing */
} chat_t;

static int add(chat_t *chat, const char *role, const char *text, size_t n) {
  return json_array_append_new(chat->messages,
                               json_pack("{s:s, s:o}", "role", role, "content",
                                         json_stringn(text, n))) == 0
             ? CLI_EXIT_OK
             : cli_fail(chat->cli, CLI_EXIT_USAGE, "the message is not UTF-8");
}

/* Add an event to the answer; events of other kinds are ignored. */
static void take(chat_t *chat, const json_t *event) {
  const json_t *choice = json_array_get(tnk__json_arr(event, "choices"), 0);
  const char *reason = tnk__json_str(choice, "finish_reason");
  const json_t *text =
      json_object_get(tnk__json_obj(choice, "delta"), "content");
  const size_t n = json_string_length(text);

  if (reason != NULL)
    snprintf(chat->finish, sizeof(chat->finish), "%s", reason);
  if (n == 0)
    return;
  chat->is_broken |=
      tnk__buf_append(&chat->answer, json_string_value(text), n) != TNK_OK;
  if (chat->cli->json)
    return;
  cli_ask_hush(&chat->ask);
  cli_put_shown(stdout, json_string_value(text), n);
  fflush(stdout);
}

static int on_event(const tnk_hosted_event_t *event, void *user) {
  chat_t *chat = user;
  json_t *json = NULL;

  if (tnk__json_parse_object(&json, event->data, event->n_data) == TNK_OK)
    take(chat, json);
  json_decref(json);
  return chat->is_broken || ferror(stdout) != 0;
}

/* The request body, which the caller frees; NULL without memory. */
static char *body_of(const chat_t *chat) {
  json_t *body = json_pack("{s:s, s:O, s:b}", "model", args.model, "messages",
                           chat->messages, "stream", 1);
  char *text;

  if (args.max_tokens != TNK_ABSENT)
    json_object_set_new(body, "max_tokens", json_integer(args.max_tokens));
  if (args.temperature != TNK_ABSENT)
    json_object_set_new(body, "temperature", json_real(args.temperature));
  text = body != NULL ? json_dumps(body, JSON_COMPACT) : NULL;
  json_decref(body);
  return text;
}

/* If the server has no such endpoint, a list of models would not help. */
static const char *hint_of(const tnk_promise_t *promise) {
  return tnk_promise_status(promise) == TNK_ENOTFOUND
             ? "Not every service has chat endpoints; tnk local has none. "
               "Select "
               "another path with --path, for example of a gateway, or use tnk "
               "sample."
             : NULL;
}

static int answer(chat_t *chat) {
  tnk_hosted_request_t request = TNK_HOSTED_REQUEST_INIT;
  char *body = body_of(chat);
  tnk_promise_t *promise;
  int status = CLI_EXIT_OK;

  if (body == NULL)
    return cli_fail(chat->cli, CLI_EXIT_FAILED, "out of memory");
  tnk__buf_clear(&chat->answer);
  chat->finish[0] = '\0';
  request.body = body;
  request.path = args.path;
  request.on_event = on_event;
  request.user = chat;
  promise = tnk_service_hosted(chat->ask.service, &request);
  free(body);
  if (cli_ask_wait(&chat->ask, promise) != TNK_OK)
    status = chat->is_broken
                 ? cli_fail(chat->cli, CLI_EXIT_FAILED, "out of memory")
                 : CLI_EXIT_FAILED;
  /* The received part has been printed already. */
  if (!chat->cli->json && chat->answer.len > 0)
    putchar('\n');
  fflush(stdout);
  if (status != CLI_EXIT_OK && !chat->is_broken)
    status = cli_ask_failed_with_hint(&chat->ask, promise, hint_of(promise));
  tnk_promise_unref(promise);
  if (status != CLI_EXIT_OK)
    return status;
  return add(chat, "assistant",
             chat->answer.len > 0 ? (const char *)chat->answer.data : "",
             chat->answer.len);
}

static int turn(chat_t *chat, const char *text, size_t n) {
  int status = add(chat, "user", text, n);

  return status == CLI_EXIT_OK ? answer(chat) : status;
}

/* ---- The conversation ---- */

static int is_blank(const char *text, size_t n) {
  while (n > 0 && strchr(" \t\r\n", text[n - 1]) != NULL)
    n--;
  return n == 0;
}

/* Each line is a turn, until the input ends. A user may try again after a
 * failure. For other input the first failure ends the command. */
static int talk(chat_t *chat) {
  const int is_person = cli_may_ask(chat->cli);
  int status = CLI_EXIT_OK;

  while (status == CLI_EXIT_OK) {
    const size_t n_before = json_array_size(chat->messages);
    const char *line;
    size_t n;
    int got = cli_ask_line(&chat->ask, &chat->lines, is_person ? "> " : NULL,
                           &line, &n);

    if (got == 0)
      break;
    if (got < 0)
      return cli_ask_is_over(&chat->ask)
                 ? CLI_EXIT_INTERRUPT
                 : cli_fail(chat->cli, CLI_EXIT_FILE,
                            "a line of the input is larger than 1 MiB, or "
                            "than the memory");
    if (is_blank(line, n))
      continue;
    status = turn(chat, line, n);
    if (status == CLI_EXIT_OK || !is_person || cli_ask_is_over(&chat->ask))
      continue;
    /* Remove the failed turn. */
    while (json_array_size(chat->messages) > n_before)
      json_array_remove(chat->messages, n_before);
    status = CLI_EXIT_OK;
  }
  return status;
}

/* The prompt is the argument or the whole input. */
static int talk_once(chat_t *chat) {
  const char *text = chat->cli->words[0];
  char why[512];
  char *read;
  size_t n;
  int status;

  if (strcmp(text, "-") != 0)
    return turn(chat, text, strlen(text));
  read = cli_read_file(text, &n, why, sizeof(why));
  if (read == NULL)
    return cli_fail(chat->cli, CLI_EXIT_FILE, "%s", why);
  status = turn(chat, read, n);
  free(read);
  return status;
}

static int print_json(const chat_t *chat) {
  char *messages = json_dumps(chat->messages, JSON_COMPACT);
  cli_json_t json;
  int status;

  if (messages == NULL)
    return cli_fail(chat->cli, CLI_EXIT_FAILED, "out of memory");
  cli_json_begin(&json);
  tnk__json_put_text(&json.w, "model", args.model);
  tnk__json_put_raw(&json.w, "messages", messages);
  tnk__json_put_text(&json.w, "finish_reason",
                     chat->finish[0] != '\0' ? chat->finish : NULL);
  status = cli_json_end(&json, chat->cli);
  free(messages);
  return status;
}

static int converse(chat_t *chat) {
  int status = CLI_EXIT_OK;

  chat->messages = json_array();
  if (chat->messages == NULL)
    return cli_fail(chat->cli, CLI_EXIT_FAILED, "out of memory");
  if (args.system != NULL)
    status = add(chat, "system", args.system, strlen(args.system));
  if (status == CLI_EXIT_OK)
    status = chat->cli->n_words > 0 ? talk_once(chat) : talk(chat);
  if (status == CLI_EXIT_OK && chat->cli->json)
    status = print_json(chat);
  return status;
}

static int run(cli_t *cli) {
  chat_t chat = {.cli = cli};
  int status = cli_ask_open(&chat.ask, cli, NULL);

  tnk__buf_init(&chat.answer, tnk__allocator_default(), (size_t)64 << 20);
  if (status == CLI_EXIT_OK)
    status = converse(&chat);
  status = cli_ask_close(&chat.ask, status);
  json_decref(chat.messages);
  tnk__buf_deinit(&chat.answer);
  cli_lines_free(&chat.lines);
  return status;
}

static const cli_item_t examples[] = {
    {"tnk chat --model Qwen/Qwen3-8B", "talks, a line at a time"},
    {"tnk chat -m tinker://RUN/sampler_weights/NAME --json - <question",
     "one answer, from trained weights"},
    {NULL, NULL}};

const cli_command_t cli_chat = {
    .name = "chat",
    .brief = "chat with a model of the service",
    .about = "Chat with a model. Each input line is sent, and the answer is "
             "printed while it arrives. The conversation ends with the input. "
             "With TEXT, or with - for all of standard input, there is one "
             "question and one answer. This uses the service's chat endpoint, "
             "so it needs no tokenizer.",
    .words = "[TEXT]",
    .options = options,
    .examples = examples,
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .check = check,
    .run = run,
};
