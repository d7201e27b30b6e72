#include "cli/ask/failure.h"

/* By the status of the answer, which is finer than the code. */
static const char *hint_of_status(int http_status) {
  switch (http_status) {
  case 401:
    return "The service does not take this credential; tnk auth status tells "
           "which one is used.";
  case 403:
    return "This credential may not do that here; tnk auth status tells which "
           "one is used.";
  default:
    return NULL;
  }
}

static const char *hint_of(int err) {
  switch (err) {
  case TNK_ECREDENTIAL:
    return "tnk auth status tells what is found. tnk auth login stores a key; "
           "TINKER_API_KEY has one as well, and TINKER_CREDENTIAL_CMD a "
           "command that prints one.";
  case TNK_EAUTH:
    return "tnk auth status tells which credential is used.";
  case TNK_ENOTFOUND:
    return "Is it spelled right, and is it yours? The commands called list "
           "show what there is.";
  case TNK_EREQUEST:
    return "The service has understood the request and refuses it: it will do "
           "so again.";
  case TNK_EBILLING:
    return "The account has no credit, or its limit is reached.";
  case TNK_ERATE:
    return "Too many requests: wait a little.";
  case TNK_ESERVER:
    return "The fault is the service's: try again later.";
  case TNK_ETIMEDOUT:
    return "No answer came in time; tnk ping tells whether the service is up.";
  case TNK_EDNS:
  case TNK_ECONN:
    return "Is the address right? It is that of --base-url or "
           "TINKER_BASE_URL, else the hosted service's.";
  case TNK_EPROTO:
    return "Is it a service of the Tinker API that answers at this address?";
  case TNK_EPROXY:
    return "Proxies come from https_proxy, http_proxy, all_proxy and no_proxy.";
  case TNK_ETLS:
    return "Is https right for this address?";
  case TNK_ECERT:
    return "SSL_CERT_FILE=FILE makes the certificates in it trusted.";
  case TNK_EUNSUPPORTED:
    return "Servers differ in what they offer.";
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
