#include "chat/template/builtin.h"

#include <string.h>

const tnk__builtin_t *tnk__builtin_find(const tnk__builtin_t *table,
                                        tnk__value_t name) {
  if (name.kind != TNK__VALUE_TEXT)
    return NULL;
  for (; table->name != NULL; table++)
    if (strlen(table->name) == name.n_text &&
        memcmp(table->name, name.as.text, name.n_text) == 0)
      return table;
  return NULL;
}

const tnk__builtin_t *tnk__filter_find(tnk__value_t name) {
  static const tnk__builtin_t *const tables[] = {
      tnk__filters_text, tnk__filters_list, tnk__filters_pick,
      tnk__filters_value};
  const tnk__builtin_t *known = NULL;

  for (size_t i = 0; i < 4 && known == NULL; i++)
    known = tnk__builtin_find(tables[i], name);
  return known;
}

const tnk__builtin_t *tnk__test_find(tnk__value_t name) {
  return tnk__builtin_find(tnk__tests, name);
}
