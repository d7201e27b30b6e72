/* SPDX-License-Identifier: MIT */
#include "lib/wire/format/proxy.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/limits.h"
#include "lib/wire/format/http_write.h"
#include "support/test.h"
#include "tnk/error.h"

static const char *value_of(const tnk__proxy_t *proxy, const char *name) {
  for (size_t i = 0; i < proxy->n_headers; i++)
    if (tnk__http_compare_names(proxy->headers[i].name, name) == 0)
      return proxy->headers[i].value;
  return NULL;
}

static void good(const char *text, const char *name, const char *host, int port,
                 const char *basic) {
  const char *why = NULL;
  tnk__proxy_t proxy;

  CHECK_INT(tnk__proxy_parse(&proxy, test_allocator(), text, NULL, 0, &why),
            TNK_OK);
  CHECK_STR(proxy.at.authority, name);
  CHECK_STR(proxy.at.host, host);
  CHECK_INT(proxy.at.port, port);
  CHECK_INT(proxy.has_credentials, basic != NULL);
  CHECK_STR(value_of(&proxy, "proxy-authorization"), basic);
  CHECK(strchr(proxy.at.text, '@') == NULL);
  tnk__proxy_deinit(&proxy, test_allocator());
}

TEST(A16_proxy_urls) {
  good("http://proxy.example:3128", "proxy.example:3128", "proxy.example", 3128,
       NULL);
  good("HTTP://Proxy.Example/", "proxy.example", "proxy.example", 80, NULL);
  good("proxy.example", "proxy.example", "proxy.example", 80, NULL);
  good("proxy.example:8080", "proxy.example:8080", "proxy.example", 8080, NULL);
  good("http://[::1]:3128", "[::1]:3128", "::1", 3128, NULL);
  good("http://10.0.0.1:1", "10.0.0.1:1", "10.0.0.1", 1, NULL);
}

TEST(A16_the_user_becomes_basic) {
  good("http://user:secret@p:1", "p:1", "p", 1, "Basic dXNlcjpzZWNyZXQ=");
  good("user:secret@p:1", "p:1", "p", 1, "Basic dXNlcjpzZWNyZXQ=");
  /* Without a password, with an encoded one, with a bare @ in it. */
  good("http://user@p", "p", "p", 80, "Basic dXNlcjo=");
  good("http://u%40x:%3A%2f%25@p", "p", "p", 80, "Basic dUB4OjovJQ==");
  good("http://u:a@b@p", "p", "p", 80, "Basic dTphQGI=");
  good("http://:p@h", "h", "h", 80, "Basic OnA=");
}

static void check_kind(const char *text, tnk__proxy_kind_t kind, int is_tls,
                       const char *name, const char *user,
                       const char *password) {
  const char *why = NULL;
  tnk__proxy_t proxy;

  CHECK_INT(tnk__proxy_parse(&proxy, test_allocator(), text, NULL, 0, &why),
            TNK_OK);
  CHECK_INT(proxy.kind, kind);
  CHECK_INT(proxy.at.is_tls, is_tls);
  CHECK_STR(proxy.at.authority, name);
  CHECK_STR(proxy.user, user);
  CHECK_STR(proxy.password, password);
  CHECK_INT(proxy.has_credentials,
            user != NULL || value_of(&proxy, "Proxy-Authorization") != NULL);
  tnk__proxy_deinit(&proxy, test_allocator());
}

TEST(A16_proxies_of_other_kinds) {
  check_kind("https://p", TNK__PROXY_HTTP, 1, "p", NULL, NULL);
  check_kind("HTTPS://u:p@p:3128", TNK__PROXY_HTTP, 1, "p:3128", NULL, NULL);
  check_kind("socks5://p", TNK__PROXY_SOCKS5, 0, "p:1080", NULL, NULL);
  check_kind("SOCKS5H://p/", TNK__PROXY_SOCKS5H, 0, "p:1080", NULL, NULL);
  check_kind("socks5h://p:9", TNK__PROXY_SOCKS5H, 0, "p:9", NULL, NULL);
  check_kind("socks5://[::1]", TNK__PROXY_SOCKS5, 0, "[::1]:1080", NULL, NULL);
  check_kind("socks5://[::1]:7", TNK__PROXY_SOCKS5, 0, "[::1]:7", NULL, NULL);
  check_kind("socks5://u%40x:a@%3A@p", TNK__PROXY_SOCKS5, 0, "p:1080", "u@x",
             "a@:");
  check_kind("socks5://u@p", TNK__PROXY_SOCKS5, 0, "p:1080", "u", "");
}

/* SOCKS says lengths in one byte, and has no headers. */
TEST(A16_what_socks_cannot_carry) {
  const tnk_pair_t own = {"X-Team", "7"};
  const char *why = NULL;
  tnk__proxy_t proxy;
  char text[600];

  for (int n = 255; n < 257; n++) {
    snprintf(text, sizeof(text), "socks5://u:%0*d@p", n, 0);
    CHECK_INT(tnk__proxy_parse(&proxy, test_allocator(), text, NULL, 0, &why),
              n == 255 ? TNK_OK : TNK_EINVAL);
    if (n == 255)
      tnk__proxy_deinit(&proxy, test_allocator());
  }
  CHECK_INT(
      tnk__proxy_parse(&proxy, test_allocator(), "socks5://p", &own, 1, &why),
      TNK_EINVAL);
  CHECK_STR(why, "proxy_headers cannot be sent to a SOCKS proxy");
}

static void bad(const char *text, const char *part) {
  const char *why = NULL;
  tnk__proxy_t proxy;

  CHECK_INT(tnk__proxy_parse(&proxy, test_allocator(), text, NULL, 0, &why),
            TNK_EINVAL);
  if (why == NULL || strstr(why, part) == NULL)
    test_fail(__FILE__, __LINE__, "%s: %s", text, why != NULL ? why : "");
}

TEST(A16_what_is_no_proxy) {
  char longest[TNK__MAX_URL + 1];

  bad("socks4://p:1080", "does not begin with http://, https://, socks5:// or");
  bad("socks4a://p", "does not begin with http://");
  bad("socks://u:p@p", "does not begin with http://");
  bad("socks5://", "host and port");
  bad("socks5://p/x", "behind its host");
  bad("socks5://u:%0a@p", "malformed");
  bad("socks5h://%zz@p", "malformed");
  bad("ftp://p", "does not begin with http://");
  bad("://p", "does not begin with http://");
  bad("", "host and port");
  bad("http://", "host and port");
  bad("http://u:p@", "host and port");
  bad("http://p:0", "host and port");
  bad("http://p:65536", "host and port");
  bad("http://p:x", "host and port");
  bad("http://a b", "host and port");
  bad("http://p\r\nX: y", "host and port");
  bad("http://p/path", "behind its host");
  bad("http://p?x", "behind its host");
  bad("http://u%3Ax:p@h", "malformed");
  bad("http://u:%0d%0aX@h", "malformed");
  bad("http://u:%zz@h", "malformed");
  bad("http://u:%4@h", "malformed");
  memset(longest, 'a', sizeof(longest) - 1);
  longest[sizeof(longest) - 1] = '\0';
  bad(longest, "too long");
}

TEST(A16_proxy_headers_are_added_and_win) {
  const tnk_pair_t own[] = {{"X-Team", "7"}, {"proxy-authorization", "Own x"}};
  static const tnk_pair_t refused[] = {
      {"Host", "x"}, {"X", "a\r\nb"}, {"", "x"},   {"A b", "x"},
      {NULL, "x"},   {"X", NULL},     {"TE", "x"}, {"Content-Length", "1"}};
  const char *why = NULL;
  tnk__proxy_t proxy;

  CHECK_INT(
      tnk__proxy_parse(&proxy, test_allocator(), "http://u:p@h", own, 2, &why),
      TNK_OK);
  CHECK_INT(proxy.n_headers, 2);
  CHECK_INT(proxy.has_credentials, 1);
  CHECK_STR(value_of(&proxy, "Proxy-Authorization"), "Own x");
  CHECK_STR(value_of(&proxy, "X-Team"), "7");
  tnk__proxy_deinit(&proxy, test_allocator());
  CHECK_INT(
      tnk__proxy_parse(&proxy, test_allocator(), "http://u:p@h", own, 1, &why),
      TNK_OK);
  CHECK_STR(value_of(&proxy, "Proxy-Authorization"), "Basic dTpw");
  tnk__proxy_deinit(&proxy, test_allocator());
  for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
    CHECK_INT(tnk__proxy_parse(&proxy, test_allocator(), "http://h",
                               &refused[i], 1, &why),
              TNK_EINVAL);
    CHECK_STR(why, "a header of proxy_headers cannot be sent");
  }
}

static void check_memory(const char *text, const tnk_pair_t *own, size_t n_own,
                         long at_least) {
  const char *why = NULL;
  tnk__proxy_t proxy;
  long n = 0;
  int err;

  do {
    test_alloc_fail_at(n++);
    err = tnk__proxy_parse(&proxy, test_allocator(), text, own, n_own, &why);
    CHECK(err == (test_alloc_did_fail() ? TNK_ENOMEM : TNK_OK));
  } while (err != TNK_OK);
  test_alloc_fail_at(-1);
  CHECK(n > at_least);
  tnk__proxy_deinit(&proxy, test_allocator());
  CHECK_INT(test_alloc_live(), 0);
}

TEST(A16_proxies_without_memory) {
  const tnk_pair_t own[] = {{"X-Team", "7"}};

  check_memory("http://u:p@h:1", own, 1, 8);
  check_memory("socks5://u:p@h:1", NULL, 0, 6);
}

/* ---- Hosts without a proxy ---- */

static const struct {
  const char *list;
  const char *host;
  int port;
  int has;
} lists[] = {
    {NULL, "h", 80, 0},
    {"", "h", 80, 0},
    {" , ,,", "h", 80, 0},
    {"*", "h", 80, 1},
    {"a,*", "10.0.0.1", 80, 1},
    {"example.com", "example.com", 443, 1},
    {"example.com", "EXAMPLE.com", 443, 1},
    {"Example.COM.", "www.example.com.", 443, 1},
    {"example.com", "notexample.com", 443, 0},
    {"example.com", "example.com.org", 443, 0},
    {"ample.com", "example.com", 443, 0},
    {".example.com", "a.b.example.com", 443, 1},
    {".example.com", "example.com", 443, 1},
    {".example.com", "nonexample.com", 443, 0},
    {"*.example.com", "www.example.com", 443, 1},
    {"*ample.com", "example.com", 443, 0},
    {".", "h", 80, 0},
    {"a.com b.com\tc.com,d.com", "c.com", 80, 1},
    {"a.com b.com\tc.com,d.com", "d.com", 80, 1},
    {"a.com b.com\tc.com,d.com", "e.com", 80, 0},
    {"h:8080", "h", 8080, 1},
    {"h:8080", "h", 8081, 0},
    {"h:x", "h", 80, 0},
    {"h:", "h", 80, 0},
    {"h:99999", "h", 80, 0},
    {"localhost", "127.0.0.1", 80, 0},
    {"127.0.0.1", "127.0.0.1", 80, 1},
    {"127.0.0.1:81", "127.0.0.1", 80, 0},
    {"127.0.0.1:80", "127.0.0.1", 80, 1},
    {"0.0.1", "127.0.0.1", 80, 0},
    {".0.0.1", "127.0.0.1", 80, 0},
    {"::1", "::1", 80, 1},
    {"[::1]", "::1", 80, 1},
    {"[::1]:80", "::1", 80, 1},
    {"[::1]:81", "::1", 80, 0},
    {"[::1", "::1", 80, 0},
    {"[::1]x", "::1", 80, 0},
    {"0:0::0001", "::1", 80, 1},
    {"10.0.0.0/8", "10.1.2.3", 80, 1},
    {"10.0.0.0/8", "11.1.2.3", 80, 0},
    {"10.0.0.0/8:80", "10.1.2.3", 80, 1},
    {"172.16.0.0/12", "172.31.255.255", 80, 1},
    {"172.16.0.0/12", "172.32.0.0", 80, 0},
    {"10.1.2.3/32", "10.1.2.3", 80, 1},
    {"10.1.2.3/32", "10.1.2.2", 80, 0},
    {"0.0.0.0/0", "10.1.2.3", 80, 1},
    {"0.0.0.0/0", "::1", 80, 0},
    {"10.0.0.0/33", "10.0.0.0", 80, 0},
    {"10.0.0.0/", "10.0.0.0", 80, 0},
    {"10.0.0.0/-1", "10.0.0.0", 80, 0},
    {"fd00::/8", "fd12::1", 80, 1},
    {"fd00::/8", "fe12::1", 80, 0},
    {"fe80::/10", "febf::1", 80, 1},
    {"10.0.0.0/8", "ten.example", 80, 0},
};

TEST(NO_PROXY_lists) {
  for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
    if (tnk__no_proxy_has(lists[i].list, lists[i].host,
                          (uint16_t)lists[i].port) != lists[i].has)
      test_fail(__FILE__, __LINE__, "row %zu: %s of %s", i, lists[i].host,
                lists[i].list);
}

TEST(NO_PROXY_chooses_by_scheme_and_host) {
  const tnk_allocator_t *alloc = test_allocator();
  tnk__proxies_t proxies = {.no_proxy = NULL};
  char exceptions[] = "direct.example";
  const char *why;

  CHECK(tnk__proxies_find(NULL, "h", 80, 0) == NULL);
  CHECK(tnk__proxies_find(&proxies, "h", 443, 1) == NULL);
  CHECK_INT(tnk__proxy_parse(&proxies.https, alloc, "p", NULL, 0, &why),
            TNK_OK);
  proxies.no_proxy = exceptions;
  CHECK(tnk__proxies_find(&proxies, "h", 443, 1) == &proxies.https);
  CHECK(tnk__proxies_find(&proxies, "h", 443, 0) == NULL);
  CHECK(tnk__proxies_find(&proxies, "a.direct.example", 443, 1) == NULL);
  proxies.no_proxy = NULL;
  tnk__proxies_deinit(&proxies, alloc);
}

/* ---- Heads ---- */

static void check_connect(const char *host, int port, const char *expected) {
  const tnk_pair_t header = {"Proxy-Authorization", "Basic x"};
  const tnk__http_head_t head = {.host = host,
                                 .port = (uint16_t)port,
                                 .default_port = (uint16_t)port,
                                 .headers = &header,
                                 .proxy_headers = &header,
                                 .n_proxy_headers = 1};
  tnk__buf_t out;

  tnk__buf_init(&out, test_allocator(), TNK__MAX_REQUEST_HEAD);
  CHECK_INT(tnk__http_write_connect(&out, &head), TNK_OK);
  CHECK_STR(tnk__buf_cstr(&out), expected);
  tnk__buf_deinit(&out);
}

TEST(A16_a_tunnel_is_asked_for_with_its_port) {
  tnk__http_head_t head = {.host = "a b", .port = 1};
  tnk__buf_t out;

  check_connect("h.example", 443,
                "CONNECT h.example:443 HTTP/1.1\r\nHost: h.example:443\r\n"
                "Proxy-Authorization: Basic x\r\n\r\n");
  check_connect("::1", 8443,
                "CONNECT [::1]:8443 HTTP/1.1\r\nHost: [::1]:8443\r\n"
                "Proxy-Authorization: Basic x\r\n\r\n");
  tnk__buf_init(&out, test_allocator(), 64);
  CHECK_INT(tnk__http_write_connect(&out, &head), TNK_EINVAL);
  head.host = "h";
  CHECK_INT(tnk__http_write_connect(&out, &head), TNK_ETOOBIG);
  CHECK_INT(out.len, 0);
  tnk__buf_deinit(&out);
}
