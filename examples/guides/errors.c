#include <stdio.h>
#include <tnk/tnk.h>

int main(void) {
#define PRINT(name, code, text)                                                \
  printf("%-16s %d  %s%s\n", tnk_err_name(code), code, tnk_strerror(code),     \
         tnk_err_is_retryable(code) ? " (may succeed later)" : "");
  TNK_ERROR_MAP(PRINT)
#undef PRINT
  return 0;
}
