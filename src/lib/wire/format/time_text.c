/* SPDX-License-Identifier: MIT */
#include "lib/wire/format/time_text.h"

#include <stdio.h>

#define US_PER_S INT64_C(1000000)
#define S_PER_DAY INT64_C(86400)
/* Larger numbers cannot be seconds of a plausible year. */
#define MAX_SECONDS 2e10

/* The first and the last second of the years 1 to 9999. */
#define MIN_S INT64_C(-62135596800)
#define MAX_S INT64_C(253402300799)

/* ---- The calendar ---- */

/* Days since 1970-01-01 in the Gregorian calendar. Years are counted from
 * March, so that a leap day is the last day, and repeat after 400. */
static int64_t days_of(int64_t year, int month, int day) {
  const int64_t y = year - (month <= 2);
  const int64_t era = y / 400; /* never negative here */
  const int64_t in_era = y - era * 400;
  const int64_t in_year =
      (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  const int64_t in_cycle = in_era * 365 + in_era / 4 - in_era / 100 + in_year;

  return era * 146097 + in_cycle - 719468;
}

static int days_in(int64_t year, int month) {
  static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const int is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

  return days[month - 1] + (month == 2 && is_leap);
}

/* ---- Reading ---- */

typedef struct {
  const char *at;
  const char *end;
} cursor_t;

static int is_digit(const cursor_t *c) {
  return c->at < c->end && *c->at >= '0' && *c->at <= '9';
}

static int take(cursor_t *c, char wanted) {
  if (c->at == c->end || *c->at != wanted)
    return 0;
  c->at++;
  return 1;
}

/* Read exactly n digits, or return -1. */
static int take_digits(cursor_t *c, int n) {
  int value = 0;

  for (; n > 0; n--) {
    if (!is_digit(c))
      return -1;
    value = value * 10 + (*c->at++ - '0');
  }
  return value;
}

static int read_date(cursor_t *c, int64_t *days) {
  const int year = take_digits(c, 4);
  const int dash = take(c, '-');
  const int month = take_digits(c, 2);
  const int dash2 = take(c, '-');
  const int day = take_digits(c, 2);

  if (year < 1 || !dash || month < 1 || month > 12 || !dash2 || day < 1 ||
      day > days_in(year, month))
    return 0;
  *days = days_of(year, month, day);
  return 1;
}

/* Read the digits of a fraction. Digits beyond microseconds are dropped. */
static int read_fraction(cursor_t *c, int64_t *us) {
  int64_t unit = US_PER_S / 10;

  if (!is_digit(c))
    return 0;
  for (; is_digit(c); c->at++, unit /= 10)
    *us += (*c->at - '0') * unit;
  return 1;
}

static int read_clock(cursor_t *c, int64_t *us) {
  const int hour = take_digits(c, 2);
  const int colon = take(c, ':');
  const int minute = take_digits(c, 2);
  int second = 0;

  if (hour < 0 || hour > 23 || !colon || minute < 0 || minute > 59)
    return 0;
  if (take(c, ':')) {
    second = take_digits(c, 2);
    if (second < 0 || second > 60)
      return 0;
  }
  *us = (((int64_t)hour * 60 + minute) * 60 + second) * US_PER_S;
  return !take(c, '.') || read_fraction(c, us);
}

/* Read the offset of a zone from UTC. Without a zone it is 0. */
static int read_zone(cursor_t *c, int64_t *seconds) {
  int sign;
  int hours;
  int minutes = 0;

  *seconds = 0;
  if (c->at == c->end || take(c, 'Z') || take(c, 'z'))
    return 1;
  sign = take(c, '-') ? -1 : take(c, '+');
  hours = take_digits(c, 2);
  if (sign == 0 || hours < 0 || hours > 23)
    return 0;
  if (take(c, ':') || is_digit(c))
    minutes = take_digits(c, 2);
  if (minutes < 0 || minutes > 59)
    return 0;
  *seconds = sign * (hours * INT64_C(3600) + minutes * INT64_C(60));
  return 1;
}

static int in_range(int64_t us) {
  return us >= MIN_S * US_PER_S && us < (MAX_S + 1) * US_PER_S;
}

int tnk__time_read(int64_t *us, const char *text, size_t n) {
  cursor_t c = {text, text + n};
  int64_t days;
  int64_t clock = 0;
  int64_t zone = 0;
  int64_t read;

  if (!read_date(&c, &days))
    return 0;
  if (c.at != c.end) {
    if (!take(&c, 'T') && !take(&c, 't') && !take(&c, ' '))
      return 0;
    if (!read_clock(&c, &clock) || !read_zone(&c, &zone) || c.at != c.end)
      return 0;
  }
  read = (days * S_PER_DAY - zone) * US_PER_S + clock;
  if (!in_range(read))
    return 0;
  *us = read;
  return 1;
}

int tnk__time_of_number(int64_t *us, double number) {
  const double unit =
      number > MAX_SECONDS || number < -MAX_SECONDS ? 1000.0 : (double)US_PER_S;

  if (!(number >= (double)MIN_S * 1000 && number <= (double)MAX_S * 1000))
    return 0;
  *us = (int64_t)(number * unit);
  return in_range(*us);
}

/* ---- Writing ---- */

/* Times out of range are written as the nearest valid time. */
void tnk__time_write(char *out, int64_t us) {
  int64_t seconds;
  int64_t days;
  int64_t year;
  int month = 1;
  unsigned rest;
  int clock;

  if (us < MIN_S * US_PER_S)
    us = MIN_S * US_PER_S;
  if (!in_range(us))
    us = (MAX_S + 1) * US_PER_S - 1;
  us -= MIN_S * US_PER_S;
  rest = (unsigned)(us % US_PER_S);
  seconds = us / US_PER_S;
  days = seconds / S_PER_DAY + days_of(1, 1, 1);
  clock = (int)(seconds % S_PER_DAY);
  /* The estimate is never too low, and at most a few years too high. */
  year = 1970 + days / 365 + 2;
  if (year > 9999)
    year = 9999;
  while (days_of(year, 1, 1) > days)
    year--;
  while (month < 12 && days_of(year, month + 1, 1) <= days)
    month++;
  out += snprintf(out, TNK__TIME_TEXT, "%04d-%02d-%02dT%02d:%02d:%02d",
                  (int)year, month, (int)(days - days_of(year, month, 1)) + 1,
                  clock / 3600, clock / 60 % 60, clock % 60);
  if (rest > 0)
    snprintf(out, 9, ".%06uZ", rest);
  else
    snprintf(out, 2, "Z");
}
