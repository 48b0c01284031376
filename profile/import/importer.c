/*
 * importer.c - which importers there are, which of them a file is for, and what they share: rows
 * that cannot be read, doubts, folders. What a file means is in import_<kind>.c.
 */
#include "profile/import/importer.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/text.h"
#include "profile/import/impl.h"
#include "profile/import/span.h"

/* In the order in which they are listed; where two are equally sure of a file the first reads it.
 */
static const struct rfl_importer *const importers[] = {
	&rfl_importer_ncu,  &rfl_importer_nvprof, &rfl_importer_nsys,     &rfl_importer_perf,
	&rfl_importer_time, &rfl_importer_likwid, &rfl_importer_counters,
};

const struct rfl_importer *rfl_importer_at(size_t i)
{
	return i < RFL_ARRAY_LEN(importers) ? importers[i] : NULL;
}

/* --- doubts and rows left out ---------------------------------------------------------------- */

static void tell(const struct rfl_import *import, char *line)
{
	rfl_text_one_line(line);
	if (import->options->warn)
		import->options->warn(line, import->options->ctx);
}

void rfl_import_warn(struct rfl_import *import, const char *fmt, ...)
{
	char line[RFL_ERR_MSG_MAX];
	size_t at = (size_t)snprintf(line, sizeof(line), "%s:%zu: ", rfl_input_name(import->in),
				     rfl_input_line_number(import->in));
	va_list ap;

	if (at >= sizeof(line))
		at = 0;
	va_start(ap, fmt);
	vsnprintf(line + at, sizeof(line) - at, fmt, ap);
	va_end(ap);
	tell(import, line);
}

enum rfl_rc rfl_import_bad_row(struct rfl_import *import, const char *column, struct rfl_err *err,
			       const char *fmt, ...)
{
	struct rfl_err why = RFL_ERR_INIT;
	char what[RFL_ERR_MSG_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	if (column)
		(void)rfl_fail(&why, RFL_EFORMAT, 0, "%s:%zu: column '%s': %s",
			       rfl_input_name(import->in), rfl_input_line_number(import->in),
			       column, what);
	else
		(void)rfl_fail(&why, RFL_EFORMAT, 0, "%s:%zu: %s", rfl_input_name(import->in),
			       rfl_input_line_number(import->in), what);
	if (!import->options->keep_going)
		return rfl_fail(err, RFL_EFORMAT, 0, "%s", why.msg);
	import->left_out++;
	tell(import, why.msg);
	return RFL_OK;
}

/* A line that the input refused: left out with keep_going. */
static enum rfl_rc after_refusal(struct rfl_import *import, struct rfl_err *why,
				 struct rfl_err *err)
{
	if (why->rc != RFL_EFORMAT || !import->options->keep_going)
		return rfl_fail(err, why->rc, why->native, "%s", why->msg);
	import->left_out++;
	tell(import, why->msg);
	rfl_err_clear(why);
	return RFL_OK;
}

enum rfl_rc rfl_import_record(struct rfl_import *import, char delimiter,
			      const struct rfl_span **fields, size_t *nfields, bool *more,
			      struct rfl_err *err)
{
	struct rfl_err why; /* not cleared for every record: it is large */
	enum rfl_rc rc = RFL_OK;

	do {
		why.rc = RFL_OK;
		if (rfl_input_record(import->in, delimiter, fields, nfields, NULL, more, &why) ==
		    RFL_OK)
			return RFL_OK;
		rc = after_refusal(import, &why, err);
	} while (rc == RFL_OK);
	return rc;
}

enum rfl_rc rfl_import_line(struct rfl_import *import, struct rfl_span *ret, bool *more,
			    struct rfl_err *err)
{
	struct rfl_err why;
	enum rfl_rc rc = RFL_OK;

	do {
		why.rc = RFL_OK;
		if (rfl_input_line(import->in, ret, more, &why) == RFL_OK)
			return RFL_OK;
		rc = after_refusal(import, &why, err);
	} while (rc == RFL_OK);
	return rc;
}

/* --- which importer -------------------------------------------------------------------------- */

const struct rfl_importer *rfl_importer_find(const char *name, struct rfl_err *err)
{
	struct rfl_buf list;

	rfl_buf_init(&list, 0);
	for (size_t i = 0; i < RFL_ARRAY_LEN(importers); i++) {
		if (strcmp(importers[i]->name, name) == 0) {
			rfl_buf_fini(&list);
			return importers[i];
		}
		rfl_buf_printf(&list, "%s%s", i > 0 ? ", " : "", importers[i]->name);
	}
	(void)rfl_fail(err, RFL_ENOTFOUND, 0, "no importer '%s'; there are: %s", name,
		       rfl_buf_str(&list));
	rfl_buf_fini(&list);
	return NULL;
}

/* @param sure  an importer has to be surer than that */
static const struct rfl_importer *find_by_content(struct rfl_span head, int sure)
{
	const struct rfl_importer *best = NULL;

	for (size_t i = 0; i < RFL_ARRAY_LEN(importers); i++) {
		int how_sure = importers[i]->detect(head);

		if (how_sure > sure) {
			sure = how_sure;
			best = importers[i];
		}
	}
	return best;
}

/* Files that people have beside those that can be read: by their names, or by what they begin with
 * and have in their first bytes. */
#define AMD ", which is not read: FLOPs and bytes are those that are counted from the network"
#define TIMELINE                                                                                 \
	"a timeline of events (of PyTorch's profiler or Chrome), without counters: 'nsys stats " \
	"--report cuda_gpu_kern_sum --format csv' gives times of kernels, ncu counts"
static const struct {
	const char *suffix, *begin, *has;
	const char *what;
} others[] = {
	{ .suffix = ".ncu-rep",
	  .what = "a report of ncu: 'ncu --import FILE --csv --page raw --print-units base' prints "
		  "what can be read" },
	{ .suffix = ".nsys-rep",
	  .what = "a report of nsys: 'nsys stats --report cuda_gpu_kern_sum --format csv FILE' "
		  "prints "
		  "what can be read" },
	{ .begin = "SQLite format 3",
	  .what = "a database: of nsys, 'nsys stats --report cuda_gpu_kern_sum --format csv FILE' "
		  "prints what can be read; of nvprof, 'nvprof --csv --print-gpu-trace -i FILE'" },
	{ .begin = "PERFILE2",
	  .what = "what perf record writes; counts are what perf stat prints" },
	{ .has = "Access to performance monitoring and observability operations is limited",
	  .what = "perf's message that it may not count: 'sudo sysctl "
		  "kernel.perf_event_paranoid=2' permits your own processes, 0 the whole machine "
		  "and its memory; or grant CAP_PERFMON" },
	{ .has = "event syntax error: '",
	  .what = "perf's message that it does not know an event: 'perf list' shows those of the "
		  "processor" },
	{ .begin = "{", .has = "\"traceEvents\"", .what = TIMELINE },
	{ .begin = "[", .has = "\"ph\"", .what = TIMELINE },
	{ .has = "Dispatch_ID,", .what = "a table of an AMD GPU by rocprof-compute" AMD },
	{ .has = "\"Dispatch_Id\"", .what = "a table of an AMD GPU by rocprofv3" AMD },
	{ .begin = "\"Name\",\"Calls\",\"TotalDurationNs\"",
	  .what = "a table of an AMD GPU by rocprof --stats" AMD },
	{ .begin = "Index,KernelName,gpu-id", .what = "a table of an AMD GPU by rocprof" AMD },
};

static const char *other_file(const char *name, struct rfl_span head)
{
	const struct rfl_span path = { .at = name, .len = strlen(name) };

	while (head.len > 0 && (head.at[0] == '\n' || head.at[0] == '\r' || head.at[0] == ' '))
		head = rfl_span_from(head, 1);
	for (size_t i = 0; i < RFL_ARRAY_LEN(others); i++)
		if ((!others[i].suffix || rfl_span_ends(path, others[i].suffix)) &&
		    (!others[i].begin || rfl_span_starts(head, others[i].begin)) &&
		    (!others[i].has || rfl_span_has(head, others[i].has)))
			return others[i].what;
	return NULL;
}

#define LOG_MAX  ((size_t)64 << 20)
#define LOG_STEP ((size_t)32 << 10) /* half of what a look sees: no table is cut */
#define CERTAIN  89                 /* a header that no other text has */

/* A table may be far down in a log. */
static const struct rfl_importer *look_further(struct rfl_input *in)
{
	const struct rfl_importer *found = NULL;
	struct rfl_span head, line;
	bool more = true;

	for (size_t passed = 0, step = LOG_STEP; !found && passed < LOG_MAX; step += LOG_STEP) {
		for (; passed < step; passed += line.len + 1)
			if (rfl_input_line(in, &line, &more, NULL) != RFL_OK || !more)
				return NULL; /* its end, or not a text */
		if (rfl_input_peek(in, &head, NULL) == RFL_OK)
			found = find_by_content(head, CERTAIN);
	}
	return found;
}

static enum rfl_rc find_importer(struct rfl_input *in, const struct rfl_importer **ret,
				 struct rfl_err *err)
{
	const char *name = rfl_input_name(in), *what;
	struct rfl_span head, rest, line = { .at = "", .len = 0 };
	char begin[81];
	enum rfl_rc rc = rfl_input_peek(in, &head, err);

	if (rc != RFL_OK)
		return rc;
	*ret = find_by_content(head, 0);
	if (*ret)
		return RFL_OK;
	what = head.len > 0 ? other_file(name, head)
			    : "empty: did the profiler fail, or print to the terminal?";
	if (what)
		return rfl_fail(err, RFL_EFORMAT, 0, "%s: is %s", name, what);
	rest = head;
	(void)rfl_span_next_line(&rest, &line);
	(void)rfl_span_copy(line, begin, sizeof(begin));
	*ret = look_further(in);
	if (*ret)
		return RFL_OK;
	return rfl_fail(err, RFL_EFORMAT, 0,
			"%s: not a profiler's file that is known ('roofline list importers' names "
			"them); it begins with '%s'",
			name, begin);
}

/* --- reading --------------------------------------------------------------------------------- */

/* The file's name without folder and last extension. malloc'ed; NULL out of memory. */
static char *stem_of(const char *name)
{
	const char *base = rfl_path_base(name);
	const char *dot = strrchr(base, '.');

	return strndup(base, dot && dot > base ? (size_t)(dot - base) : strlen(base));
}

/* The user named a kind that it is not. */
static void tell_content(const struct rfl_importer *importer, const struct rfl_importer *looks,
			 struct rfl_err *err)
{
	size_t at = err ? strlen(err->msg) : 0;

	if (at > 0 && looks && looks != importer)
		(void)snprintf(err->msg + at, sizeof(err->msg) - at,
			       "; by its content it is a file of '%s'", looks->name);
}

/* @param known  whether an importer takes it; may be NULL */
static enum rfl_rc read_input(struct rfl_input *in, const struct rfl_import_options *options,
			      struct rfl_captures *to, bool *known, struct rfl_err *err)
{
	struct rfl_import import = { .in = in, .options = options };
	const struct rfl_importer *importer = NULL, *looks = NULL;
	struct rfl_span head;
	enum rfl_rc rc = RFL_OK;
	char *stem;

	if (!options->from)
		rc = find_importer(in, &importer, err);
	else if ((importer = rfl_importer_find(options->from, err)))
		rc = rfl_input_peek(in, &head, err);
	if (known)
		*known = importer != NULL;
	if (rc != RFL_OK || !importer)
		return rc ? rc : RFL_ENOTFOUND;
	stem = stem_of(rfl_input_name(in));
	if (!stem)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", rfl_input_name(in));
	import.label = options->label ? options->label : stem;
	if (options->from && importer->detect(head) == 0)
		looks = find_by_content(head, 0);
	rc = importer->read(&import, to, err);
	if (rc == RFL_EFORMAT)
		tell_content(importer, looks, err);
	free(stem);
	return rc;
}

static const struct rfl_import_options defaults;

enum rfl_rc rfl_import_file(const char *path, const struct rfl_import_options *options,
			    struct rfl_captures *to, struct rfl_err *err)
{
	struct rfl_input *in = NULL;
	enum rfl_rc rc = rfl_input_open(path, &in, err);

	if (rc == RFL_OK)
		rc = read_input(in, options ? options : &defaults, to, NULL, err);
	rfl_input_close(in);
	return rc;
}

enum rfl_rc rfl_import_text(const char *text, size_t len, const char *name,
			    const struct rfl_import_options *options, struct rfl_captures *to,
			    struct rfl_err *err)
{
	struct rfl_input *in = NULL;
	enum rfl_rc rc = rfl_input_open_text(text, len, name, &in, err);

	if (rc == RFL_OK)
		rc = read_input(in, options ? options : &defaults, to, NULL, err);
	rfl_input_close(in);
	return rc;
}

/* --- folders --------------------------------------------------------------------------------- */

static void tell_of_file(const struct rfl_import_options *options, const char *what,
			 const char *then)
{
	char line[RFL_ERR_MSG_MAX];

	if (!options->warn)
		return;
	snprintf(line, sizeof(line), "%s: %s", what, then);
	rfl_text_one_line(line);
	options->warn(line, options->ctx);
}

/* One entry of a folder. With keep_going a file that cannot be read is told and passed. */
static enum rfl_rc import_entry(const char *path, const struct rfl_import_options *options,
				struct rfl_captures *to, struct rfl_err *err)
{
	struct rfl_err why = RFL_ERR_INIT;
	struct rfl_input *in = NULL;
	bool known = true;
	enum rfl_rc rc;

	if (rfl_dir_exists(path)) {
		tell_of_file(options, path, "is a folder, which is not entered");
		return RFL_OK;
	}
	rc = rfl_input_open(path, &in, &why);
	if (rc == RFL_OK)
		rc = read_input(in, options, to, &known, &why);
	rfl_input_close(in);
	if (rc == RFL_OK)
		return RFL_OK;
	if (rc != RFL_EFORMAT || (known && !options->keep_going))
		return rfl_fail(err, rc, why.native, "%s", why.msg);
	tell_of_file(options, why.msg, "the file is left out");
	return RFL_OK;
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* By bytes, whatever the locale. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

enum rfl_rc rfl_import_dir(const char *dir, const struct rfl_import_options *options,
			   struct rfl_captures *to, struct rfl_err *err)
{
	struct dirent **entries = NULL;
	int n = scandir(dir, &entries, is_visible, by_name);
	size_t before = to->n;
	enum rfl_rc rc = RFL_OK;

	if (n < 0)
		return rfl_fail(err, RFL_EIO, errno, "%s: %s", dir, strerror(errno));
	for (int i = 0; i < n; i++) {
		char *path = rc == RFL_OK ? rfl_path_join(dir, entries[i]->d_name) : NULL;

		if (rc == RFL_OK && !path)
			rc = rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", dir);
		if (rc == RFL_OK)
			rc = import_entry(path, options ? options : &defaults, to, err);
		free(path);
		free(entries[i]);
	}
	free(entries);
	if (rc == RFL_OK && to->n == before)
		rc = rfl_fail(err, RFL_EFORMAT, 0, "%s: holds no profiler's file that is known",
			      dir);
	return rc;
}
