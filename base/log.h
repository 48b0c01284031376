/*
 * log.h - messages of library code. The library never prints: it hands lines to a callback that
 * the command line sets.
 */
#ifndef RFL_BASE_LOG_H
#define RFL_BASE_LOG_H

#include "base/compiler.h"

enum rfl_log_level { RFL_LOG_ERROR, RFL_LOG_WARN, RFL_LOG_INFO, RFL_LOG_DEBUG };

/**
 * Receives one line without its newline and without control characters. May be called from any
 * thread, one call at a time. It must not log itself.
 */
typedef void (*rfl_log_fn)(enum rfl_log_level level, const char *line, void *ctx);

/** Set the receiver and the most talkative level that reaches it. fn NULL drops every line. */
void rfl_log_set(rfl_log_fn fn, void *ctx, enum rfl_log_level max_level);

/** Send one line; a message of several lines is several calls. */
void rfl_log(enum rfl_log_level level, const char *fmt, ...) RFL_PRINTF(2, 3);

#endif
