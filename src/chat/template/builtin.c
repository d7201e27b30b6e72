#include "chat/template/library.h"

#include <string.h>

const tnk__builtin_t *tnk__builtin_find(const tnk__builtin_t *table,
                                        tnk__value_t name) {
  if (name.kind != TNK__VALUE_TEXT || name.n_text == 0)
    return NULL;
  /* The first byte rules most of them out. */
  for (; table->name != NULL; table++)
    if (table->name[0] == name.as.text[0] &&
        strlen(table->name) == name.n_text &&
        memcmp(table->name, name.as.text, name.n_text) == 0)
      return table;
  return NULL;
}

const tnk__builtin_t *tnk__builtin_among(const tnk__builtin_t *const *tables,
                                         tnk__value_t name) {
  const tnk__builtin_t *known = NULL;

  for (; *tables != NULL && known == NULL; tables++)
    known = tnk__builtin_find(*tables, name);
  return known;
}
