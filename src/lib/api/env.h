#ifndef TNK_LIB_API_ENV_H
#define TNK_LIB_API_ENV_H

/* The value of an environment variable; NULL if it is unset or empty. */
const char *tnk__env(const char *name);

#endif
