/* SPDX-License-Identifier: MIT */
/* Accessors of a page's records. */
#include "lib/store/page.h"

#include <math.h>

size_t tnk_page_count(const tnk_page_t *page) {
  return page != NULL ? page->n : 0;
}

int tnk_page_is_last(const tnk_page_t *page) {
  return page == NULL || page->is_last;
}

int64_t tnk_page_total(const tnk_page_t *page) {
  return page != NULL ? page->total : -1;
}

uint64_t tnk_page_end(const tnk_page_t *page) {
  return page != NULL ? page->ask.offset : 0;
}

static const void *item(const tnk_page_t *page, tnk__page_kind_t kind,
                        size_t index) {
  if (page == NULL || page->kind != kind || index >= page->n)
    return NULL;
  return (const char *)page->items + index * tnk__page_item_size(kind);
}

const tnk_run_t *tnk_page_run(const tnk_page_t *page, size_t index) {
  return item(page, TNK__PAGE_RUNS, index);
}

const tnk_checkpoint_t *tnk_page_checkpoint(const tnk_page_t *page,
                                            size_t index) {
  return item(page, TNK__PAGE_CHECKPOINTS, index);
}

const tnk_weights_info_t *tnk_page_weights_info(const tnk_page_t *page,
                                                size_t index) {
  return item(page, TNK__PAGE_WEIGHTS_INFO, index);
}

const tnk_external_files_t *tnk_page_external_files(const tnk_page_t *page,
                                                    size_t index) {
  return item(page, TNK__PAGE_EXTERNAL_FILES, index);
}

const tnk_session_t *tnk_page_session(const tnk_page_t *page, size_t index) {
  return item(page, TNK__PAGE_SESSIONS, index);
}

const tnk_sampler_t *tnk_page_sampler(const tnk_page_t *page, size_t index) {
  return item(page, TNK__PAGE_SAMPLERS, index);
}

const tnk_identity_t *tnk_page_identity(const tnk_page_t *page, size_t index) {
  return item(page, TNK__PAGE_IDENTITIES, index);
}

const tnk_api_key_t *tnk_page_api_key(const tnk_page_t *page, size_t index) {
  return item(page, TNK__PAGE_KEYS, index);
}

const tnk_usage_t *tnk_page_usage(const tnk_page_t *page, size_t index) {
  return item(page, TNK__PAGE_USAGES, index);
}

const tnk_storage_t *tnk_page_storage(const tnk_page_t *page, size_t index) {
  return item(page, TNK__PAGE_STORAGES, index);
}

const tnk_audit_entry_t *tnk_page_audit_entry(const tnk_page_t *page,
                                              size_t index) {
  return item(page, TNK__PAGE_AUDIT_ENTRIES, index);
}

int64_t tnk_page_cost_through_us(const tnk_page_t *page) {
  return page != NULL ? page->cost_through_us : 0;
}

double tnk_page_storage_rate(const tnk_page_t *page) {
  return page != NULL ? page->storage_rate : NAN;
}
