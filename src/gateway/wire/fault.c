/* SPDX-License-Identifier: MIT */
#include "gateway/wire/fault.h"

#include <stdarg.h>
#include <stdio.h>

#include "lib/base/utf8.h"
#include "lib/wire/format/json_write.h"

int tnk__gw_fault(tnk__gw_fault_t *fault, int status, const char *param,
                  const char *format, ...) {
  va_list args;

  fault->status = status;
  fault->code = NULL;
  fault->allow = NULL;
  fault->retry_s = 0;
  (void)snprintf(fault->param, sizeof(fault->param), "%s",
                 param != NULL ? param : "");
  va_start(args, format);
  (void)vsnprintf(fault->text, sizeof(fault->text), format, args);
  va_end(args);
  /* The message may quote client input, which need not be UTF-8, or may have
   * been truncated inside a character. */
  tnk__utf8_repair(fault->text);
  return -1;
}

/* ---- The error types of each API ---- */

static const char *word_of_openai(int status) {
  if (status == 401)
    return "authentication_error";
  if (status == 403)
    return "permission_error";
  if (status == 429)
    return "rate_limit_error";
  return status >= 500 ? "server_error" : "invalid_request_error";
}

static const char *word_of_anthropic(int status) {
  static const struct {
    int status;
    const char *word;
  } known[] = {{401, "authentication_error"}, {402, "billing_error"},
               {403, "permission_error"},     {404, "not_found_error"},
               {413, "request_too_large"},    {429, "rate_limit_error"},
               {503, "overloaded_error"},     {504, "timeout_error"}};

  for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
    if (known[i].status == status)
      return known[i].word;
  return status >= 500 ? "api_error" : "invalid_request_error";
}

static void put_openai(const tnk__gw_fault_t *fault, tnk__json_writer_t *w) {
  tnk__json_key(w, "error");
  tnk__json_begin_object(w);
  tnk__json_put_text(w, "message", fault->text);
  tnk__json_put_text(w, "type", word_of_openai(fault->status));
  tnk__json_put_text(w, "param", fault->param[0] != '\0' ? fault->param : NULL);
  tnk__json_put_text(w, "code", fault->code);
  tnk__json_end(w);
}

static void put_anthropic(const tnk__gw_fault_t *fault, tnk__json_writer_t *w) {
  tnk__json_put_text(w, "type", "error");
  tnk__json_key(w, "error");
  tnk__json_begin_object(w);
  tnk__json_put_text(w, "type", word_of_anthropic(fault->status));
  tnk__json_put_text(w, "message", fault->text);
  if (fault->code != NULL) {
    tnk__json_key(w, "details");
    tnk__json_begin_object(w);
    tnk__json_put_text(w, "error_code", fault->code);
    tnk__json_end(w);
  }
  tnk__json_end(w);
}

int tnk__gw_fault_write(const tnk__gw_fault_t *fault, tnk__gw_api_t api,
                        tnk__buf_t *out) {
  tnk__json_writer_t w;

  tnk__json_writer_init(&w, out);
  tnk__json_begin_object(&w);
  if (api == TNK__GW_MESSAGE)
    put_anthropic(fault, &w);
  else
    put_openai(fault, &w);
  tnk__json_end(&w);
  return tnk__json_finish(&w);
}

/* ---- Errors in streams ---- */

/* The error event of responses has its members at the top level. */
static void put_event(const tnk__gw_fault_t *fault, tnk__json_writer_t *w) {
  tnk__json_put_text(w, "type", "error");
  tnk__json_put_text(w, "code",
                     fault->code != NULL ? fault->code
                                         : word_of_openai(fault->status));
  tnk__json_put_text(w, "message", fault->text);
  tnk__json_put_text(w, "param", fault->param[0] != '\0' ? fault->param : NULL);
  tnk__json_put_int(w, "sequence_number", 0);
}

int tnk__gw_fault_event(const tnk__gw_fault_t *fault, tnk__gw_api_t api,
                        tnk__buf_t *out) {
  tnk__json_writer_t w;

  if (api == TNK__GW_MESSAGE || api == TNK__GW_RESPONSE)
    tnk__buf_text(out, "event: error\n");
  tnk__buf_text(out, "data: ");
  if (api == TNK__GW_RESPONSE) {
    tnk__json_writer_init(&w, out);
    tnk__json_begin_object(&w);
    put_event(fault, &w);
    tnk__json_end(&w);
    (void)tnk__json_finish(&w);
  } else {
    (void)tnk__gw_fault_write(fault, api, out);
  }
  tnk__buf_text(out, "\n\n");
  return out->err;
}

const char *tnk__gw_keep_alive(tnk__gw_api_t api, int is_stream) {
  if (!is_stream)
    return "\n";
  return api == TNK__GW_MESSAGE ? "event: ping\ndata: {\"type\":\"ping\"}\n\n"
                                : ": keep-alive\n\n";
}
