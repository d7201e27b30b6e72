#include "lib/files/tar/header.h"

#include <string.h>

/* Offsets of the fields in a block. */
enum {
  NAME = 0,
  NAME_SIZE = 100,
  SIZE = 124,
  SIZE_SIZE = 12,
  SUM = 148,
  SUM_SIZE = 8,
  KIND = 156,
  MAGIC = 257,
  PREFIX = 345,
  PREFIX_SIZE = 155
};

int tnk__tar_is_zero(const uint8_t *data, size_t n) {
  unsigned all = 0;

  for (size_t i = 0; i < n; i++)
    all |= data[i];
  return all == 0;
}

/* Octal digits, padded with spaces and ended by a NUL or the field. If the
 * first bit is set, a binary number, which GNU tar uses for large values. */
static int read_number(uint64_t *out, const uint8_t *field, size_t n) {
  size_t i = 0;

  *out = 0;
  if (field[0] == 0x80) {
    for (i = 1; i < n; i++) {
      if (*out >> 55 != 0)
        return 0;
      *out = *out << 8 | field[i];
    }
    return 1;
  }
  while (i < n && field[i] == ' ')
    i++;
  if (i == n || field[i] < '0' || field[i] > '7')
    return 0;
  for (; i < n && field[i] >= '0' && field[i] <= '7'; i++)
    *out = *out << 3 | (uint64_t)(field[i] - '0'); /* at most 36 bits */
  for (; i < n; i++)
    if (field[i] != ' ' && field[i] != '\0')
      return 0;
  return 1;
}

/* The sum of all bytes, with spaces in place of the checksum field. */
static uint64_t add_up(const uint8_t block[TNK__TAR_BLOCK]) {
  uint64_t sum = 0;

  for (size_t i = 0; i < TNK__TAR_BLOCK; i++)
    sum += i >= SUM && i < SUM + SUM_SIZE ? ' ' : block[i];
  return sum;
}

static size_t field_length(const uint8_t *field, size_t n) {
  const uint8_t *end = memchr(field, '\0', n);

  return end != NULL ? (size_t)(end - field) : n;
}

const char *tnk__tar_header_read(tnk__tar_header_t *out,
                                 const uint8_t block[TNK__TAR_BLOCK]) {
  size_t n_prefix, n_name;
  uint64_t sum;

  memset(out, 0, sizeof(*out));
  if (memcmp(block + MAGIC, "ustar", 5) != 0)
    return "the archive is no tar, or of a kind that is not known";
  if (!read_number(&sum, block + SUM, SUM_SIZE) || sum != add_up(block))
    return "the archive was changed: a checksum is wrong";
  if (!read_number(&out->size, block + SIZE, SIZE_SIZE))
    return "the archive is malformed: a size is no number";
  out->kind = block[KIND] == '\0' ? '0' : (char)block[KIND];
  /* GNU's format uses the prefix field for other data. */
  n_prefix =
      block[MAGIC + 5] == '\0' ? field_length(block + PREFIX, PREFIX_SIZE) : 0;
  n_name = field_length(block + NAME, NAME_SIZE);
  memcpy(out->name, block + PREFIX, n_prefix);
  if (n_prefix > 0)
    out->name[n_prefix++] = '/';
  memcpy(out->name + n_prefix, block + NAME, n_name);
  return NULL;
}

static int read_decimal(uint64_t *out, const char *text, size_t n) {
  *out = 0;
  for (size_t i = 0; i < n; i++) {
    if (text[i] < '0' || text[i] > '9' || *out > UINT64_MAX / 20)
      return 0;
    *out = *out * 10 + (uint64_t)(text[i] - '0');
  }
  return n > 0;
}

static int is_key(const char *key, size_t n, const char *wanted) {
  return n == strlen(wanted) && memcmp(key, wanted, n) == 0;
}

/* Parse one record without its length and newline. */
static int read_record(tnk__tar_pax_t *out, const char *key, size_t n) {
  const char *equals = memchr(key, '=', n);
  size_t n_key, n_value;

  if (equals == NULL || equals == key)
    return 0;
  n_key = (size_t)(equals - key);
  n_value = n - n_key - 1;
  if (is_key(key, n_key, "path")) {
    out->path = equals + 1;
    out->n_path = n_value;
  } else if (is_key(key, n_key, "size")) {
    return read_decimal(&out->size, equals + 1, n_value);
  } else if (n_key > 11 && memcmp(key, "GNU.sparse.", 11) == 0) {
    out->is_sparse = 1;
  }
  return 1;
}

int tnk__tar_pax_read(tnk__tar_pax_t *out, const char *data, size_t n) {
  *out = (tnk__tar_pax_t){.size = UINT64_MAX};
  while (n > 0) {
    const char *blank = memchr(data, ' ', n < 8 ? n : 8);
    uint64_t length;
    size_t n_digits;
    if (blank == NULL)
      return 0;
    n_digits = (size_t)(blank - data);
    if (!read_decimal(&length, data, n_digits) || length > n ||
        length < n_digits + 2 || data[length - 1] != '\n' ||
        !read_record(out, blank + 1, (size_t)length - n_digits - 2))
      return 0;
    data += length;
    n -= (size_t)length;
  }
  return 1;
}
