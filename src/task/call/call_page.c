/* Answers to a call that something else than the service has given. */
#include "task/call/call.h"

#include "codec/message/page.h"
#include "task/call/auth.h"

/* Results are many, and are looked at no further. */
static int is_plain(const tnk__reply_t *reply) {
  return reply->status == 0 || reply->is_proto ||
         (reply->status / 100 == 2 && reply->body_len > 0 &&
          reply->body[0] == '{');
}

/* A proxy that gets the requests themselves, and a credential with them. */
static const char *confidant_of(const tnk__config_t *config) {
  const tnk__url_t *url = &config->url;
  const tnk__proxy_t *proxy = NULL;

  if (!url->is_tls)
    proxy = tnk__proxies_find(&config->proxies, url->host, url->port, 0);
  return proxy != NULL && proxy->has_credentials ? proxy->at.authority : NULL;
}

void tnk__call_read_page(const tnk__call_t *call,
                         const tnk__http_result_t *result, tnk__reply_t *reply,
                         char *text, size_t size) {
  const tnk__config_t *config = call->endpoint->config;
  tnk__page_t page;

  if (is_plain(reply))
    return;
  page = (tnk__page_t){
      .status = reply->status,
      .type = tnk__http_result_header(result, "content-type"),
      .server = tnk__http_result_header(result, "server"),
      .via = tnk__http_result_header(result, "via"),
      .location = tnk__http_result_header(result, "location"),
      .cause = tnk__http_result_header(result, "x-squid-error"),
      .body = reply->body,
      .body_len = reply->body_len,
      .sent_len = call->body_len + (call->feed != NULL ? call->feed->len : 0),
      .base_url = config->url.text,
      .path = "/api/v1/",
      .confidant = confidant_of(config),
  };
  reply->is_page = tnk__page_is(&page);
  if (!tnk__page_explain(&page, text, size))
    return;
  tnk__auth_hide(call->endpoint->auth, text);
  reply->page = text;
}
