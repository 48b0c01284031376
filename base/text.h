/*
 * text.h - small helpers for names: edit distance, nearest match.
 */
#ifndef RFL_BASE_TEXT_H
#define RFL_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Damerau-Levenshtein distance in its restricted form (an adjacent swap counts one, and no letter is
 * edited twice), without case. Where more than 255 characters differ, the longer length is given.
 */
size_t rfl_text_distance(const char *a, const char *b);

/**
 * The candidate nearest to `name`, or NULL when none is near enough to be worth suggesting.
 * @param candidates  NULL-terminated
 */
const char *rfl_text_nearest(const char *name, const char *const *candidates);

/** Append the candidates within suggesting distance, nearest first, at most `most`, as "a, b, c". */
size_t rfl_text_suggest(const char *name, const char *const *candidates, size_t most,
			struct rfl_buf *out);

/** An environment's name: [a-z][a-z0-9_]*, 1 to 48 characters. */
bool rfl_text_is_env_name(const char *name);

#ifdef __cplusplus
}
#endif
#endif
