#include "lib/files/hub/refusal.h"

#include <stdio.h>
#include <string.h>

#define N(table) (sizeof(table) / sizeof((table)[0]))

/* ---- Classification ---- */

static const struct {
  const char *code; /* value of the header X-Error-Code */
  tnk__refusal_t refusal;
} codes[] = {{"EntryNotFound", TNK__REFUSAL_NO_FILE},
             {"RevisionNotFound", TNK__REFUSAL_NO_REVISION},
             {"RepoNotFound", TNK__REFUSAL_NO_MODEL},
             {"GatedRepo", TNK__REFUSAL_GATED}};

/* Without a valid token Hugging Face answers 401 for a model that does not
 * exist, as for a private one. */
static tnk__refusal_t by_status(const tnk__http_result_t *result,
                                int knows_commit) {
  const char *said = tnk__http_result_header(result, "x-error-message");

  switch (result->status) {
  case 401:
    return said != NULL && strstr(said, "Invalid ") == said
               ? TNK__REFUSAL_BAD_TOKEN
               : TNK__REFUSAL_NO_MODEL;
  case 403:
    return TNK__REFUSAL_NO_RIGHT;
  case 404:
    return knows_commit ? TNK__REFUSAL_NO_FILE : TNK__REFUSAL_OTHER;
  default:
    return TNK__REFUSAL_OTHER;
  }
}

tnk__refusal_t tnk__refusal_of(const tnk__http_result_t *result,
                               int knows_commit) {
  const char *code;

  if (result == NULL || result->err != TNK_OK || result->status / 100 != 4)
    return TNK__REFUSAL_OTHER;
  code = tnk__http_result_header(result, "x-error-code");
  for (size_t i = 0; code != NULL && i < N(codes); i++)
    if (strcmp(code, codes[i].code) == 0)
      return codes[i].refusal;
  return by_status(result, knows_commit && code == NULL);
}

/* ---- Messages ---- */

#define TOKEN_HINT "set HF_TOKEN, or the hub's token, to one that may read it"

static void put_advice(char *out, size_t size, tnk__refusal_t refusal,
                       int has_token, const tnk__cache_key_t *key,
                       const char *endpoint) {
  switch (refusal) {
  case TNK__REFUSAL_NO_FILE:
    snprintf(out, size, "there is no such file");
    break;
  case TNK__REFUSAL_NO_REVISION:
    snprintf(out, size, "the model has no revision %s", key->revision);
    break;
  case TNK__REFUSAL_NO_MODEL:
    snprintf(out, size, "there is no such model, or %s",
             has_token ? "the token may not read it"
                       : "it is private: " TOKEN_HINT);
    break;
  case TNK__REFUSAL_GATED:
    snprintf(out, size, "the model is gated: accept its licence at %.200s/%s%s",
             endpoint, key->model,
             has_token ? " with the account of the token"
                       : ", and " TOKEN_HINT);
    break;
  case TNK__REFUSAL_BAD_TOKEN:
    snprintf(out, size, "the token is wrong or has expired");
    break;
  default:
    snprintf(out, size, "%s",
             has_token ? "the token may not read it"
                       : "it may not be read without a token: " TOKEN_HINT);
  }
}

tnk__error_t *
tnk__refusal_error(tnk__refusal_t refusal, const tnk__fetch_t *fetch,
                   const tnk__http_result_t *result, tnk__error_t *error,
                   const tnk__cache_key_t *key, const char *endpoint) {
  const char *said;
  tnk__error_t *better;
  char advice[600];

  if (refusal == TNK__REFUSAL_OTHER)
    return tnk__error_ref(error);
  said = tnk__fetch_said(fetch, result);
  put_advice(advice, sizeof(advice), refusal, fetch->token != NULL, key,
             endpoint);
  better = tnk__fetch_error(fetch, error->pub.code, "%s (HTTP %d%s%.100s)",
                            advice, result->status, said != NULL ? ": " : "",
                            said != NULL ? said : "");
  if (better->refs > 0) {
    better->pub.http_status = result->status;
    better->pub.n_attempts = error->pub.n_attempts;
  }
  return better;
}
