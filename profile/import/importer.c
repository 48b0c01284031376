/*
 * importer.c - the list of importers, the code they share (metrics by name, columns by title,
 * units), the choice of an importer for a file, and the loop that reads files and directories.
 */
#include "profile/import/importer.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/num.h"
#include "profile/capture/impl.h"
#include "profile/import/impl.h"

/* In the order of `roofline list importers`; if two are equally sure, the first reads the file. */
static const struct rfl_importer *const importers[] = {
	&rfl_importer_ncu,     &rfl_importer_nvprof, &rfl_importer_nsys,
	&rfl_importer_rocprof, &rfl_importer_perf,   &rfl_importer_time,
	&rfl_importer_likwid,  &rfl_importer_torch,  &rfl_importer_counters,
};

const struct rfl_importer *rfl_importer_at(size_t i)
{
	return i < RFL_ARRAY_LEN(importers) ? importers[i] : NULL;
}

/* --- failures, warnings and skipped rows ----------------------------------------------------- */

/* Format a message with its position. @param line  0: the whole file */
static enum rfl_rc say(const struct rfl_import *import, struct rfl_err *err, size_t line,
		       const char *column, const char *fmt, va_list ap)
{
	const char *name = import->in->name;
	char what[RFL_ERR_MSG_MAX];

	vsnprintf(what, sizeof(what), fmt, ap);
	if (column)
		return rfl_fail(err, RFL_EFORMAT, 0, "%s:%zu: column '%s': %s", name, line, column,
				what);
	if (line > 0)
		return rfl_fail(err, RFL_EFORMAT, 0, "%s:%zu: %s", name, line, what);
	return rfl_fail(err, RFL_EFORMAT, 0, "%s: %s", name, what);
}

enum rfl_rc rfl_import_refuse(const struct rfl_import *import, size_t line, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)say(import, import->err, line, NULL, fmt, ap);
	va_end(ap);
	return RFL_EFORMAT;
}

static void warn(const struct rfl_import_options *options, const char *line)
{
	if (options->warn)
		options->warn(line, options->ctx);
}

void rfl_import_warn(struct rfl_import *import, const char *fmt, ...)
{
	struct rfl_err why = RFL_ERR_INIT;
	va_list ap;

	va_start(ap, fmt);
	(void)say(import, &why, import->in->line, NULL, fmt, ap);
	va_end(ap);
	warn(import->options, why.msg);
}

enum rfl_rc rfl_import_leave_out(struct rfl_import *import, const struct rfl_err *why)
{
	if (why->rc != RFL_EFORMAT || !import->options->keep_going)
		return rfl_err_pass(import->err, why);
	import->left_out++;
	warn(import->options, why->msg);
	return RFL_OK;
}

enum rfl_rc rfl_import_bad_row(struct rfl_import *import, const char *column, const char *fmt, ...)
{
	struct rfl_err why = RFL_ERR_INIT;
	va_list ap;

	va_start(ap, fmt);
	(void)say(import, &why, import->in->line, column, fmt, ap);
	va_end(ap);
	return rfl_import_leave_out(import, &why);
}

enum rfl_rc rfl_import_bad_field(struct rfl_import *import, const char *column,
				 struct rfl_span text, const char *what)
{
	return rfl_import_bad_row(import, column, "'%.*s' is not %s", RFL_SPAN_ARG(text), what);
}

enum rfl_rc rfl_import_bad_width(struct rfl_import *import)
{
	return rfl_import_bad_row(import, NULL, "%zu fields, but the header has %zu%s", import->n,
				  import->columns.width,
				  import->in->torn ? ": the file is cut off" : "");
}

/* --- metrics --------------------------------------------------------------------------------- */

/* Whether only a kernel can have this name: arguments, mangled, or of a library. */
static bool is_kernel(struct rfl_span name)
{
	static const char *const kernels[] = { "_Z", "Cijk_", "__amd_", NULL };

	return rfl_span_has(name, "(") || rfl_span_has(name, "<") || rfl_span_ends(name, ".kd") ||
	       rfl_span_starts_any(name, kernels);
}

void rfl_import_note_kernels(struct rfl_import *import, const char *others)
{
	if (!import->any_kernel)
		rfl_capture_note(import->b,
				 "the rows are read as kernels; %s have the same columns", others);
}

void rfl_import_times(struct rfl_import *import, struct rfl_span kernel, const char *block,
		      const char *grid, int64_t launches, const struct rfl_reading *time)
{
	char name[4096];

	rfl_capture_begin(import->b, RFL_RANGE_KERNEL, rfl_span_copy(kernel, name, sizeof(name)),
			  block, grid);
	import->any_kernel = import->any_kernel || is_kernel(kernel);
	rfl_capture_launches(import->b, launches);
	(void)rfl_import_give(import, time);
}

void rfl_import_note_copies(struct rfl_import *import, double bytes, double seconds,
			    int64_t operations)
{
	char count[RFL_NUM_MAX], number[RFL_NUM_MAX], size[64] = "", time[64] = "";

	if (operations < 1)
		return;
	if (!isnan(bytes))
		(void)snprintf(size, sizeof(size), ", %s bytes", rfl_num_full(bytes, number));
	if (!isnan(seconds))
		(void)rfl_num_print(time, sizeof(time), ", %.6g s", seconds);
	rfl_capture_note(
		import->b, "memory copies and fills are not part of any total: %s operation%s%s%s",
		rfl_num_grouped(operations, count), operations == 1 ? "" : "s", size, time);
}

void rfl_import_nothing_counted(struct rfl_import *import, const char *fmt, ...)
{
	char text[RFL_ERR_MSG_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	rfl_text_one_line(text);
	rfl_import_warn(import, "nothing was counted: %s", text);
	rfl_capture_refuse(import->b, RFL_REFUSED_ALL, text);
}

/* --- the current record ---------------------------------------------------------------------- */

/* Whether a field is a title. @param unit  NULL: it has no unit */
static bool is_title(struct rfl_span field, const char *title, struct rfl_span *unit)
{
	struct rfl_span rest = rfl_span_from(field, strlen(title));

	if (!rfl_span_starts(field, title))
		return false;
	rest = rfl_span_trim(rest);
	if (rest.len > 0 && (!unit || rest.at[0] != '(' || !rfl_span_ends(rest, ")")))
		return false;
	if (rest.len > 0)
		rest = (struct rfl_span){ .at = rest.at + 1, .len = rest.len - 2 };
	if (unit)
		*unit = rest;
	return true;
}

/* Find the columns of a header. */
static void find_columns(const struct rfl_importer *importer, const struct rfl_import *import,
			 struct rfl_columns *ret)
{
	*ret = (struct rfl_columns){ .width = import->n };
	assert(importer->ntitles <= RFL_ARRAY_LEN(ret->at));
	for (size_t i = 0; i < importer->ntitles; i++) {
		ret->at[i] = -1;
		for (const char *const *title = importer->titles[i]; *title && ret->at[i] < 0;
		     title++)
			for (size_t k = 0; k < import->n && ret->at[i] < 0; k++)
				if (is_title(rfl_span_trim(import->f[k]), *title,
					     importer->has_units ? &ret->unit[i] : NULL))
					ret->at[i] = (int)k;
	}
}

struct rfl_span rfl_import_cell(const struct rfl_import *import, int i)
{
	if (i < 0 || (size_t)i >= import->n)
		return rfl_span_of("");
	return rfl_span_trim(import->f[i]);
}

const char *rfl_import_shape(const struct rfl_import *import, int x, char out[64])
{
	const struct rfl_span s[] = { rfl_import_field(import, x), rfl_import_field(import, x + 1),
				      rfl_import_field(import, x + 2) };

	if (s[0].len == 0 || s[1].len == 0 || s[2].len == 0)
		return NULL;
	(void)snprintf(out, 64, "(%.*s, %.*s, %.*s)", RFL_SPAN_ARG(s[0]), RFL_SPAN_ARG(s[1]),
		       RFL_SPAN_ARG(s[2]));
	return out;
}

bool rfl_import_integer(struct rfl_span s, uint64_t *ret)
{
	*ret = 0;
	for (size_t i = 0; i < s.len; i++) {
		if (s.at[i] < '0' || s.at[i] > '9' || *ret > (UINT64_MAX - 9) / 10)
			return false;
		*ret = *ret * 10 + (uint64_t)(s.at[i] - '0');
	}
	return s.len > 0;
}

bool rfl_import_launches(struct rfl_span s, double *ret)
{
	return rfl_span_grouped(s, '.', ret, NULL) && *ret >= 1 && *ret <= 9e15 &&
	       *ret == floor(*ret);
}

bool rfl_import_launch(struct rfl_import *import, int64_t process, uint64_t id)
{
	const struct {
		int64_t process;
		uint64_t id;
	} key = { process, id };
	bool is_new;

	(void)rfl_keys_add(&import->launches, import->arena, &key, sizeof(key), &is_new);
	return is_new;
}

/* --- lookup tables --------------------------------------------------------------------------- */

const struct rfl_unit *rfl_unit_find(const struct rfl_unit *units, size_t n, struct rfl_span text)
{
	for (size_t i = 0; i < n; i++)
		if (rfl_span_is(text, units[i].text))
			return &units[i];
	return NULL;
}

double rfl_unit_value(const struct rfl_unit *units, size_t n, struct rfl_span text)
{
	const struct rfl_unit *known = rfl_unit_find(units, n, text);

	return known ? known->value : 0.0;
}

double rfl_unit_apply(double value, double scale)
{
	return scale < 0 ? value / -scale : value * scale;
}

double rfl_import_per_second(struct rfl_span unit)
{
	static const struct rfl_unit units[] = {
		{ "ns", "s", 1e9 },     { "nsec", "s", 1e9 },     { "us", "s", 1e6 },
		{ "usec", "s", 1e6 },   { "ms", "s", 1e3 },       { "msec", "s", 1e3 },
		{ "s", "s", 1.0 },      { "sec", "s", 1.0 },      { "min", "s", 1 / 60.0 },
		{ "m", "s", 1 / 60.0 }, { "h", "s", 1 / 3600.0 },
	};

	return rfl_unit_value(units, RFL_ARRAY_LEN(units), unit);
}

bool rfl_span_starts_any(struct rfl_span s, const char *const *texts)
{
	for (; *texts; texts++)
		if (rfl_span_starts(s, *texts))
			return true;
	return false;
}

/* --- the choice of an importer --------------------------------------------------------------- */

const struct rfl_importer *rfl_importer_find(const char *name, struct rfl_err *err)
{
	RFL_AUTO(buf) list = { 0 };

	for (size_t i = 0; i < RFL_ARRAY_LEN(importers); i++) {
		if (strcmp(importers[i]->name, name) == 0)
			return importers[i];
		rfl_buf_printf(&list, "%s%s", i > 0 ? ", " : "", importers[i]->name);
	}
	(void)rfl_fail(err, RFL_ENOTFOUND, 0, "unknown importer '%s'; use one of: %s", name,
		       rfl_buf_str(&list));
	return NULL;
}

/* How sure an importer is of a file: the maximum of its detect() and its signs on any line. */
static int how_sure_is(const struct rfl_importer *importer, struct rfl_span head)
{
	int best = importer->detect ? importer->detect(head) : 0;
	struct rfl_span line;

	while (importer->signs && rfl_span_next_line(&head, &line))
		for (const struct rfl_sign *s = importer->signs; s->sure > 0; s++) {
			bool found =
				s->sure > best && (!s->begin || rfl_span_starts(line, s->begin));

			for (size_t i = 0; found && i < RFL_ARRAY_LEN(s->has) && s->has[i]; i++)
				found = rfl_span_has(line, s->has[i]);
			best = found ? s->sure : best;
		}
	return best;
}

/* The importer that is most sure of the file, and more sure than `sure`; NULL: none. */
static const struct rfl_importer *find_by_content(struct rfl_span head, int sure)
{
	const struct rfl_importer *best = NULL;

	for (size_t i = 0; i < RFL_ARRAY_LEN(importers); i++) {
		int how_sure = how_sure_is(importers[i], head);

		if (how_sure > sure) {
			sure = how_sure;
			best = importers[i];
		}
	}
	return best;
}

/* Unsupported files for which there is advice, recognised by their suffix, their beginning in upper
 * or lower case, and the content of their first bytes. */
#define ROCPROF "; run rocprofv3 with --output-format csv"
#define OTHER_TOOLS                                                                         \
	"; use ncu, or, for kernel times, 'nsys stats --report cuda_gpu_kern_sum --format " \
	"csv'"
#define TIMELINE "a Chrome trace without operators of torch.profiler" OTHER_TOOLS
#define ROCPROF_TIMELINE                                                                  \
	"the JSON timeline of rocprof, which has no counters; import its results.csv or " \
	"results.stats.csv"
#define WEB_PAGE "a web page; use a report in CSV or text"
#define VTUNE \
	"a report of Intel VTune, which is not supported; use 'perf stat -j' or likwid-perfctr"
#define ADVISOR \
	"a report of Intel Advisor, which is not supported; use 'perf stat -j' or likwid-perfctr"
static const struct {
	const char *suffix, *begin, *has;
	const char *what;
} others[] = {
	{ .suffix = ".ncu-rep",
	  .what = "an ncu report; convert it with 'ncu --import FILE --csv --page raw "
		  "--print-units base'" },
	{ .suffix = ".nsys-rep",
	  .what = "an nsys report; convert it with 'nsys stats --report cuda_gpu_kern_sum --format "
		  "csv FILE'" },
	{ .begin = "SQLite format 3",
	  .what = "an SQLite database; convert it with 'nsys stats --report cuda_gpu_kern_sum "
		  "--format csv FILE', 'nvprof --csv --print-gpu-trace -i FILE' or, from "
		  "rocprofv3, "
		  "'rocpd convert --output-format csv -i FILE'" },
	{ .begin = "PERFILE2", .what = "the output of perf record; use perf stat for counts" },
	{ .has = "Access to performance monitoring and observability operations is limited",
	  .what = "perf's message that counting is not permitted; run 'sudo sysctl "
		  "kernel.perf_event_paranoid=2' to count your own processes (0: the whole "
		  "machine), or grant CAP_PERFMON" },
	{ .has = "event syntax error: '",
	  .what = "perf's message about an unknown event; see 'perf list'" },
	{ .begin = "\xfd"
		   "7zXZ",
	  .what = "compressed by xz; decompress it with unxz" },
	{ .begin = "BZh", .what = "compressed by bzip2; decompress it with bunzip2" },
	{ .begin = "\x28\xb5\x2f\xfd", .what = "compressed by zstd; decompress it with unzstd" },
	{ .begin = "PK\x03\x04", .what = "a zip archive; unpack it" },
	{ .begin = "<!doctype html", .what = WEB_PAGE },
	{ .begin = "<html", .what = WEB_PAGE },
	{ .begin = "<", .has = "<html", .what = WEB_PAGE }, /* after "<?xml ...>" or a comment */
	{ .has = "Self CPU %",
	  .what = "a table of PyTorch's key_averages(), without shapes; import the file of "
		  "export_chrome_trace()" },
	{ .has = "Collection and Platform Info", .what = VTUNE },
	{ .begin = "vtune: ", .what = VTUNE },
	{ .begin = "Function\tCPU Time", .what = VTUNE },
	{ .begin = "Function,CPU Time", .what = VTUNE },
	{ .has = "Function Call Sites and Loops", .what = ADVISOR },
	{ .has = "Intel(R) Advisor", .what = ADVISOR },
	{ .has = "*** Sampled system activity",
	  .what = "the output of powermetrics, which counts neither FLOPs nor bytes; for times, "
		  "use "
		  "'/usr/bin/time -l'" },
	{ .begin = "{", .has = "CPU HIP API", .what = ROCPROF_TIMELINE },
	{ .begin = "{", .has = "CPU HSA API", .what = ROCPROF_TIMELINE },
	{ .begin = "{", .has = "\"KernelName\"", .what = ROCPROF_TIMELINE },
	{ .begin = "{", .has = " GPU0\"", .what = ROCPROF_TIMELINE },
	{ .begin = "{", .has = " COPY\"", .what = ROCPROF_TIMELINE },
	{ .begin = "{", .has = "\"traceEvents\"", .what = TIMELINE },
	{ .begin = "[", .has = "\"ph\"", .what = TIMELINE },
	{ .suffix = ".pftrace", .what = "a Perfetto trace, which has no counters" ROCPROF },
	{ .begin = "{",
	  .has = "\"rocprofiler-sdk",
	  .what = "the JSON output of rocprofv3" ROCPROF },
	{ .has = "\"Node_Id\",\"Logical_Node_Id\"",
	  .what = "rocprofv3's list of CPUs and GPUs, which has no kernels; use the file "
		  "*_counter_collection.csv or *_kernel_trace.csv" },
	{ .begin = "\"Domain\",\"Function\"",
	  .what = "rocprofv3's trace of API calls; use the file *_kernel_trace.csv" },
	{ .begin = "\"Kind\",\"Direction\"",
	  .what = "rocprofv3's trace of memory copies; use the file *_kernel_trace.csv" },
	{ .begin = "Dispatch_ID,Kernel_Name,GPU_ID",
	  .what = "rocprof-compute's list of dispatches; use its pmc_perf.csv" },
	{ .begin = "workload_name,",
	  .what = "rocprof-compute's description of the machine; use its pmc_perf.csv" },
	{ .begin = "device,HBMBw,",
	  .what = "a table of ceilings measured by rocprof-compute; import it with 'roofline peaks "
		  "import'" },
};

#define LOG_MAX  ((size_t)64 << 20) /* how far into a log to search for a table */
#define LOG_STEP ((size_t)32 << 10) /* half of RFL_INPUT_HEAD, so that no header is missed */
#define CERTAIN  89                 /* signs above this are headers that no other format has */

/* Find the importer by the content of the file, or explain why there is none. */
static enum rfl_rc find_importer(struct rfl_input *in, struct rfl_span head,
				 const struct rfl_importer **ret, struct rfl_err *err)
{
	const struct rfl_span path = rfl_span_of(in->name);
	struct rfl_span text = head, line = { .at = "", .len = 0 };
	char begin[81];
	bool more = true;

	*ret = find_by_content(head, 0);
	if (*ret)
		return RFL_OK;
	if (head.len == 0)
		return rfl_fail(err, RFL_EFORMAT, 0,
				"%s: the file is empty; check the profiler's messages", in->name);
	while (text.len > 0 && strchr("\n\r ", text.at[0]) && text.at[0] != '\0')
		text = rfl_span_from(text, 1);
	for (size_t i = 0; i < RFL_ARRAY_LEN(others); i++)
		if ((!others[i].suffix || rfl_span_ends(path, others[i].suffix)) &&
		    (!others[i].begin ||
		     strncasecmp(text.at, others[i].begin, strlen(others[i].begin)) == 0) &&
		    (!others[i].has || rfl_span_has(text, others[i].has)))
			return rfl_fail(err, RFL_EFORMAT, 0, "%s: this is %s", in->name,
					others[i].what);
	text = head;
	(void)rfl_span_next_line(&text, &line);
	(void)rfl_span_copy(line, begin, sizeof(begin));
	/* A table may be far down in a log. */
	for (size_t passed = 0, step = LOG_STEP; more && passed < LOG_MAX; step += LOG_STEP) {
		for (; more && passed < step; passed += line.len + 1)
			if (rfl_input_line(in, &line, &more, NULL) != RFL_OK)
				more = false; /* not text */
		if (more && rfl_input_peek(in, RFL_INPUT_HEAD, &head, NULL) == RFL_OK)
			*ret = find_by_content(head, CERTAIN);
		if (*ret)
			return RFL_OK;
	}
	return rfl_fail(
		err, RFL_EFORMAT, 0,
		"%s: unknown file format, beginning with '%s'; see 'roofline list importers'",
		in->name, begin);
}

/* --- reading --------------------------------------------------------------------------------- */

/* Read the current record: the header of a table, or a row. */
static enum rfl_rc read_record(const struct rfl_importer *importer, struct rfl_import *import)
{
	const struct rfl_span first = rfl_span_trim(import->f[0]);
	struct rfl_columns columns;
	int table = 0;

	if (!importer->titles)
		return importer->record(import);
	if (import->n == 1 && first.len == 0)
		return RFL_OK;
	if (first.len == 0 || first.at[0] < '0' || first.at[0] > '9') {
		find_columns(importer, import, &columns);
		enum rfl_rc rc = importer->table(import, &columns, &table);
		if (rc != RFL_OK)
			return rc;
	}
	if (table == 0)
		return import->table == 0 ? RFL_OK : importer->record(import);
	import->table = table;
	import->columns = columns;
	return RFL_OK;
}

/* Read one line or record; skip malformed ones if keep_going is set. */
static enum rfl_rc read_one(const struct rfl_importer *importer, struct rfl_import *import,
			    bool *more)
{
	struct rfl_span line = { .at = "", .len = 0 };
	struct rfl_err why; /* large, so not cleared for every record */
	bool record = false;
	enum rfl_rc rc = RFL_OK;

	if (importer->is_record) {
		rc = rfl_input_peek(import->in, RFL_INPUT_AHEAD, &line, import->err);
		if (rc != RFL_OK)
			return rc;
		record = importer->is_record(import, line);
	}
	why.rc = RFL_OK;
	rc = record ? rfl_input_record(import->in, import->delimiter, &import->f, &import->n, more,
				       &why)
		    : rfl_input_line(import->in, &line, more, &why);
	if (rc != RFL_OK) {
		*more = true;
		return rfl_import_leave_out(import, &why);
	}
	if (!*more)
		return RFL_OK;
	if (record)
		return read_record(importer, import);
	return importer->line ? importer->line(import, line) : RFL_OK;
}

/* Read all lines and records, and append the capture. */
static enum rfl_rc read_all(const struct rfl_importer *importer, struct rfl_import *import)
{
	const char *formulas =
		importer->choose_formulas ? importer->choose_formulas(import->head) : NULL;
	const struct rfl_capture_spec spec = {
		.source = importer->name,
		.label = import->label,
		.path = import->in->name,
		.formulas = formulas ? formulas : importer->formulas,
		.all_metrics = importer->all_metrics || import->options->all_metrics,
	};
	bool more = !importer->stream;
	enum rfl_rc rc = RFL_OK;

	import->b = rfl_capture_builder_new(&spec);
	if (import->options->steps > 0)
		rfl_capture_steps(import->b, import->options->steps, -1);
	if (importer->begin)
		importer->begin(import);
	if (importer->stream)
		rc = importer->stream(import);
	while (rc == RFL_OK && more) {
		rc = read_one(importer, import, &more);
		if (rc == RFL_OK && import->b->excess) {
			rc = rfl_capture__check(import->b, import->err);
			if (import->err)
				rfl_err_prefix(import->err, "%s:%zu", import->in->name,
					       import->in->line);
		}
	}
	if (rc == RFL_OK && importer->end)
		rc = importer->end(import);
	if (rc != RFL_OK) {
		rfl_capture_builder_free(import->b);
		return rc;
	}
	rfl_capture_left_out(import->b, import->left_out);
	rc = rfl_capture_finish(import->b, import->to, import->err);
	if (rc != RFL_OK && import->err)
		rfl_err_prefix(import->err, "%s", import->in->name);
	return rc;
}

/* Import an open file. @param known  set to whether an importer was found; may be NULL */
static enum rfl_rc read_input(struct rfl_input *in, const struct rfl_import_options *options,
			      struct rfl_captures *to, bool *known, struct rfl_err *err)
{
	const struct rfl_importer *importer = NULL, *looks = NULL;
	struct rfl_span stem = rfl_span_of(rfl_path_base(in->name));
	struct rfl_span head = { .at = "", .len = 0 };
	enum rfl_rc rc = RFL_ENOTFOUND;

	if (!options->from || (importer = rfl_importer_find(options->from, err)))
		rc = rfl_input_peek(in, RFL_INPUT_HEAD, &head, err);
	if (rc == RFL_OK && !options->from)
		rc = find_importer(in, head, &importer, err);
	if (known)
		*known = importer != NULL;
	if (rc == RFL_OK)
		rc = rfl_input_peek(in, RFL_INPUT_HEAD, &head, err);
	if (rc != RFL_OK)
		return rc;
	if (options->from && how_sure_is(importer, head) == 0)
		looks = find_by_content(head, 0);
	RFL_AUTOPTR(arena) arena = rfl_arena_new();
	struct rfl_import *import = rfl_arena_array(arena, 1, importer->size);
	*import = (struct rfl_import){ .in = in,
				       .options = options,
				       .to = to,
				       .err = err,
				       .arena = arena,
				       .head = head,
				       .delimiter = ',' };
	/* The default label is the name of the file without its directory, ".gz" and extension. */
	if (rfl_span_ends(stem, ".gz"))
		stem.len -= strlen(".gz");
	for (size_t i = stem.len; i-- > 1;)
		if (stem.at[i] == '.') {
			stem.len = i;
			break;
		}
	import->label = options->label ? options->label
				       : rfl_arena_printf(arena, "%.*s", (int)stem.len, stem.at);
	rc = importer->read ? importer->read(import) : read_all(importer, import);
	if (rc == RFL_EFORMAT && err && looks && looks != importer && err->msg[0] != '\0') {
		size_t at = strlen(err->msg);

		(void)snprintf(err->msg + at, sizeof(err->msg) - at,
			       "; its content matches the importer '%s'", looks->name);
	}
	return rc;
}

static enum rfl_rc import_one(const char *path, const struct rfl_import_options *options,
			      struct rfl_captures *to, bool *known, struct rfl_err *err)
{
	RFL_AUTOPTR(input) in = NULL;
	enum rfl_rc rc = rfl_input_open_any(path, &in, err);

	if (rc == RFL_OK)
		rc = read_input(in, options, to, known, err);
	return rc;
}

enum rfl_rc rfl_import_file(const char *path, const struct rfl_import_options *options,
			    struct rfl_captures *to, struct rfl_err *err)
{
	return import_one(path, options, to, NULL, err);
}

enum rfl_rc rfl_import_text(const char *text, size_t len, const char *name,
			    const struct rfl_import_options *options, struct rfl_captures *to,
			    struct rfl_err *err)
{
	RFL_AUTOPTR(input) in = rfl_input_open_text(text, len, name);
	enum rfl_rc rc = read_input(in, options, to, NULL, err);

	return rc;
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* Compare names by bytes, independently of the locale. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* If keep_going is set, unreadable files are skipped. */
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
		struct rfl_err why = RFL_ERR_INIT, line = RFL_ERR_INIT;
		RFL_AUTOFREE char *path = rfl_path_join(dir, entries[i]->d_name);
		bool known = true;

		if (rc == RFL_OK && rfl_dir_exists(path)) {
			(void)rfl_fail(&line, RFL_EFORMAT, 0,
				       "%s: skipped, because it is a directory", path);
			warn(options, line.msg);
		} else if (rc == RFL_OK) {
			rc = import_one(path, options, to, &known, &why);
			if (rc == RFL_EFORMAT && (!known || options->keep_going)) {
				(void)rfl_fail(&line, rc, 0, "%s; the file is skipped", why.msg);
				warn(options, line.msg);
				rc = RFL_OK;
			}
			if (rc != RFL_OK)
				rc = rfl_err_pass(err, &why);
		}
		free(entries[i]);
	}
	free(entries);
	if (rc == RFL_OK && to->n == before)
		rc = rfl_fail(err, RFL_EFORMAT, 0, "%s: no file has a known format", dir);
	return rc;
}
