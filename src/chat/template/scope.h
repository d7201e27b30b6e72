#ifndef TNK_CHAT_TEMPLATE_SCOPE_H
#define TNK_CHAT_TEMPLATE_SCOPE_H

#include "chat/template/node.h"
#include "chat/value/why.h"

/* Find out where each variable of a template lives. */
int tnk__scope_resolve(tnk__node_t *root, tnk__heap_t *heap, tnk__why_t *why);

#endif
