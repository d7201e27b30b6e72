/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_TASK_HOSTED_H
#define TNK_TEST_TASK_HOSTED_H

#include "task/script.h"
#include "tnk/hosted.h"

#define CHAT "/oai/api/v1/chat/completions"
#define MESSAGES "/anthropic/api/v1/messages"
#define STREAM_TYPE "Content-Type: text/event-stream\r\n"

static const char chat_stream[] = "data: {\"n\":1}\n\n"
                                  ": still here\n\n"
                                  "data: {\"n\":2}\r\n\r\n"
                                  "data: [DONE]\n\n";
static const char messages_stream[] =
    "event: message_start\ndata: {\"n\":1}\n\n"
    "event: delta\ndata: {\"n\":2}\n\n"
    "event: message_stop\ndata: {}\n\n";

typedef enum { ACT_REFUSE, ACT_CANCEL, ACT_CLOSE } ear_act_t;

/* What the program hears. */
typedef struct {
  script_t *script;
  tnk_promise_t *promise;
  char text[2048]; /* "type|data;" */
  int n_events;
  int act_at; /* the event in which it acts; 0: none */
  ear_act_t act;
} ear_t;

static inline int on_event(const tnk_hosted_event_t *event, void *user) {
  ear_t *ear = user;
  size_t n = strlen(ear->text);

  CHECK_INT(event->n_data, strlen(event->data));
  ear->n_events++;
  if (ear->n_events == ear->act_at && ear->act == ACT_CANCEL)
    tnk_promise_cancel(ear->promise);
  if (ear->n_events == ear->act_at && ear->act == ACT_CLOSE)
    tnk_service_close(ear->script->service, script_closed, ear->script);
  /* It is still whole. */
  snprintf(ear->text + n, sizeof(ear->text) - n, "%s|%s;", event->type,
           event->data);
  return ear->n_events == ear->act_at && ear->act == ACT_REFUSE;
}

static inline tnk_promise_t *ask(script_t *script, tnk_hosted_form_t form) {
  tnk_hosted_request_t request = TNK_HOSTED_REQUEST_INIT;

  request.form = form;
  request.body = "{\"model\":\"m\"}";
  return tnk_service_hosted(script->service, &request);
}

static inline tnk_promise_t *ask_stream(ear_t *ear, script_t *script,
                                        tnk_hosted_form_t form) {
  tnk_hosted_request_t request = TNK_HOSTED_REQUEST_INIT;

  ear->script = script;
  request.form = form;
  request.body = "{\"stream\":true}";
  request.on_event = on_event;
  request.user = ear;
  return tnk_service_hosted(script->service, &request);
}

static inline void reply_text(mock_request_t *request, void *user) {
  /* The case of a type does not matter. */
  mock_reply(request, 200, "Content-Type: Text/Event-Stream\r\n", user,
             strlen(user));
}

/* Where the events of messages_stream end. */
#define FIRST_END (sizeof("event: message_start\ndata: {\"n\":1}\n\n") - 1)
#define SECOND_END (FIRST_END + sizeof("event: delta\ndata: {\"n\":2}\n\n") - 1)

/* On HTTP/1.1 an answer in pieces is framed, so that its end is known. */
static inline void begin_pieces(mock_request_t *request) {
  mock_begin(request, 200,
             mock_over_http2() ? STREAM_TYPE
                               : STREAM_TYPE "Transfer-Encoding: chunked\r\n");
}

static inline void put_piece(mock_request_t *request, const char *data,
                             size_t n) {
  char size[24];
  int n_size = snprintf(size, sizeof(size), "%zx\r\n", n);

  if (n == 0)
    return;
  if (!mock_over_http2())
    mock_piece(request, size, (size_t)n_size);
  mock_piece(request, data, n);
  if (!mock_over_http2())
    mock_piece(request, "\r\n", 2);
}

static inline void end_pieces(mock_request_t *request) {
  if (!mock_over_http2())
    mock_piece(request, "0\r\n\r\n", 5);
  mock_end(request, 0);
}

/* Of a stream, so many bytes at first and the rest later. */
typedef struct {
  size_t cut;
  mock_request_t *request;
} cut_t;

static inline void begin_cut(mock_request_t *request, void *user) {
  cut_t *cut = user;

  cut->request = request;
  begin_pieces(request);
  put_piece(request, messages_stream, cut->cut);
}

#endif
