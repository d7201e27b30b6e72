#include "cli/ask/failure.h"

static const char *hint_of(int err) {
  switch (err) {
  case TNK_ECREDENTIAL:
    return "Set TINKER_API_KEY, or TINKER_CREDENTIAL_CMD to a command that "
           "prints a credential.";
  case TNK_EAUTH:
    return "Is it the key of this service, and may its owner do this?";
  case TNK_EBILLING:
    return "The account has no credit, or its limit is reached.";
  case TNK_ERATE:
    return "Too many requests: wait a little.";
  case TNK_ESERVER:
    return "The fault is the service's: try again later.";
  case TNK_EDNS:
  case TNK_ECONN:
    return "Is the address right? It is that of --base-url or "
           "TINKER_BASE_URL, else the hosted service's.";
  case TNK_EPROXY:
    return "Proxies come from https_proxy, http_proxy, all_proxy and no_proxy.";
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
  return cli_report(
      cli,
      &(cli_problem_t){.status = cli_exit_of(err),
                       .message = message,
                       .code = tnk_err_name(err),
                       .hint = hint_of(err),
                       .http_status = error != NULL ? error->http_status : 0,
                       .n_attempts = error != NULL ? error->n_attempts : 0});
}
