/* SPDX-License-Identifier: MIT */
#include "lib/base/options.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/limits.h"

#define END_OF(type, member)                                                   \
  (offsetof(type, member) + sizeof(((const type *)0)->member))

/* If a size differs, the library was never released with this layout. */
#define CHECK_ROW(type, init, first, bytes, last, reserved)                    \
  _Static_assert(offsetof(type, size) == 0, #type " begins with its size");    \
  _Static_assert(END_OF(type, last) == sizeof(type),                           \
                 #type " ends in padding, or its last member is another");     \
  _Static_assert(sizeof(void *) != 8 || END_OF(type, first) == (bytes),        \
                 #type " does not begin as when it was first released");
TNK__STRUCTS_IN(CHECK_ROW)
TNK__STRUCTS_OUT(CHECK_ROW)

#define RESERVED_YES(type)                                                     \
  .reserved_at = offsetof(type, reserved),                                     \
  .n_reserved = sizeof(((const type *)0)->reserved)
#define RESERVED_NO(type) .n_reserved = 0
#define ROW(type, init_name, first_last, bytes, last, has_reserved)            \
  [TNK__STRUCT_##type] = {.name = #type,                                       \
                          .init = #init_name,                                  \
                          .size = sizeof(type),                                \
                          .first = END_OF(type, first_last),                   \
                          RESERVED_##has_reserved(type)},
static const tnk__struct_t rows[TNK__N_STRUCTS] = {TNK__STRUCTS_IN(ROW)
                                                       TNK__STRUCTS_OUT(ROW)};

const tnk__struct_t *tnk__struct(tnk__struct_id_t id) {
  return &rows[id];
}

/* The struct of an older caller may be smaller, so only this member is read
 * before its size is known. */
static size_t size_of(const void *any) {
  size_t size;

  memcpy(&size, any, sizeof(size));
  return size;
}

/* Uninitialized memory may have any size, which must not be trusted. */
static int is_size(const tnk__struct_t *row, size_t size) {
  return size >= row->first && size <= TNK__MAX_STRUCT;
}

/* The position of the first nonzero byte in [from, to), or `to`. */
static size_t find_set(const unsigned char *bytes, size_t from, size_t to) {
  while (from < to && bytes[from] == 0)
    from++;
  return from;
}

int tnk__struct_load(void *dst, const tnk__struct_t *row, const void *src,
                     char *why, size_t why_size) {
  size_t reserved_end = row->reserved_at + row->n_reserved;
  const unsigned char *bytes = src;
  size_t size;
  size_t at;

  if (why != NULL && why_size > 0)
    why[0] = '\0';
  if (src == NULL)
    return TNK_OK;
  size = size_of(src);
  if (!is_size(row, size)) {
    snprintf(why, why != NULL ? why_size : 0, "size is %zu: begin with %s",
             size, row->init);
    return TNK_EINVAL;
  }
  if (reserved_end > size) /* newer than this caller */
    reserved_end = size;
  if (find_set(bytes, row->reserved_at, reserved_end) < reserved_end) {
    snprintf(why, why != NULL ? why_size : 0,
             "%s.reserved is set, which this library (%s) does not know",
             row->name, TNK_VERSION_STRING);
    return TNK_ENOTSUP;
  }
  at = find_set(bytes, row->size, size);
  if (at < size) {
    snprintf(why, why != NULL ? why_size : 0,
             "%s has a member at byte %zu that this library (%s) does not know",
             row->name, at, TNK_VERSION_STRING);
    return TNK_ENOTSUP;
  }
  memcpy(dst, src, size < row->size ? size : row->size);
  /* `dst` belongs to this library and keeps this library's size. */
  memcpy(dst, &row->size, sizeof(row->size));
  return TNK_OK;
}

typedef struct {
  const char *name;
  size_t at;
  tnk__struct_id_t id;
} choice_t;

#define CHOICE(type, member)                                                   \
  {.name = #member, .at = offsetof(type, member), .id = TNK__STRUCT_##type},
static const choice_t choices[] = {TNK__CHOICES(CHOICE)};

int tnk__struct_read(void *dst, const tnk__struct_t *row, const void *src,
                     char *why, size_t why_size) {
  int err = tnk__struct_load(dst, row, src, why, why_size);

  for (size_t i = 0;
       err == TNK_OK && src != NULL && i < sizeof(choices) / sizeof(choices[0]);
       i++) {
    int value;

    if (row != &rows[choices[i].id])
      continue;
    memcpy(&value, (const char *)dst + choices[i].at, sizeof(value));
    if (value >= TNK_DEFAULT && value <= TNK_NO)
      continue;
    snprintf(why, why != NULL ? why_size : 0,
             "%s is %d, which is none of tnk_choice_t", choices[i].name, value);
    err = TNK_EINVAL;
  }
  return err;
}

int tnk__struct_fill(void *dst, const tnk__struct_t *row, const void *src) {
  const size_t size = size_of(dst);
  const size_t known = size < row->size ? size : row->size;
  const size_t skipped = sizeof(size);

  if (!is_size(row, size))
    return TNK_EINVAL;
  memcpy((char *)dst + skipped, (const char *)src + skipped, known - skipped);
  memset((char *)dst + known, 0, size - known);
  return TNK_OK;
}
