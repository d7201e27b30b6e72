#ifndef EXAMPLES_LOCAL_SERVER_H
#define EXAMPLES_LOCAL_SERVER_H

/*
 * Unless TINKER_BASE_URL or TINKER_API_KEY is set: start `tnk local` as a
 * child process and set both for it, so that a service opened without options
 * goes there. The server ends by itself when this process does, however that
 * happens; should it end first, so does this process.
 *
 * Returns 0, or -1 after telling the reason on stderr.
 */
int local_server_unless_set(void);

#endif
