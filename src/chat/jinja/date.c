/* SPDX-License-Identifier: MIT */
#include "chat/jinja/date.h"

static const char *const months[] = {
    "January", "February", "March",     "April",   "May",      "June",
    "July",    "August",   "September", "October", "November", "December"};
static const char *const days[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                   "Thursday", "Friday", "Saturday"};

typedef struct {
  int year, month, day; /* month and day start at 1 */
  int hour, minute, second;
  int weekday; /* 0: Sunday */
  int yearday; /* starts at 1 */
} date_t;

static int is_leap(int64_t year) {
  return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static date_t to_date(int64_t now_s) {
  static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  int64_t day = now_s / 86400 - (now_s % 86400 < 0);
  const int second = (int)(now_s - day * 86400);
  date_t date = {.year = 1970,
                 .month = 1,
                 .hour = second / 3600,
                 .minute = second / 60 % 60,
                 .second = second % 60,
                 .weekday = (int)(((day + 4) % 7 + 7) % 7)};

  while (day < 0)
    day += 365 + is_leap(--date.year);
  while (day >= 365 + is_leap(date.year))
    day -= 365 + is_leap(date.year++);
  date.yearday = (int)day + 1;
  for (;; date.month++) {
    const int n =
        lengths[date.month - 1] + (date.month == 2 && is_leap(date.year));

    if (day < n)
      break;
    day -= n;
  }
  date.day = (int)day + 1;
  return date;
}

static int put_one(tnk__buf_t *out, const date_t *d, char c) {
  const int hour = d->hour % 12 == 0 ? 12 : d->hour % 12;

  switch (c) {
  case 'Y':
    return tnk__buf_printf(out, "%d", d->year), 1;
  case 'y':
    return tnk__buf_printf(out, "%02d", d->year % 100), 1;
  case 'm':
    return tnk__buf_printf(out, "%02d", d->month), 1;
  case 'd':
    return tnk__buf_printf(out, "%02d", d->day), 1;
  case 'e':
    return tnk__buf_printf(out, "%2d", d->day), 1;
  case 'B':
    return tnk__buf_text(out, months[d->month - 1]), 1;
  case 'b':
  case 'h':
    return tnk__buf_append(out, months[d->month - 1], 3), 1;
  case 'A':
    return tnk__buf_text(out, days[d->weekday]), 1;
  case 'a':
    return tnk__buf_append(out, days[d->weekday], 3), 1;
  case 'H':
    return tnk__buf_printf(out, "%02d", d->hour), 1;
  case 'I':
    return tnk__buf_printf(out, "%02d", hour), 1;
  case 'M':
    return tnk__buf_printf(out, "%02d", d->minute), 1;
  case 'S':
    return tnk__buf_printf(out, "%02d", d->second), 1;
  case 'p':
    return tnk__buf_text(out, d->hour < 12 ? "AM" : "PM"), 1;
  case 'j':
    return tnk__buf_printf(out, "%03d", d->yearday), 1;
  case 'w':
    return tnk__buf_printf(out, "%d", d->weekday), 1;
  case 'u':
    return tnk__buf_printf(out, "%d", d->weekday == 0 ? 7 : d->weekday), 1;
  case 'F':
    return tnk__buf_printf(out, "%d-%02d-%02d", d->year, d->month, d->day), 1;
  case 'T':
    return tnk__buf_printf(out, "%02d:%02d:%02d", d->hour, d->minute,
                           d->second),
           1;
  case '%':
    return tnk__buf_byte(out, '%'), 1;
  default:
    return 0;
  }
}

int tnk__date_text(tnk__buf_t *out, int64_t now_s, const char *format,
                   size_t n) {
  /* Clamp the time to years up to 9999. */
  const int64_t max = INT64_C(253402300799);
  const date_t date = to_date(now_s < 0 ? 0 : now_s > max ? max : now_s);

  for (size_t i = 0; i < n; i++) {
    if (format[i] != '%') {
      tnk__buf_byte(out, (uint8_t)format[i]);
      continue;
    }
    if (++i < n && format[i] == '-' && i + 1 < n) {
      const size_t at = out->len;

      /* Remove the leading zero or space. */
      if (!put_one(out, &date, format[++i]) || out->err != 0)
        return 0;
      if (out->len > at + 1 && (out->data[at] == '0' || out->data[at] == ' ')) {
        out->data[at] = out->data[at + 1];
        out->len--;
      }
      continue;
    }
    if (i >= n || !put_one(out, &date, format[i]))
      return 0;
  }
  return 1;
}
