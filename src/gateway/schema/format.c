/* SPDX-License-Identifier: MIT */
#include <string.h>

#include <uv.h>

#include "gateway/schema/keyword.h"

/* The formats of texts that the SDKs write for types of their languages. */

static int is_digit(char c) {
  return c >= '0' && c <= '9';
}

static int is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static int is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Compare with a shape: 9 is a digit, x a hexadecimal digit, anything else
 * itself. Returns what follows, or NULL. */
static const char *skip(const char *text, const char *shape) {
  for (; *shape != '\0'; shape++, text++)
    if (*shape == '9'   ? !is_digit(*text)
        : *shape == 'x' ? !is_hex(*text)
                        : *text != *shape)
      return NULL;
  return text;
}

static int two(const char *digits) {
  return (digits[0] - '0') * 10 + digits[1] - '0';
}

static const char *skip_date(const char *text) {
  static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const char *end = skip(text, "9999-99-99");
  int year, month, day, is_leap;

  if (end == NULL)
    return NULL;
  year = two(text) * 100 + two(text + 2);
  month = two(text + 5);
  day = two(text + 8);
  is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return month >= 1 && month <= 12 && day >= 1 &&
                 day <= days[month - 1] + (month == 2 && is_leap)
             ? end
             : NULL;
}

/* A time with its zone, as in RFC 3339. */
static const char *skip_time(const char *text) {
  const char *end = skip(text, "99:99:99");

  if (end == NULL || two(text) > 23 || two(text + 3) > 59 || two(text + 6) > 60)
    return NULL;
  if (*end == '.') {
    if (!is_digit(*++end))
      return NULL;
    while (is_digit(*end))
      end++;
  }
  if (*end == 'Z' || *end == 'z')
    return end + 1;
  if (*end != '+' && *end != '-')
    return NULL;
  text = end + 1;
  end = skip(text, "99:99");
  return end != NULL && two(text) <= 23 && two(text + 3) <= 59 ? end : NULL;
}

static int is_end(const char *at) {
  return at != NULL && *at == '\0';
}

static int is_date(const char *text) {
  return is_end(skip_date(text));
}

static int is_time(const char *text) {
  return is_end(skip_time(text));
}

static int is_date_time(const char *text) {
  const char *at = skip_date(text);

  return at != NULL && (*at == 'T' || *at == 't') && is_time(at + 1);
}

/* Skip numbers with a unit each, in the order of `units`. Returns how many
 * there are. */
static int skip_parts(const char **at, const char *units) {
  int n = 0;

  while (is_digit(**at)) {
    const char *unit;

    while (is_digit(**at))
      (*at)++;
    unit = **at != '\0' ? strchr(units, **at) : NULL;
    if (unit == NULL)
      return 0;
    units = unit + 1;
    (*at)++;
    n++;
  }
  return n;
}

static int is_duration(const char *text) {
  int n;

  if (*text++ != 'P')
    return 0;
  n = skip_parts(&text, "YMWD");
  if (*text == 'T') {
    text++;
    n = skip_parts(&text, "HMS");
  }
  return n > 0 && *text == '\0';
}

static int is_uuid(const char *text) {
  return is_end(skip(text, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"));
}

static int is_ip4(const char *text) {
  struct sockaddr_in address;

  return uv_ip4_addr(text, 0, &address) == 0;
}

static int is_ip6(const char *text) {
  struct sockaddr_in6 address;

  return strchr(text, '%') == NULL && uv_ip6_addr(text, 0, &address) == 0;
}

static int is_hostname(const char *text) {
  size_t n_label = 0;

  if (strlen(text) > 253)
    return 0;
  for (; *text != '\0'; text++) {
    int is_dash = *text == '-';

    if (*text == '.') {
      if (n_label == 0 || text[-1] == '-')
        return 0;
      n_label = 0;
      continue;
    }
    if ((!is_letter(*text) && !is_digit(*text) && !is_dash) ||
        (is_dash && n_label == 0) || ++n_label > 63)
      return 0;
  }
  return n_label > 0 && text[-1] != '-';
}

static int is_email(const char *text) {
  const char *at = strrchr(text, '@');

  if (at == NULL || at == text)
    return 0;
  for (; text < at; text++)
    if ((unsigned char)*text <= ' ' || *text == '@')
      return 0;
  return is_hostname(at + 1);
}

static int is_uri(const char *text) {
  const char *at = text;

  if (!is_letter(*at))
    return 0;
  while (is_letter(*at) || is_digit(*at) || strchr("+-.", *at) != NULL) {
    if (*at == '\0')
      return 0;
    at++;
  }
  if (*at++ != ':')
    return 0;
  for (; *at != '\0'; at++)
    if ((unsigned char)*at <= ' ' || (unsigned char)*at >= 0x7f ||
        strchr("\"<>\\^`{|}", *at) != NULL)
      return 0;
  return 1;
}

int tnk__gw_has_format(const char *format, const char *text) {
  static const struct {
    const char *name;
    int (*is)(const char *text);
  } formats[] = {
      {"date", is_date},
      {"time", is_time},
      {"date-time", is_date_time},
      {"duration", is_duration},
      {"uuid", is_uuid},
      {"ipv4", is_ip4},
      {"ipv6", is_ip6},
      {"hostname", is_hostname},
      {"email", is_email},
      {"uri", is_uri},
  };

  for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++)
    if (strcmp(formats[i].name, format) == 0)
      return formats[i].is(text);
  return -1;
}
