/* SPDX-License-Identifier: MIT */
/*
 * Sized structs, each row of the table: callers that are older and newer than
 * the library, and a library that is newer than this one.
 */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "lib/base/options.h"

#include <stdio.h>
#include <string.h>

#include "support/guard.h"

enum { MAX = 1024, DEFAULT = 0x5a, MORE = 24 };

typedef struct {
  unsigned char dst[MAX];
  char why[TNK__MAX_WHY];
} room_t;

static void set_size(void *any, size_t size) {
  memcpy(any, &size, sizeof(size));
}

static size_t get_size(const void *any) {
  size_t size;

  memcpy(&size, any, sizeof(size));
  return size;
}

/* A caller's struct of `size` bytes: members 1, 2, 3 ..., but `reserved`. */
static guarded_t caller(const tnk__struct_t *row, size_t size) {
  unsigned char bytes[MAX];
  guarded_t guarded;

  for (size_t i = 0; i < sizeof(bytes); i++)
    bytes[i] = (unsigned char)(i % 251 + 1);
  memset(bytes + row->reserved_at, 0, row->n_reserved);
  guarded = guarded_copy(bytes, size < row->size ? size : row->size, size);
  set_size(guarded.data, size);
  return guarded;
}

/* Into a struct that is full of defaults. */
static int load(room_t *room, const tnk__struct_t *row, const void *src) {
  memset(room->dst, DEFAULT, sizeof(room->dst));
  return tnk__struct_load(room->dst, row, src, room->why, sizeof(room->why));
}

static void check_filled(const unsigned char *bytes, size_t from, size_t to,
                         unsigned char value) {
  for (size_t i = from; i < to; i++)
    CHECK_INT(bytes[i], value);
}

/* Everything is the caller's but the size. */
static void check_taken(const room_t *room, const guarded_t *from, size_t n) {
  const size_t at = sizeof(size_t);

  CHECK_MEM(room->dst + at, n - at, (const char *)from->data + at, n - at);
}

#define FOR_EACH_ROW(row)                                                      \
  for (const tnk__struct_t *row = tnk__struct(0), *const end =                 \
                                                      row + TNK__N_STRUCTS;    \
       row < end; row++)

TEST(options_older_caller_keeps_defaults_of_what_it_does_not_know) {
  FOR_EACH_ROW(row) {
    tnk__struct_t later = *row; /* as of a library with more members */
    guarded_t old = caller(row, row->first);
    room_t room;

    CHECK_INT(load(&room, row, old.data), TNK_OK);
    check_taken(&room, &old, row->first);
    CHECK_INT(get_size(room.dst), row->size);
    CHECK_STR(room.why, "");
    later.size += MORE;
    CHECK_INT(load(&room, &later, old.data), TNK_OK);
    check_taken(&room, &old, row->first);
    CHECK_INT(get_size(room.dst), later.size);
    check_filled(room.dst, row->first, later.size, DEFAULT);
    guarded_free(&old);
  }
}

TEST(options_newer_caller_is_told_of_a_member_that_is_not_known) {
  FOR_EACH_ROW(row) {
    guarded_t newer = caller(row, row->size + MORE);
    unsigned char *tail = (unsigned char *)newer.data + row->size;
    char expected[128];
    room_t room;

    CHECK_INT(load(&room, row, newer.data), TNK_OK);
    check_taken(&room, &newer, row->size);
    CHECK_INT(get_size(room.dst), row->size);
    for (size_t i = 0; i < MORE; i++) {
      tail[i] = 1;
      snprintf(expected, sizeof(expected),
               "%s has a member at byte %zu that this library (%s) does not "
               "know",
               row->name, row->size + i, tnk_version());
      CHECK_INT(load(&room, row, newer.data), TNK_ENOTSUP);
      CHECK_STR(room.why, expected);
      check_filled(room.dst, 0, row->size, DEFAULT);
      tail[i] = 0;
    }
    guarded_free(&newer);
  }
}

TEST(options_reserved_member_must_be_zero) {
  FOR_EACH_ROW(row) {
    guarded_t same = caller(row, row->size);
    char expected[64];
    room_t room;

    snprintf(expected, sizeof(expected), "%s.reserved is set", row->name);
    for (size_t i = 0; i < row->n_reserved; i++) {
      unsigned char *byte = (unsigned char *)same.data + row->reserved_at + i;
      *byte = 1;
      CHECK_INT(load(&room, row, same.data), TNK_ENOTSUP);
      CHECK(strstr(room.why, expected) == room.why);
      *byte = 0;
    }
    CHECK_INT(load(&room, row, same.data), TNK_OK);
    guarded_free(&same);
  }
}

#define CHOICE(type, member)                                                   \
  do {                                                                         \
    type from = {.size = sizeof(type)};                                        \
    type to = {.size = sizeof(type)};                                          \
    char why[TNK__MAX_WHY];                                                    \
    for (int value = -1; value <= 3; value++) {                                \
      from.member = (tnk_choice_t)value;                                       \
      CHECK_INT(TNK__LOAD(type, &to, &from, why, sizeof(why)),                 \
                value >= 0 && value <= 2 ? TNK_OK : TNK_EINVAL);               \
      CHECK((strstr(why, #member " is ") != NULL) ==                           \
            (value < 0 || value > 2));                                         \
    }                                                                          \
    CHECK_INT(TNK__LOAD(type, &to, &from, NULL, 0), TNK_EINVAL);               \
    from.member = TNK_NO;                                                      \
    CHECK_INT(TNK__LOAD(type, &to, &from, NULL, 0), TNK_OK);                   \
    CHECK_INT(to.member, TNK_NO);                                              \
  } while (0);

TEST(options_choice_that_is_none_is_refused){TNK__CHOICES(CHOICE)}

TEST(options_size_that_was_never_set_is_refused_with_the_name_of_its_init) {
  FOR_EACH_ROW(row) {
    const size_t wrong[] = {0, 1, row->first - 1, (size_t)0x7fff12345678u,
                            SIZE_MAX};
    guarded_t bare = guarded_copy("", 1, sizeof(size_t));
    char expected[128];
    room_t room;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
      set_size(bare.data, wrong[i]);
      snprintf(expected, sizeof(expected), "size is %zu: begin with %s",
               wrong[i], row->init);
      CHECK_INT(load(&room, row, bare.data), TNK_EINVAL);
      CHECK_STR(room.why, expected);
      CHECK_INT(tnk__struct_load(room.dst, row, bare.data, NULL, 0),
                TNK_EINVAL);
      CHECK_INT(tnk__struct_fill(bare.data, row, room.dst), TNK_EINVAL);
      CHECK_INT(get_size(bare.data), wrong[i]);
      check_filled(room.dst, 0, row->size, DEFAULT);
    }
    CHECK_INT(load(&room, row, NULL), TNK_OK);
    check_filled(room.dst, 0, row->size, DEFAULT);
    guarded_free(&bare);
  }
}

TEST(options_what_the_library_fills_ends_where_the_caller_ends) {
  FOR_EACH_ROW(row) {
    guarded_t ours = caller(row, row->size);
    guarded_t old = guarded_copy("", 1, row->first);
    guarded_t newer = guarded_copy("", 1, row->size + MORE);
    tnk__struct_t later = *row;
    const size_t at = sizeof(size_t);

    set_size(old.data, old.size);
    CHECK_INT(tnk__struct_fill(old.data, row, ours.data), TNK_OK);
    CHECK_INT(get_size(old.data), old.size);
    CHECK_MEM((char *)old.data + at, old.size - at, (char *)ours.data + at,
              old.size - at);
    /* What was there before must not be taken for ours. */
    memset(newer.data, DEFAULT, newer.size);
    set_size(newer.data, newer.size);
    CHECK_INT(tnk__struct_fill(newer.data, row, ours.data), TNK_OK);
    CHECK_INT(get_size(newer.data), newer.size);
    CHECK_MEM((char *)newer.data + at, row->size - at, (char *)ours.data + at,
              row->size - at);
    check_filled(newer.data, row->size, newer.size, 0);
    /* A library with more members, and a caller that has not got them. */
    later.size += MORE;
    CHECK_INT(tnk__struct_fill(ours.data, &later, newer.data), TNK_OK);
    guarded_free(&ours);
    guarded_free(&old);
    guarded_free(&newer);
  }
}
