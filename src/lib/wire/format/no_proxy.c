#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include "lib/base/number.h"
#include "lib/wire/format/proxy.h"
#include "tnk/error.h"

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

/* Whether an entry is an address or a network that contains the host. */
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

/* Whether the host is the name or one of its subdomains. */
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
