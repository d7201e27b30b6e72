/* SPDX-License-Identifier: MIT */
#include "tools/tnk/ask/failure.h"

/* By the HTTP status, which is more specific than the code. */
static const char *hint_of_status(int http_status) {
  switch (http_status) {
  case 401:
    return "The service rejects this credential. tnk auth status shows which "
           "one is used.";
  case 403:
    return "This credential is not permitted to do this. tnk auth status shows "
           "which one is used.";
  default:
    return NULL;
  }
}

static const char *hint_of(int err) {
  switch (err) {
  case TNK_ECREDENTIAL:
    return "Run tnk auth login to store a key, or set TINKER_API_KEY or "
           "TINKER_CREDENTIAL_CMD. tnk auth status shows which one is used.";
  case TNK_EAUTH:
    return "tnk auth status shows which credential is used.";
  case TNK_ENOTFOUND:
    return "Check the spelling and the owner. The list commands show what "
           "exists.";
  case TNK_EREQUEST:
    return "The service rejected the request. Repeating it will not help.";
  case TNK_EBILLING:
    return "The account has no credit, or its limit is reached.";
  case TNK_ERATE:
    return "Too many requests. Try again later.";
  case TNK_ESERVER:
    return "The service has a problem. Try again later.";
  case TNK_ETIMEDOUT:
    return "The service did not respond in time. tnk ping shows whether it is "
           "up.";
  case TNK_EDNS:
  case TNK_ECONN:
    return "Check the address: --base-url or TINKER_BASE_URL, else the hosted "
           "service.";
  case TNK_EPROTO:
    return "Check the address. The server there may not speak the Tinker API.";
  case TNK_EPROXY:
    return "Proxies come from https_proxy, http_proxy, all_proxy and no_proxy.";
  case TNK_ETLS:
    return "Check whether this address uses https.";
  case TNK_ECERT:
    return "Set SSL_CERT_FILE to a file with certificates to trust.";
  case TNK_EUNSUPPORTED:
    return "Not every server offers this.";
  default:
    return NULL;
  }
}

int cli_failure(const cli_t *cli, int err, const char *message,
                const tnk_error_t *error) {
  return cli_failure_with_hint(cli, err, message, error, NULL);
}

int cli_failure_with_hint(const cli_t *cli, int err, const char *message,
                          const tnk_error_t *error, const char *hint) {
  if (hint == NULL)
    hint = hint_of_status(error != NULL ? error->http_status : 0);
  return cli_report(
      cli,
      &(cli_problem_t){.status = cli_exit_of(err),
                       .message = message,
                       .code = tnk_err_name(err),
                       .hint = hint != NULL ? hint : hint_of(err),
                       .http_status = error != NULL ? error->http_status : 0,
                       .n_attempts = error != NULL ? error->n_attempts : 0});
}
