/* SPDX-License-Identifier: MIT */
#include "lib/policy/retry_after.h"

#include <string.h>

/*
 * The header Retry-After in all the forms that servers use. The parser does not
 * depend on the locale or the time zone of the process.
 */

/* Larger than all limits, and exact in a double. */
#define HUGE_NUMBER 1e15

static const char *skip_spaces(const char *p) {
  while (*p == ' ' || *p == '\t')
    p++;
  return p;
}

static int is_digit(char c) {
  return c >= '0' && c <= '9';
}

static char to_lower(char c) {
  return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* ---- A number ---- */

/* value * 10^exponent, where the exponent may be anything. */
static double scale(double value, int exponent) {
  for (; exponent > 0 && value < HUGE_NUMBER; exponent--)
    value *= 10;
  for (; exponent < 0 && value > 0; exponent++)
    value /= 10;
  return value;
}

/* Read an exponent such as "e-3". Without one, *p does not move. */
static int read_exponent(const char **p) {
  const char *q = *p;
  int negative;
  int exponent = 0;

  if (to_lower(*q) != 'e')
    return 0;
  q++;
  negative = *q == '-';
  q += *q == '-' || *q == '+';
  if (!is_digit(*q))
    return 0;
  for (; is_digit(*q); q++) {
    if (exponent < 1000)
      exponent = exponent * 10 + (*q - '0');
  }
  *p = q;
  return negative ? -exponent : exponent;
}

/* Read the whole string as a number of units of unit_ms. Returns 1 if it is a
 * number. Numbers that are not positive count as 0. */
static int read_number(const char *text, double unit_ms, uint64_t *ms) {
  const char *p = skip_spaces(text);
  int negative = *p == '-';
  int n_digits = 0;
  int exponent = 0;
  double value = 0;

  p += *p == '-' || *p == '+';
  for (; is_digit(*p); p++, n_digits++) {
    if (value < HUGE_NUMBER)
      value = value * 10 + (*p - '0');
  }
  if (*p == '.') {
    for (p++; is_digit(*p); p++, n_digits++) {
      if (value < HUGE_NUMBER) {
        value = value * 10 + (*p - '0');
        exponent--;
      }
    }
  }
  if (n_digits == 0)
    return 0;
  exponent += read_exponent(&p);
  if (*skip_spaces(p) != '\0')
    return 0;
  value = scale(value, exponent) * unit_ms;
  if (negative)
    value = 0;
  if (value > HUGE_NUMBER)
    value = HUGE_NUMBER;
  *ms = (uint64_t)value;
  *ms += (double)*ms < value; /* round up: a wait is never shortened */
  return 1;
}

/* ---- A date ---- */

typedef struct {
  int64_t year;
  int month; /* from 1 */
  int day;
  int hour;
  int minute;
  int second;
} date_t;

/* Days since 1970-01-01 of a day of the Gregorian calendar. The year is
 * counted from March, so that the leap day is its last. */
static int64_t days_of(int64_t year, int month, int day) {
  int64_t y = year - (month <= 2);
  int64_t era = (y >= 0 ? y : y - 399) / 400;
  int64_t of_era = y - era * 400;
  int64_t of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;

  return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year -
         719468;
}

/* Accurate enough for the window of two-digit years. */
static int64_t year_of(int64_t unix_s) {
  return 1970 + unix_s / 31556952;
}

static int days_in_month(int64_t year, int month) {
  static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  int leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

  return days[month - 1] + (month == 2 && leap);
}

/* Index of the three letters at *p in a list of such names, else -1. */
static int read_name(const char **p, const char *names) {
  for (int i = 0; names[3 * i] != '\0'; i++) {
    const char *name = names + 3 * i;

    if (to_lower((*p)[0]) == name[0] && to_lower((*p)[1]) == name[1] &&
        to_lower((*p)[2]) == name[2]) {
      *p += 3;
      return i;
    }
  }
  return -1;
}

static int read_month(const char **p, date_t *date) {
  date->month = read_name(p, "janfebmaraprmayjunjulaugsepoctnovdec") + 1;
  return date->month > 0;
}

/* Read between min and max digits, with no digit after them. */
static int read_digits(const char **p, int min, int max, int *value) {
  int n = 0;

  *value = 0;
  for (; n < max && is_digit(**p); n++, (*p)++)
    *value = *value * 10 + (**p - '0');
  return n >= min && !is_digit(**p);
}

static int read_char(const char **p, char c) {
  if (**p != c)
    return 0;
  (*p)++;
  return 1;
}

static int read_time(const char **p, date_t *date) {
  return read_digits(p, 2, 2, &date->hour) && read_char(p, ':') &&
         read_digits(p, 2, 2, &date->minute) && read_char(p, ':') &&
         read_digits(p, 2, 2, &date->second);
}

/* "06 Nov 1994 08:49:37 GMT", or with '-' and a year of two digits, which is
 * never more than 50 years ahead of now. */
static int read_day_first(const char *p, int64_t now_s, date_t *date) {
  const char *year_at;
  char separator;
  int year;

  p = skip_spaces(p);
  if (!read_digits(&p, 1, 2, &date->day))
    return 0;
  separator = *p;
  if ((separator != ' ' && separator != '-') || !read_char(&p, separator) ||
      !read_month(&p, date) || !read_char(&p, separator))
    return 0;
  year_at = p;
  if (!read_digits(&p, 2, 4, &year) || p - year_at == 3)
    return 0;
  date->year = year;
  if (p - year_at == 2) {
    date->year += year_of(now_s) / 100 * 100;
    if (date->year > year_of(now_s) + 50)
      date->year -= 100;
    else if (date->year < year_of(now_s) - 49)
      date->year += 100;
  }
  if (!read_char(&p, ' ') || !read_time(&p, date) || !read_char(&p, ' '))
    return 0;
  return read_name(&p, "gmtutc") >= 0 && *skip_spaces(p) == '\0';
}

/* "Nov  6 08:49:37 1994". */
static int read_month_first(const char *p, date_t *date) {
  int year;

  p = skip_spaces(p);
  if (!read_month(&p, date) || !read_char(&p, ' '))
    return 0;
  p = skip_spaces(p);
  if (!read_digits(&p, 1, 2, &date->day) || !read_char(&p, ' ') ||
      !read_time(&p, date) || !read_char(&p, ' ') ||
      !read_digits(&p, 4, 4, &year) || *skip_spaces(p) != '\0')
    return 0;
  date->year = year;
  return 1;
}

/* Read one of the three HTTP date formats. Returns 1 if it is one. The day of
 * the week must be present but is not checked. */
int tnk__http_date_read(const char *text, int64_t now_s, int64_t *unix_s) {
  const char *p = skip_spaces(text);
  date_t date;

  if (read_name(&p, "sunmontuewedthufrisat") < 0)
    return 0;
  while (to_lower(*p) >= 'a' && to_lower(*p) <= 'z')
    p++;
  if (*p == ',' ? !read_day_first(p + 1, now_s, &date)
                : !read_month_first(p, &date))
    return 0;
  if (date.day < 1 || date.day > days_in_month(date.year, date.month) ||
      date.hour > 23 || date.minute > 59 || date.second > 60)
    return 0;
  *unix_s = days_of(date.year, date.month, date.day) * 86400 +
            date.hour * 3600 + date.minute * 60 + date.second;
  return 1;
}

/* ---- The headers ---- */

static uint64_t honored(uint64_t ms) {
  return ms <= TNK__RETRY_AFTER_MAX_MS ? ms : 0;
}

uint64_t tnk__retry_after(const char *retry_after_ms, const char *retry_after,
                          const char *date, int64_t wall_s) {
  int64_t then_s;
  int64_t now_s;
  uint64_t ms;

  if (retry_after_ms != NULL && read_number(retry_after_ms, 1, &ms))
    return honored(ms);
  if (retry_after == NULL)
    return 0;
  if (read_number(retry_after, 1000, &ms))
    return honored(ms);
  if (!tnk__http_date_read(retry_after, wall_s, &then_s))
    return 0;
  if (date == NULL || !tnk__http_date_read(date, wall_s, &now_s))
    now_s = wall_s;
  return then_s > now_s ? honored((uint64_t)(then_s - now_s) * 1000) : 0;
}

tnk__should_retry_t tnk__should_retry(const char *value) {
  if (value == NULL)
    return TNK__SHOULD_RETRY_UNSAID;
  if (strcmp(value, "true") == 0)
    return TNK__SHOULD_RETRY_YES;
  if (strcmp(value, "false") == 0)
    return TNK__SHOULD_RETRY_NO;
  return TNK__SHOULD_RETRY_UNSAID;
}
