#include "lib/wire/data/dmel.h"

/* The head: a mark, which precedes a tensor of one constant value, the type of
 * the elements, the number of dimensions, and the dimensions. The numbers are
 * in groups of seven bits, the lowest first. */
enum { CONSTANT = 254, MAX_DTYPE = 7, MORE = 0x80 };

typedef struct {
  const uint8_t *at;
  const uint8_t *end;
} head_t;

/* Returns NULL, or a description of the fault. */
static const char *read_number(head_t *head, uint64_t *out) {
  uint64_t value = 0;
  uint8_t byte = MORE;

  for (unsigned shift = 0; (byte & MORE) != 0; shift += 7) {
    if (head->at == head->end)
      return "its head is cut off";
    /* Nine groups suffice for any real number. */
    if (shift >= 63)
      return "a number in its head is too large";
    byte = *head->at++;
    value |= (uint64_t)(byte & 0x7f) << shift;
  }
  *out = value;
  return NULL;
}

static const char *read_head(head_t *head, uint64_t *length) {
  uint64_t n_dims, dim;
  const char *why;

  if (head->at < head->end && *head->at == CONSTANT)
    head->at++;
  if (head->at == head->end)
    return "its head is cut off";
  if (*head->at++ > MAX_DTYPE)
    return "its elements are of no known type";
  why = read_number(head, &n_dims);
  if (why == NULL && n_dims == 0)
    why = "it has no dimensions";
  /* Each dimension takes at least a byte, so the input bounds this loop. */
  for (uint64_t i = 0; why == NULL && i < n_dims; i++)
    why = read_number(head, i == 0 ? length : &dim);
  return why == NULL && *length > INT32_MAX ? "it is too long" : why;
}

int64_t tnk__dmel_length(const void *bytes, size_t n, const char **why) {
  head_t head = {.at = bytes, .end = (const uint8_t *)bytes + n};
  uint64_t length = 0;
  const char *wrong = read_head(&head, &length);

  if (why != NULL)
    *why = wrong;
  return wrong == NULL ? (int64_t)length : -1;
}
