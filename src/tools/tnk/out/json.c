/* SPDX-License-Identifier: MIT */
#include "tools/tnk/out/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/utf8.h"
#include "lib/wire/format/time_text.h"
#include "tnk/error.h"
#include "tools/common/base/terminal.h"

void cli_json_begin(cli_json_t *json) {
  tnk__buf_init(&json->buf, tnk__allocator_default(), SIZE_MAX / 4);
  tnk__json_writer_init(&json->w, &json->buf);
  tnk__json_begin_object(&json->w);
}

char *cli_json_take(cli_json_t *json) {
  const char *text = NULL;
  char *copy = NULL;

  tnk__json_end(&json->w);
  if (tnk__json_finish(&json->w) == TNK_OK)
    text = tnk__buf_cstr(&json->buf);
  if (text != NULL)
    copy = malloc(json->buf.len + 1);
  if (copy != NULL)
    memcpy(copy, text, json->buf.len + 1);
  tnk__buf_deinit(&json->buf);
  return copy;
}

void cli_json_drop(cli_json_t *json) {
  tnk__buf_deinit(&json->buf);
}

/* ---- Layout ---- */

static void begin_line(size_t depth) {
  printf("\n%*s", (int)(2 * depth), "");
}

/* Print the string that begins at `at`. Returns its end. */
static const char *put_string(const char *at) {
  int is_escaped = 0;

  putchar(*at++);
  while (*at != '\0' && (is_escaped || *at != '"')) {
    const char *begin = at;
    unsigned long code = cli_next_char(&at);

    is_escaped = !is_escaped && code == '\\';
    /* All of them are below U+10000; those below a space are escaped
     * already. */
    if (cli_is_harmful(code))
      printf("\\u%04lx", code);
    else
      fwrite(begin, 1, (size_t)(at - begin), stdout);
  }
  if (*at != '\0')
    putchar(*at++);
  return at;
}

/* `text` is compact JSON. */
static void put_lines(const char *text) {
  size_t depth = 0;

  while (*text != '\0') {
    char c = *text;

    if (c == '"') {
      text = put_string(text);
      continue;
    }
    text++;
    /* Whitespace of JSON that a server wrote. */
    if (c == ' ' || c == '\n' || c == '\r' || c == '\t')
      continue;
    if (c == '}' || c == ']')
      begin_line(--depth);
    putchar(c);
    if ((c == '{' || c == '[') && (*text == '}' || *text == ']'))
      putchar(*text++);
    else if (c == '{' || c == '[')
      begin_line(++depth);
    else if (c == ',')
      begin_line(depth);
    else if (c == ':')
      putchar(' ');
  }
  putchar('\n');
}

int cli_json_end(cli_json_t *json, const cli_t *cli) {
  const char *text = NULL;
  int status = CLI_EXIT_OK;
  int err;

  tnk__json_end(&json->w);
  err = tnk__json_finish(&json->w);
  if (err == TNK_OK)
    text = tnk__buf_cstr(&json->buf);
  if (text != NULL)
    put_lines(text);
  else
    status = cli_fail(cli, CLI_EXIT_FAILED, "the result: %s",
                      tnk_strerror(err != TNK_OK ? err : TNK_ENOMEM));
  tnk__buf_deinit(&json->buf);
  return status;
}

/* ---- Members ---- */

void cli_json_put_odd_text(cli_json_t *json, const char *key,
                           const char *text) {
  char *copy = tnk__strdup(tnk__allocator_default(), text);

  /* If memory is missing, the document fails as well. */
  if (copy != NULL)
    tnk__utf8_repair(copy);
  tnk__json_put_text(&json->w, key, copy);
  tnk__free(tnk__allocator_default(), copy);
}

void cli_json_put_time(cli_json_t *json, const char *key, int64_t us) {
  char text[TNK__TIME_TEXT];

  if (us != 0)
    tnk__time_write(text, us);
  tnk__json_put_text(&json->w, key, us != 0 ? text : NULL);
}

void cli_json_put_number(cli_json_t *json, const char *key, int64_t value,
                         int is_known) {
  tnk__json_key(&json->w, key);
  if (is_known)
    tnk__json_int(&json->w, value);
  else
    tnk__json_null(&json->w);
}

void cli_json_put_pairs(cli_json_t *json, const char *key,
                        const tnk_pair_t *pairs, size_t n) {
  tnk__json_put_object(&json->w, key);
  for (size_t i = 0; i < n; i++)
    tnk__json_put_text(&json->w, pairs[i].name, pairs[i].value);
  tnk__json_end(&json->w);
}
