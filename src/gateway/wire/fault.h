#ifndef TNK_GATEWAY_WIRE_FAULT_H
#define TNK_GATEWAY_WIRE_FAULT_H

#include "lib/base/buf.h"

/* What clients speak: each is one endpoint, with errors of its own shape. */
typedef enum {
  TNK__GW_CHAT = 0,   /* POST /v1/chat/completions */
  TNK__GW_COMPLETION, /* POST /v1/completions */
  TNK__GW_RESPONSE,   /* POST /v1/responses */
  TNK__GW_MESSAGE     /* POST /v1/messages */
} tnk__gw_api_t;

/* Why a request is refused, or has failed. */
typedef struct {
  int status;        /* of HTTP */
  const char *code;  /* a word, or NULL */
  const char *allow; /* of 405: what can be done instead, or NULL */
  char param[64];    /* the member of the request; "": none */
  char text[400];
} tnk__gw_fault_t;

/* Set all of it. Returns -1. `param` may be NULL. */
#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
int tnk__gw_fault(tnk__gw_fault_t *fault, int status, const char *param,
                  const char *format, ...);
/* Write it as the clients of `api` expect it. TNK_OK or the buffer's error. */
int tnk__gw_fault_write(const tnk__gw_fault_t *fault, tnk__gw_api_t api,
                        tnk__buf_t *out);
/* The same as an event of a stream that has begun. */
int tnk__gw_fault_event(const tnk__gw_fault_t *fault, tnk__gw_api_t api,
                        tnk__buf_t *out);
/* What a stream of `api` says while there is nothing to say. */
const char *tnk__gw_keep_alive(tnk__gw_api_t api);

#endif
