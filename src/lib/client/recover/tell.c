/* Log messages of the recovery states. */
#include "lib/client/recover/recover.h"

#include "lib/base/log.h"

static const char *const words[] = {
    [TNK_RECOVERY_DETECTED] = "is lost, and will be made again",
    [TNK_RECOVERY_STARTED] = "is being made again",
    [TNK_RECOVERY_COMPLETED] = "is there again",
    [TNK_RECOVERY_FAILED] = "could not be made again, and is tried once more",
    [TNK_RECOVERY_EXHAUSTED] = "cannot be made again",
};

static void log_event(const tnk__recovery_t *recovery,
                      const tnk_recovery_event_t *event) {
  const int is_end = event->state == TNK_RECOVERY_EXHAUSTED;

  tnk__log(
      &recovery->session->context->logger,
      is_end ? TNK_LOG_ERROR : TNK_LOG_WARN, "recovery", "%s: %s%s%s%s%s",
      event->client, words[event->state], event->path != NULL ? ", from " : "",
      event->path != NULL ? event->path : "", event->reason != NULL ? ": " : "",
      event->reason != NULL ? event->reason : "");
}

int tnk__recovery_tell(const tnk__recovery_t *recovery,
                       tnk_recovery_event_t event) {
  tnk__session_t *session = recovery->session;
  const tnk_service_options_t *options = &session->config->options;

  event.attempt = recovery->n_attempts;
  log_event(recovery, &event);
  if (options->on_recovery != NULL) {
    tnk__callout_begin();
    options->on_recovery(&event, options->recovery_user);
    tnk__callout_end();
  }
  return !session->endpoint.closing;
}
