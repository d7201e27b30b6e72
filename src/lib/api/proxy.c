#include "lib/api/proxy.h"

#include "lib/api/env.h"
#include "lib/base/alloc.h"
#include "tnk/error.h"

/*
 * The variables and their order are curl's. HTTP_PROXY in capital letters is
 * ignored: in a CGI program it is a header of the request.
 */

static const char *either(const char *small, const char *capital) {
  const char *value = tnk__env(small);

  return value != NULL ? value : tnk__env(capital);
}

static const char *variable(int is_tls) {
  const char *value =
      is_tls ? either("https_proxy", "HTTPS_PROXY") : tnk__env("http_proxy");

  return value != NULL ? value : either("all_proxy", "ALL_PROXY");
}

static int load(tnk__proxy_t *out, const tnk_allocator_t *alloc,
                const tnk__proxy_options_t *o, int is_tls, const char **why) {
  const char *text = o->proxy != NULL ? o->proxy : variable(is_tls);
  int err;

  if (text == NULL || text[0] == '\0')
    return TNK_OK;
  err = tnk__proxy_parse(out, alloc, text, o->headers, o->n_headers, why);
  if (err == TNK_EINVAL && o->proxy == NULL) {
    out->why = *why;
    err = TNK_OK;
  }
  return err;
}

/* Exceptions from the environment apply only to proxies from the
 * environment. */
static int load_exceptions(tnk__proxies_t *out, const tnk_allocator_t *alloc,
                           const tnk__proxy_options_t *o) {
  const char *text = o->no_proxy;

  if (text == NULL && o->proxy == NULL)
    text = either("no_proxy", "NO_PROXY");
  if (text == NULL)
    return TNK_OK;
  out->no_proxy = tnk__strdup(alloc, text);
  return out->no_proxy != NULL ? TNK_OK : TNK_ENOMEM;
}

int tnk__proxies_load(tnk__proxies_t *out, const tnk_allocator_t *alloc,
                      const tnk__proxy_options_t *options,
                      const tnk__url_t *url, const char **why) {
  const tnk__proxy_t *proxy;
  const char *wrong = NULL;
  int err = load(&out->https, alloc, options, 1, &wrong);

  if (err == TNK_OK)
    err = load(&out->http, alloc, options, 0, &wrong);
  if (err == TNK_OK)
    err = load_exceptions(out, alloc, options);
  if (err == TNK_OK) {
    proxy = tnk__proxies_find(out, url->host, url->port, url->is_tls);
    wrong = proxy != NULL ? proxy->why : NULL;
    err = wrong != NULL ? TNK_EINVAL : TNK_OK;
  }
  if (err == TNK_EINVAL)
    *why = wrong;
  return err;
}
