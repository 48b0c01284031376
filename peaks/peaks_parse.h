/* peaks_parse.h - internal: one environment from JSON, either form. */
#ifndef RFL_PEAKS_PARSE_H
#define RFL_PEAKS_PARSE_H

#include "peaks/rules.h"

#define RFL_PEAKS_SCHEMA_VERSION "1.0"

/* A file as JSON; what is not JSON, or has a key twice, is refused with its JSON path.
 * @param hash  fingerprint of the bytes; may be NULL */
enum rfl_rc rfl_peaks__read(const char *path, json_t **ret, uint64_t *hash, struct rfl_err *err);

/* Does an environment have the keys of the short form? */
bool rfl_peaks__is_short(const json_t *value);

/* Check and take over one environment. Strings are copied into the arena. */
enum rfl_rc rfl_peaks__parse_short(const json_t *value, struct rfl_arena *arena,
				   struct rfl_peaks_env *env, struct rfl_where *w,
				   struct rfl_err *err);
enum rfl_rc rfl_peaks__parse_long(const json_t *value, struct rfl_arena *arena,
				  struct rfl_peaks_env *env, struct rfl_where *w,
				  struct rfl_err *err);

/* The object that maps names to environments: the member of the long form, or root itself. */
json_t *rfl_peaks__environments(json_t *root);

/* Check a whole file that was read already; the result is in `p`, whose arena exists. */
enum rfl_rc rfl_peaks__parse(json_t *root, struct rfl_peaks *p, struct rfl_err *err);

enum rfl_rc rfl_peaks__no_memory(const struct rfl_where *w, struct rfl_err *err);

/* A peak with everything not known. */
struct rfl_peak rfl_peaks__blank(void);

#endif
