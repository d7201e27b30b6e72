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

int tnk__is_listed(const char *list, tnk__value_t name) {
  while (list != NULL) {
    const char *blank = strchr(list, ' ');
    const size_t n = blank != NULL ? (size_t)(blank - list) : strlen(list);

    if (n == name.n_text && memcmp(list, name.as.text, n) == 0)
      return 1;
    list = blank != NULL ? blank + 1 : NULL;
  }
  return 0;
}

int tnk__is_hidden(tnk__value_t name) {
  return name.n_text > 4 && memcmp(name.as.text, "__", 2) == 0 &&
         memcmp(name.as.text + name.n_text - 2, "__", 2) == 0;
}

int tnk__class_has(const tnk__class_t *class, tnk__value_t name) {
  return (class->methods != NULL &&
          tnk__builtin_among(class->methods, name) != NULL) ||
         tnk__is_hidden(name) || tnk__is_listed(class->unsafe, name) ||
         tnk__is_listed(class->lacking, name);
}
