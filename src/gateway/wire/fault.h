/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_WIRE_FAULT_H
#define TNK_GATEWAY_WIRE_FAULT_H

#include "lib/base/buf.h"

/* The APIs. Each is one endpoint with its own error format. */
typedef enum {
  TNK__GW_CHAT = 0,   /* POST /v1/chat/completions */
  TNK__GW_COMPLETION, /* POST /v1/completions */
  TNK__GW_RESPONSE,   /* POST /v1/responses */
  TNK__GW_MESSAGE     /* POST /v1/messages */
} tnk__gw_api_t;

/* Why a request was rejected or has failed. */
typedef struct {
  int status;        /* HTTP status */
  const char *code;  /* error code, or NULL */
  const char *allow; /* for 405: value of the Allow header, or NULL */
  uint32_t retry_s;  /* for 429: value of the Retry-After header; 0: none */
  char param[64];    /* the invalid member of the request; "": none */
  char text[400];
} tnk__gw_fault_t;

/* Set all fields. Returns -1. `param` may be NULL. */
#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
int tnk__gw_fault(tnk__gw_fault_t *fault, int status, const char *param,
                  const char *format, ...);
/* Write the error in the format of `api`. Returns TNK_OK or the buffer's
 * error. */
int tnk__gw_fault_write(const tnk__gw_fault_t *fault, tnk__gw_api_t api,
                        tnk__buf_t *out);
/* Write it as an event of a stream that has started. */
int tnk__gw_fault_event(const tnk__gw_fault_t *fault, tnk__gw_api_t api,
                        tnk__buf_t *out);
/* The data that keeps an idle response of `api` open. For a response that is
 * not a stream this is white space, which JSON allows before a value. */
const char *tnk__gw_keep_alive(tnk__gw_api_t api, int is_stream);

#endif
