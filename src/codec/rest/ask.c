#include "codec/rest/ask.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "codec/format/url.h"
#include "tnk/error.h"

/* Where a call goes. */
typedef struct {
  const char *path; /* "%i" stands for the id */
  int has_part;
  int has_scope;
  int has_project;
} target_t;

static const target_t targets[TNK__N_ASKS] = {
    [TNK__ASK_LIST_RUNS] = {"training_runs", 1, 1, 1},
    [TNK__ASK_GET_RUN] = {"training_runs/%i", 0, 1, 0},
    [TNK__ASK_LIST_RUN_CHECKPOINTS] = {"training_runs/%i/checkpoints", 0, 0, 0},
    [TNK__ASK_LIST_CHECKPOINTS] = {"checkpoints", 1, 0, 0},
};

static void put_path(tnk__buf_t *out, const char *pattern,
                     const tnk__ask_t *ask) {
  const char *hole = strstr(pattern, "%i");

  if (hole == NULL) {
    tnk__buf_text(out, pattern);
    return;
  }
  tnk__buf_append(out, pattern, (size_t)(hole - pattern));
  tnk__url_put_segment(out, ask->id);
  tnk__buf_text(out, hole + 2);
}

void tnk__ask_write_target(tnk__buf_t *out, const tnk__ask_t *ask) {
  const target_t *target = &targets[ask->kind];
  const char *mark = "?";

  put_path(out, target->path, ask);
  if (target->has_part) {
    tnk__buf_printf(out, "?limit=%lu&offset=%llu", (unsigned long)ask->limit,
                    (unsigned long long)ask->offset);
    mark = "&";
  }
  if (target->has_scope) {
    tnk__buf_printf(out, "%saccess_scope=%s", mark,
                    ask->scope == TNK_SCOPE_ACCESSIBLE ? "accessible"
                                                       : "owned");
    mark = "&";
  }
  if (target->has_project && ask->project_id != NULL) {
    tnk__buf_printf(out, "%sproject_id=", mark);
    tnk__url_put_query(out, ask->project_id);
  }
}

/* ---- Ids ---- */

/* The first character that may not be in an id, or NULL. */
static const char *odd_char(const char *id) {
  for (; *id != '\0'; id++)
    if ((unsigned char)*id <= ' ' || *id == 0x7f ||
        strchr("?#%/\\", *id) != NULL)
      return id;
  return NULL;
}

int tnk__ask_check_id(const char *what, const char *id, char *why,
                      size_t size) {
  const char *odd;

  if (id == NULL || id[0] == '\0') {
    snprintf(why, size, "%s is %s", what, id == NULL ? "NULL" : "empty");
    return TNK_EINVAL;
  }
  odd = odd_char(id);
  if (odd != NULL && (unsigned char)*odd > ' ' && *odd != 0x7f)
    snprintf(why, size, "%s has '%c' in it, which would change the address",
             what, *odd);
  else if (odd != NULL)
    snprintf(why, size, "%s has %s in it", what,
             *odd == ' ' ? "a blank" : "a control character");
  else if (strcmp(id, ".") == 0 || strcmp(id, "..") == 0)
    snprintf(why, size, "%s is \"%s\", which would change the address", what,
             id);
  else if (tnk__utf8_valid((const uint8_t *)id, strlen(id)) != strlen(id))
    snprintf(why, size, "%s is not UTF-8", what);
  else
    return TNK_OK;
  return TNK_EINVAL;
}
