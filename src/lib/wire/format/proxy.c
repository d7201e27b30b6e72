/* SPDX-License-Identifier: MIT */
#include "lib/wire/format/proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "lib/base/alloc.h"
#include "lib/base/base64.h"
#include "lib/base/limits.h"
#include "lib/base/number.h"
#include "lib/wire/format/http_write.h"
#include "lib/wire/format/socks.h"
#include "tnk/error.h"

/* ---- Exceptions ---- */

/* A part of the list, not terminated. */
typedef struct {
  const char *at;
  size_t n;
} slice_t;

/* An address; IPv4 has four bytes. */
typedef struct {
  uint8_t bytes[16];
  size_t n; /* 0: not an address */
} address_t;

static address_t read_address(slice_t text) {
  char copy[INET6_ADDRSTRLEN];
  address_t address = {.n = 0};

  if (text.n == 0 || text.n >= sizeof(copy))
    return address;
  memcpy(copy, text.at, text.n);
  copy[text.n] = '\0';
  if (inet_pton(AF_INET, copy, address.bytes) == 1)
    address.n = 4;
  else if (inet_pton(AF_INET6, copy, address.bytes) == 1)
    address.n = 16;
  return address;
}

/* Read a number of at most `max`. Returns -1 if it is invalid. */
static long read_number(slice_t text, long max) {
  const char *at = text.at;
  uint64_t value;

  if (tnk__read_u64(&at, text.at + text.n, (uint64_t)max, &value) != TNK_OK ||
      at != text.at + text.n)
    return -1;
  return (long)value;
}

static int same_bits(const address_t *a, const address_t *b, size_t n_bits) {
  const size_t n = n_bits / 8;
  const unsigned rest = n_bits % 8;

  if (a->n != b->n || memcmp(a->bytes, b->bytes, n) != 0)
    return 0;
  return rest == 0 || (a->bytes[n] ^ b->bytes[n]) >> (8 - rest) == 0;
}

/* Split `text` at the last `c`, and store the part after it in `behind`. */
static int cut_behind(slice_t *text, char c, slice_t *behind) {
  for (size_t i = text->n; i-- > 0;) {
    if (text->at[i] != c)
      continue;
    *behind = (slice_t){text->at + i + 1, text->n - i - 1};
    text->n = i;
    return 1;
  }
  return 0;
}

/* Returns whether an entry is an address or a network that contains the host.
 */
static int has_address(slice_t entry, const address_t *host) {
  slice_t length;
  address_t address;
  long n_bits = (long)host->n * 8;

  if (cut_behind(&entry, '/', &length))
    n_bits = read_number(length, n_bits);
  address = read_address(entry);
  return address.n > 0 && n_bits >= 0 &&
         same_bits(&address, host, (size_t)n_bits);
}

/* Returns whether the host is the name or one of its subdomains. */
static int has_name(slice_t entry, slice_t host) {
  size_t ahead;

  if (entry.n > 1 && entry.at[0] == '*' && entry.at[1] == '.')
    entry = (slice_t){entry.at + 1, entry.n - 1};
  if (entry.n > 0 && entry.at[0] == '.')
    entry = (slice_t){entry.at + 1, entry.n - 1};
  if (entry.n > 0 && entry.at[entry.n - 1] == '.')
    entry.n--;
  if (entry.n == 0 || entry.n > host.n)
    return 0;
  ahead = host.n - entry.n;
  return strncasecmp(host.at + ahead, entry.at, entry.n) == 0 &&
         (ahead == 0 || host.at[ahead - 1] == '.');
}

/* Remove ":port" from the entry, and the brackets of an IPv6 address. Returns
 * -1 for an invalid port. Returns 0 without a port, for example for a bare IPv6
 * address, whose colons belong to it. */
static long cut_port(slice_t *entry) {
  const char *first = memchr(entry->at, ':', entry->n);
  slice_t rest = {NULL, 0};
  long port = 0;

  if (entry->at[0] == '[') {
    if (!cut_behind(entry, ']', &rest))
      return -1;
    *entry = (slice_t){entry->at + 1, entry->n - 1};
    if (rest.n > 0 && rest.at[0] == ':')
      port = read_number((slice_t){rest.at + 1, rest.n - 1}, UINT16_MAX);
    else if (rest.n > 0)
      port = -1;
  } else if (first != NULL &&
             memchr(first + 1, ':',
                    (size_t)(entry->at + entry->n - first - 1)) == NULL) {
    cut_behind(entry, ':', &rest);
    port = read_number(rest, UINT16_MAX);
  }
  return port;
}

static int matches(slice_t entry, slice_t host, const address_t *address,
                   uint16_t port) {
  long its_port;

  if (entry.n == 1 && entry.at[0] == '*')
    return 1;
  its_port = cut_port(&entry);
  if (its_port != 0 && its_port != port)
    return 0;
  return address->n > 0 ? has_address(entry, address) : has_name(entry, host);
}

int tnk__no_proxy_has(const char *list, const char *host, uint16_t port) {
  static const char between[] = ", \t";
  slice_t name = {host, strlen(host)};
  const address_t address = read_address(name);

  if (name.n > 0 && host[name.n - 1] == '.')
    name.n--;
  while (list != NULL && *(list += strspn(list, between)) != '\0') {
    slice_t entry = {list, strcspn(list, between)};
    if (matches(entry, name, &address, port))
      return 1;
    list += entry.n;
  }
  return 0;
}

/* ---- Proxies ---- */

#define AUTHORIZATION "Proxy-Authorization"
#define MALFORMED "the user name or password in the proxy's URL is malformed"

enum { MAX_HEADERS = 256 };

/* The parts of the text, which belongs to the caller. */
typedef struct {
  const char *user; /* encoded, with the password; NULL: none */
  size_t n_user;
  const char *host; /* the host and the rest of the text */
  size_t scheme;    /* index in `schemes` */
} pieces_t;

/* ---- Proxies: cutting ---- */

static const struct {
  const char *name;
  const char *url; /* rest of the text */
  tnk__proxy_kind_t kind;
} schemes[] = {{"http", "http://", TNK__PROXY_HTTP},
               {"https", "https://", TNK__PROXY_HTTP},
               {"socks5", "http://", TNK__PROXY_SOCKS5},
               {"socks5h", "http://", TNK__PROXY_SOCKS5H}};

static int find_scheme(pieces_t *out, const char *text, size_t n) {
  for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
    if (strlen(schemes[i].name) == n &&
        strncasecmp(text, schemes[i].name, n) == 0) {
      out->scheme = i;
      return 1;
    }
  }
  return 0;
}

static const char *cut(pieces_t *out, const char *text) {
  const char *colon = strstr(text, "://");
  size_t n;

  if (colon != NULL && !find_scheme(out, text, (size_t)(colon - text)))
    return "the proxy's URL does not begin with http://, https://, socks5:// "
           "or socks5h://";
  if (colon != NULL)
    text = colon + 3;
  if (strlen(text) > TNK__MAX_URL / 2)
    return "the proxy's URL is too long";
  /* Use the last @, because passwords may contain unencoded ones. */
  n = strcspn(text, "/?#");
  out->host = text;
  for (size_t i = 0; i < n; i++) {
    if (text[i] == '@') {
      out->user = text;
      out->n_user = i;
      out->host = text + i + 1;
    }
  }
  return NULL;
}

/* ---- Proxies: the user ---- */

static int digit(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  c = (char)(c | 0x20);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Percent-decode into `out`, which is large enough. Returns the end, or NULL if
 * the text is malformed or has control characters. */
static char *decode(char *out, const char *text, size_t n) {
  for (size_t i = 0; i < n; i++) {
    unsigned char c = (unsigned char)text[i];
    if (c == '%') {
      if (n - i < 3 || digit(text[i + 1]) < 0 || digit(text[i + 2]) < 0)
        return NULL;
      c = (unsigned char)(digit(text[i + 1]) << 4 | digit(text[i + 2]));
      i += 2;
    }
    if (c < ' ' || c == 0x7f)
      return NULL;
    *out++ = (char)c;
  }
  return out;
}

/* Decode "user:password". Returns NULL if it is malformed. The user must not
 * contain a colon, because the colon ends it. */
static char *decode_user(char *out, const pieces_t *pieces) {
  const char *colon = memchr(pieces->user, ':', pieces->n_user);
  const size_t n =
      colon != NULL ? (size_t)(colon - pieces->user) : pieces->n_user;
  char *at = decode(out, pieces->user, n);

  if (at == NULL || memchr(out, ':', (size_t)(at - out)) != NULL)
    return NULL;
  *at++ = ':';
  return colon != NULL ? decode(at, colon + 1, pieces->n_user - n - 1) : at;
}

/* Create the value of Proxy-Authorization. Free it as a secret. */
static int make_basic(char **out, const tnk_allocator_t *alloc,
                      const pieces_t *pieces, const char **why) {
  char *plain = tnk__malloc(alloc, pieces->n_user + 2);
  tnk__buf_t buf;
  char *end;
  int err;

  if (plain == NULL)
    return TNK_ENOMEM;
  end = decode_user(plain, pieces);
  tnk__buf_init(&buf, alloc, 2 * TNK__MAX_URL);
  if (end != NULL) {
    /* Reserve once, so no copy stays in freed memory. */
    tnk__buf_reserve(&buf, pieces->n_user * 2 + 16);
    tnk__buf_text(&buf, "Basic ");
    tnk__base64_write(&buf, plain, (size_t)(end - plain));
    tnk__buf_byte(&buf, '\0');
  }
  tnk__wipe(plain, pieces->n_user + 2);
  tnk__free(alloc, plain);
  err = end == NULL ? TNK_EINVAL : buf.err;
  if (err == TNK_EINVAL)
    *why = MALFORMED;
  *out = (char *)tnk__buf_take(&buf, &(size_t){0});
  tnk__buf_deinit(&buf);
  return err;
}

/* Copy the user or password for SOCKS, where its length is one byte. */
static int keep_part(char **out, const tnk_allocator_t *alloc, const char *text,
                     size_t n, const char **why) {
  char *plain = tnk__malloc(alloc, n + 1);
  char *end;

  *out = plain;
  if (plain == NULL)
    return TNK_ENOMEM;
  end = decode(plain, text, n);
  if (end == NULL)
    tnk__wipe(plain, n + 1);
  *(end != NULL ? end : plain) = '\0';
  if (end != NULL && end - plain <= (ptrdiff_t)TNK__SOCKS_MAX_TEXT)
    return TNK_OK;
  *why = MALFORMED;
  return TNK_EINVAL;
}

static int keep_user(tnk__proxy_t *proxy, const tnk_allocator_t *alloc,
                     const pieces_t *pieces, const char **why) {
  const char *colon = memchr(pieces->user, ':', pieces->n_user);
  const size_t n =
      colon != NULL ? (size_t)(colon - pieces->user) : pieces->n_user;
  const char *password = colon != NULL ? colon + 1 : "";
  int err = keep_part(&proxy->user, alloc, pieces->user, n, why);

  if (err == TNK_OK)
    err = keep_part(&proxy->password, alloc, password,
                    colon != NULL ? pieces->n_user - n - 1 : 0, why);
  proxy->has_credentials = 1;
  return err;
}

/* ---- Proxies: headers ---- */

static const char *check_headers(const tnk_pair_t *headers, size_t n) {
  if (n > MAX_HEADERS || (n > 0 && headers == NULL))
    return "proxy_headers are missing or too many";
  for (size_t i = 0; i < n; i++)
    if (headers[i].name == NULL || headers[i].value == NULL ||
        !tnk__http_is_token(headers[i].name) ||
        !tnk__http_is_field_value(headers[i].value) ||
        tnk__http_is_reserved(headers[i].name))
      return "a header of proxy_headers cannot be sent";
  return NULL;
}

static int has_authorization(const tnk_pair_t *headers, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (tnk__http_compare_names(headers[i].name, AUTHORIZATION) == 0)
      return 1;
  return 0;
}

/* Add a header and take both strings. They may be NULL because of failed
 * allocations. */
static int add(tnk__proxy_t *proxy, char *name, char *value) {
  proxy->headers[proxy->n_headers++] = (tnk_pair_t){name, value};
  return name != NULL && value != NULL ? TNK_OK : TNK_ENOMEM;
}

static int add_headers(tnk__proxy_t *proxy, const tnk_allocator_t *alloc,
                       const pieces_t *pieces, const tnk_pair_t *headers,
                       size_t n, const char **why) {
  char *basic;
  int err = TNK_OK;

  proxy->has_credentials = has_authorization(headers, n);
  proxy->headers = tnk__calloc(alloc, n + 1, sizeof(*headers));
  if (proxy->headers == NULL)
    return TNK_ENOMEM;
  if (pieces->user != NULL && !proxy->has_credentials) {
    proxy->has_credentials = 1;
    err = make_basic(&basic, alloc, pieces, why);
    if (err == TNK_OK)
      err = add(proxy, tnk__strdup(alloc, AUTHORIZATION), basic);
  }
  for (size_t i = 0; err == TNK_OK && i < n; i++)
    err = add(proxy, tnk__strdup(alloc, headers[i].name),
              tnk__strdup(alloc, headers[i].value));
  return err;
}

/* ---- Proxies: all of it ---- */

/* Append the default port of SOCKS proxies if none is given. A slash may follow
 * the host. */
static void put_port(tnk__buf_t *out, const pieces_t *pieces) {
  const char *host = pieces->host;
  const char *bracket = strrchr(host, ']');
  const char *end = bracket != NULL ? bracket : host;

  if (schemes[pieces->scheme].kind == TNK__PROXY_HTTP ||
      strchr(end, ':') != NULL) {
    tnk__buf_text(out, host);
    return;
  }
  end += strcspn(end, "/?#");
  tnk__buf_append(out, host, (size_t)(end - host));
  tnk__buf_text(out, ":1080");
  tnk__buf_text(out, end);
}

static int parse_host(tnk__proxy_t *proxy, const tnk_allocator_t *alloc,
                      const pieces_t *pieces, const char **why) {
  tnk__buf_t text;
  int err;

  tnk__buf_init(&text, alloc, TNK__MAX_URL);
  tnk__buf_text(&text, schemes[pieces->scheme].url);
  put_port(&text, pieces);
  if (tnk__buf_cstr(&text) == NULL)
    err = text.err;
  else
    err = tnk__location_parse(&proxy->at, alloc, (const char *)text.data);
  tnk__buf_deinit(&text);
  if (err == TNK_EINVAL)
    *why = "the proxy's URL has no proper host and port";
  else if (err == TNK_OK && strcmp(proxy->at.target, "/") != 0) {
    *why = "the proxy's URL has something behind its host and port";
    err = TNK_EINVAL;
  }
  return err;
}

int tnk__proxy_parse(tnk__proxy_t *out, const tnk_allocator_t *alloc,
                     const char *text, const tnk_pair_t *headers,
                     size_t n_headers, const char **why) {
  pieces_t pieces = {0};
  int err;

  memset(out, 0, sizeof(*out));
  *why = check_headers(headers, n_headers);
  if (*why == NULL)
    *why = cut(&pieces, text);
  if (*why != NULL)
    return TNK_EINVAL;
  out->kind = schemes[pieces.scheme].kind;
  err = parse_host(out, alloc, &pieces, why);
  if (err == TNK_OK && out->kind == TNK__PROXY_HTTP) {
    err = add_headers(out, alloc, &pieces, headers, n_headers, why);
  } else if (err == TNK_OK && n_headers > 0) {
    *why = "proxy_headers cannot be sent to a SOCKS proxy";
    err = TNK_EINVAL;
  } else if (err == TNK_OK && pieces.user != NULL) {
    err = keep_user(out, alloc, &pieces, why);
  }
  if (err != TNK_OK)
    tnk__proxy_deinit(out, alloc);
  return err;
}

void tnk__proxy_deinit(tnk__proxy_t *proxy, const tnk_allocator_t *alloc) {
  for (size_t i = 0; i < proxy->n_headers; i++) {
    tnk__free(alloc, (char *)(uintptr_t)proxy->headers[i].name);
    tnk__free_secret(alloc, (char *)(uintptr_t)proxy->headers[i].value);
  }
  tnk__free(alloc, proxy->headers);
  tnk__free_secret(alloc, proxy->user);
  tnk__free_secret(alloc, proxy->password);
  tnk__location_deinit(&proxy->at, alloc);
  memset(proxy, 0, sizeof(*proxy));
}

const tnk__proxy_t *tnk__proxies_find(const tnk__proxies_t *proxies,
                                      const char *host, uint16_t port,
                                      int is_tls) {
  const tnk__proxy_t *proxy;

  if (proxies == NULL)
    return NULL;
  proxy = is_tls ? &proxies->https : &proxies->http;
  if ((proxy->at.host == NULL && proxy->why == NULL) ||
      tnk__no_proxy_has(proxies->no_proxy, host, port))
    return NULL;
  return proxy;
}

void tnk__proxies_deinit(tnk__proxies_t *proxies,
                         const tnk_allocator_t *alloc) {
  tnk__proxy_deinit(&proxies->http, alloc);
  tnk__proxy_deinit(&proxies->https, alloc);
  tnk__free(alloc, proxies->no_proxy);
  proxies->no_proxy = NULL;
}
