/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "chat/jinja/run.h"
#include "tnk/error.h"

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

/* Append a time in a format of strftime(), always in English. `now_s` is in
 * seconds since 1970, in the caller's local time. Returns 0 for an unknown
 * conversion. */
static int date_text(tnk__buf_t *out, int64_t now_s, const char *format,
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

/* ---- Functions ---- */

/* Functions that every template can call. */

/* The limit of the reference's sandbox. */
enum { MAX_RANGE = 100000 };

#define FUNCTION(name)                                                         \
  static tnk__value_t name(tnk__run_t *run, tnk__value_t self,                 \
                           const tnk__value_t *v, const tnk__args_t *args)

FUNCTION(range) {
  tnk__range_t *made = tnk__heap_alloc(run->heap, sizeof(*made));
  int64_t start;
  int64_t stop;
  int64_t step;
  uint64_t n = 0;

  (void)self, (void)args;
  if (made == NULL || !tnk__arg_whole(run, v[0], 0, &start) ||
      !tnk__arg_whole(run, v[1], 0, &stop) ||
      !tnk__arg_whole(run, v[2], 1, &step))
    return tnk__value_undefined();
  if (!tnk__is_given(v[1])) {
    stop = start;
    start = 0;
  }
  if (step == 0)
    return tnk__fail(run, TNK_EINVAL, "the step of a range is zero");
  if (step > 0 && stop > start)
    n = ((uint64_t)stop - (uint64_t)start - 1) / (uint64_t)step + 1;
  else if (step < 0 && stop < start)
    n = ((uint64_t)start - (uint64_t)stop - 1) / (0 - (uint64_t)step) + 1;
  if (n > MAX_RANGE)
    return tnk__fail(run, TNK_EINVAL, "a range has more than 100000 numbers");
  *made = (tnk__range_t){start, stop, step, (size_t)n};
  return tnk__object(TNK__OBJECT_RANGE, made);
}

/* Factor of the charge for a key that is added to a dict: it is hashed or
 * compared twice. */
enum { KEYS = 2 * TNK__COST_HASH / TNK__COST_COPY };

/* Add members from a dict or from pairs, then the named arguments. */
static tnk__value_t make_dict(tnk__run_t *run, const tnk__args_t *args) {
  const tnk__value_t dict = tnk__value_dict(run->heap);
  tnk__iter_t iter;
  tnk__value_t item;

  if (args->n > 1)
    return tnk__fail(run, TNK_EINVAL, "a dict is made of one thing");
  if (args->n == 1 && tnk__refuse_undefined(run, args->items[0]))
    return tnk__value_undefined();
  if (args->n == 1 && args->items[0].kind == TNK__VALUE_DICT) {
    const tnk__value_dict_t *from = args->items[0].as.dict;

    for (size_t i = 0;
         i < from->n && tnk__charge_value(run, from->entries[i].key, KEYS); i++)
      tnk__value_put(run->heap, dict, from->entries[i].key,
                     from->entries[i].value);
  } else if (args->n == 1 && tnk__iter_begin(run, &iter, args->items[0])) {
    while (tnk__iter_next(run, &iter, &item)) {
      item = tnk__list_of(run, item);
      if (run->err != TNK_OK)
        return tnk__value_undefined();
      if (item.as.list->n != 2 || !tnk__can_be_key(run, item.as.list->items[0]))
        return tnk__fail(run, TNK_EINVAL, "a dict is made of pairs");
      tnk__value_put(run->heap, dict, item.as.list->items[0],
                     item.as.list->items[1]);
    }
  }
  for (size_t i = 0; i < args->n_named; i++)
    tnk__value_put(run->heap, dict, args->names[i], args->values[i]);
  return dict;
}

FUNCTION(dict) {
  (void)self, (void)v;
  return make_dict(run, args);
}

FUNCTION(namespace) {
  tnk__value_t space = make_dict(run, args);

  (void)self, (void)v;
  if (space.kind != TNK__VALUE_DICT)
    return space;
  return tnk__object(TNK__OBJECT_NAMESPACE, space.as.dict);
}

static int namespace_attr(tnk__run_t *run, tnk__value_t self, tnk__value_t name,
                          tnk__value_t *out) {
  const tnk__value_t dict = {.kind = TNK__VALUE_DICT, .as.dict = self.as.dict};

  (void)run;
  if (!tnk__value_look_up(dict, name, out))
    return 0;
  if (name.n_text > 0 && name.as.text[0] == '_') {
    *out = tnk__undefined(name);
    out->spare = TNK__IS_UNSAFE;
  }
  return 1;
}

static void namespace_print(tnk__run_t *run, tnk__buf_t *out, tnk__value_t self,
                            int depth) {
  tnk__buf_text(out, "<Namespace ");
  tnk__print_members(run, out, self.as.dict, depth + 1);
  tnk__buf_byte(out, '>');
}

const tnk__class_t tnk__class_namespace = {
    .name = "namespace", .attr = namespace_attr, .print = namespace_print};

/* ---- Joiners and cyclers ---- */

typedef struct {
  tnk__value_t text;
  int is_used;
} joiner_t;

typedef struct {
  tnk__value_t items; /* LIST */
  size_t at;
} cycler_t;

FUNCTION(joiner) {
  joiner_t *made = tnk__heap_alloc(run->heap, sizeof(*made));

  (void)self, (void)args;
  if (made == NULL)
    return tnk__value_undefined();
  *made = (joiner_t){tnk__is_given(v[0]) ? v[0] : tnk__value_text(", ", 2), 0};
  return tnk__object(TNK__OBJECT_JOINER, made);
}

static tnk__value_t joiner_call(tnk__run_t *run, tnk__value_t self,
                                const tnk__args_t *args) {
  joiner_t *joiner = self.as.object;

  if (args->n + args->n_named > 0)
    return tnk__fail(run, TNK_EINVAL, "a joiner takes no arguments");
  if (joiner->is_used)
    return joiner->text;
  joiner->is_used = 1;
  return tnk__value_text("", 0);
}

const tnk__class_t tnk__class_joiner = {
    .name = "joiner", .lacking = "sep used", .call = joiner_call};

FUNCTION(cycler) {
  cycler_t *made = tnk__heap_alloc(run->heap, sizeof(*made));

  (void)self, (void)v;
  if (made == NULL)
    return tnk__value_undefined();
  if (args->n == 0 || args->n_named > 0)
    return tnk__fail(run, TNK_EINVAL, "a cycler needs items");
  *made = (cycler_t){tnk__value_list(run->heap), 0};
  if (!tnk__charge(run, TNK__COST_ITEM, args->n))
    return tnk__value_undefined();
  for (size_t i = 0; i < args->n; i++)
    tnk__value_append(run->heap, made->items, args->items[i]);
  return tnk__is_fine(run) ? tnk__object(TNK__OBJECT_CYCLER, made)
                           : tnk__value_undefined();
}

FUNCTION(next) {
  cycler_t *cycler = self.as.object;
  const tnk__value_t item = cycler->items.as.list->items[cycler->at];

  (void)run, (void)v, (void)args;
  cycler->at = (cycler->at + 1) % cycler->items.as.list->n;
  return item;
}

FUNCTION(reset) {
  cycler_t *cycler = self.as.object;

  (void)run, (void)v, (void)args;
  cycler->at = 0;
  return tnk__value_none();
}

static int cycler_attr(tnk__run_t *run, tnk__value_t self, tnk__value_t name,
                       tnk__value_t *out) {
  const cycler_t *cycler = self.as.object;

  (void)run;
  if (!tnk__value_is(name, "current"))
    return 0;
  *out = cycler->items.as.list->items[cycler->at];
  return 1;
}

static const tnk__builtin_t functions[] = {
    {"next", "/", 0, next},
    {"reset", "/", 0, reset},
    {NULL, NULL, 0, NULL},
};
static const tnk__builtin_t *const methods[] = {functions, NULL};

const tnk__class_t tnk__class_cycler = {
    .name = "cycler", .methods = methods, .attr = cycler_attr};

/* ---- Others ---- */

FUNCTION(raise_exception) {
  const tnk__value_t text = tnk__text_of(run, v[0]);

  (void)self, (void)args;
  if (run->err != TNK_OK)
    return tnk__value_undefined();
  return tnk__fail(run, TNK_EINVAL, "the template refuses: %.*s",
                   (int)(text.n_text < 320 ? text.n_text : 320), text.as.text);
}

FUNCTION(strftime_now) {
  tnk__value_t format;
  tnk__buf_t buf;

  (void)self, (void)args;
  if (!tnk__arg_text(run, v[0], NULL, &format))
    return tnk__value_undefined();
  if (run->env.now_s == NULL)
    return tnk__fail(run, TNK_EINVAL,
                     "the template asks for the time, which it is not given");
  if (!tnk__charge(run, TNK__COST_FORMAT, format.n_text))
    return tnk__value_undefined();
  tnk__scratch(run, &buf);
  if (!date_text(&buf, run->env.now_s(run->env.user), format.as.text,
                 format.n_text))
    tnk__fail(run, TNK_EUNSUPPORTED, "a format of the time is not known");
  return tnk__scratch_text(run, &buf);
}

const tnk__builtin_t tnk__globals[] = {
    {"namespace", NULL, 0, namespace},
    {"raise_exception", "message", 1, raise_exception},
    {"strftime_now", "format", 1, strftime_now},
    {"range", "/start stop step", 1, range},
    {"dict", NULL, 0, dict},
    {"cycler", NULL, 0, cycler},
    {"joiner", "sep", 0, joiner},
    {NULL, NULL, 0, NULL},
};
