#include <stdlib.h>
#include <string.h>

#include "tools/local/stub/state.h"

/* Parses values in a body; the stub trusts its clients. */

uint64_t local_stub_number(const tnk__srv_req_t *req, const char *key,
                           uint64_t otherwise) {
  const char *text = (const char *)req->body.data;
  size_t n_key = strlen(key);

  /* The members are near the end of long bodies, so the search begins there. */
  for (size_t at = req->body.len; at-- > 0;)
    if (text[at] == '"' && req->body.len - at > n_key + 2 &&
        memcmp(text + at + 1, key, n_key) == 0 && text[at + 1 + n_key] == '"')
      return strtoull(text + at + n_key + 3, NULL, 10);
  return otherwise;
}

const char *local_stub_id(const tnk__srv_req_t *req, char *out) {
  static const char key[] = "\"request_id\":\"";
  const char *text = (const char *)req->body.data;
  const char *end = text + req->body.len;

  for (; text + sizeof(key) < end; text++)
    if (memcmp(text, key, sizeof(key) - 1) == 0)
      break;
  text += sizeof(key) - 1;
  for (size_t n = 0; text + n < end && n < LOCAL_STUB_MAX_ID; n++) {
    out[n] = text[n];
    if (text[n] == '"') {
      out[n] = '\0';
      return n > 2 && strchr(out + 2, ':') != NULL ? out : NULL;
    }
  }
  return NULL;
}
