/*
 * rocprof.c - imports the CSV of AMD's profilers: rocprofv3 (a row per dispatch and counter; a
 * trace of kernels; statistics), rocprof and rocprofv2 (a row per dispatch with a column per
 * counter), and rocprof-compute's pmc_perf.csv, which joins the passes of several runs in such
 * rows.
 *
 * A counter is the sum of its instances, in rows or columns; its name has neither the suffix "_sum"
 * nor the index of a channel, "[3]". No file names the GPU: the names of its memory counters show
 * the generation, which selects the formulas.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/num.h"
#include "profile/capture/impl.h"
#include "profile/import/impl.h"

enum table {
	NO_TABLE,
	COUNTERS,   /* a row per dispatch and counter */
	DISPATCHES, /* a row per dispatch, with or without columns of counters */
	STATISTICS, /* a row per kernel: calls and time */
};

/* The titles of a column in all tools; the first one present is used. */
#define COLUMN_LIST(F)                                                       \
	F(DISPATCH, "Dispatch_Id", "Dispatch_ID", "Index", "Correlation_Id") \
	F(PROCESS, "Process_Id", "PID", "pid", "Guid", "GUID")               \
	F(AGENT, "Agent_Id", "GPU_ID", "gpu-id")                             \
	F(KERNEL, "Kernel_Name", "KernelName", "Name")                       \
	F(COUNTER, "Counter_Name")                                           \
	F(VALUE, "Counter_Value")                                            \
	F(START, "Start_Timestamp", "BeginNs")                               \
	F(END, "End_Timestamp", "EndNs")                                     \
	F(GRID, "Grid_Size", "grd")                                          \
	F(GRID_X, "Grid_Size_X")                                             \
	F(GRID_Y, "Grid_Size_Y")                                             \
	F(GRID_Z, "Grid_Size_Z")                                             \
	F(GROUP, "Workgroup_Size", "wgr")                                    \
	F(GROUP_X, "Workgroup_Size_X")                                       \
	F(GROUP_Y, "Workgroup_Size_Y")                                       \
	F(GROUP_Z, "Workgroup_Size_Z")                                       \
	F(CALLS, "Calls")                                                    \
	F(TOTAL, "TotalDurationNs")
#define F(id, ...) id,
enum column { COLUMN_LIST(F) COLUMNS };
#undef F
#define F(id, ...) { __VA_ARGS__ },
static rfl_titles titles[] = { COLUMN_LIST(F) };
#undef F

/* Columns of dispatches that are not counters, in upper or lower case. rocprof-compute appends the
 * number of a pass: "wave_size_3". */
static const char others[] =
	"kind guid queue_id queue-id queue-index tid thread_id stream_id kernel_id lds "
	"scr vgpr arch_vgpr accum_vgpr sgpr fbar wave_size sig obj dispatchns completens "
	"durationns lds_block_size lds_per_workgroup scratch_size vgpr_count sgpr_count "
	"scratch_per_workitem xcc_index correlation_id accum_vgpr_count "
	"private_segment_size group_segment_size";

/* Names of memory counters, and the formulas of the GPUs that have them. */
static const struct {
	const char *name, *family;
} generations[] = {
	{ "TCC_EA0_RDREQ_128B", "cdna4" },
	{ "TCC_EA0_", "cdna3" },
	{ "TCC_EA_", "cdna2" },
	{ "GL2C_", "rdna" },
};

/* The forms of a counter, best first: rocprofv3 rounds its sums to six digits. */
enum form { WHOLE /* TCC_HIT */, SUM /* TCC_HIT_sum */, INSTANCE /* TCC_HIT[3] */, FORMS };

/* A counter of the open dispatch, by the builder's id. */
struct cell {
	double value[FORMS]; /* INSTANCE: the sum of all */
	bool has[FORMS];
};

struct rocprof {
	struct rfl_import i;
	enum table table;
	size_t tables;

	struct {
		int id; /* DISPATCHES: the counter of each column; below 0: none */
		enum form form;
	} * counters;
	size_t counters_cap;
	struct cell *cells;
	size_t cells_cap, ncells;
	int *touched; /* the ids of the open dispatch */
	size_t touched_cap, ntouched;
	struct rfl_keys channels; /* names of instances, "TCC_HIT[3]" */
	struct channel {
		int64_t row; /* number of the last dispatch with a value */
		double value;
	} * channel;
	size_t channel_cap;

	bool open, begun; /* begun: `process` and `dispatch` are those of a row of this table */
	int64_t process;
	uint64_t dispatch;
	char agent[64];
	bool several_agents, timed, counted;
	int64_t rows;
};

/* --- tables ---------------------------------------------------------------------------------- */

static bool is_other(struct rfl_span title)
{
	struct rfl_span rest = rfl_span_of(others), word;
	size_t digits = title.len;

	while (digits > 0 && title.at[digits - 1] >= '0' && title.at[digits - 1] <= '9')
		digits--;
	if (digits < title.len && digits > 1 && title.at[digits - 1] == '_')
		title.len = digits - 1;
	while (rfl_span_next_word(&rest, &word))
		if (word.len == title.len && strncasecmp(title.at, word.at, word.len) == 0)
			return true;
	return false;
}

/* The builder's id of a counter: "TCC_HIT" for "TCC_HIT_sum" and for "TCC_HIT[15]". */
static int counter_id(struct rocprof *k, struct rfl_span title, enum form *form)
{
	const size_t bracket = rfl_span_find(title, "[");
	char name[256];

	*form = WHOLE;
	if (rfl_span_ends(title, "]") && bracket > 0) {
		*form = INSTANCE;
		title.len = bracket;
	} else if (rfl_span_ends(title, "_sum")) {
		*form = SUM;
		title.len -= strlen("_sum");
	}
	rfl_span_copy(title, name, sizeof(name));
	int id = name[0] == '\0' ? -1 : rfl_capture_metric_id(k->i.b, name, strlen(name), "");
	if (id >= 0 && (size_t)id >= k->ncells) {
		if (rfl_grow(&k->cells, &k->cells_cap, (size_t)id + 1, SIZE_MAX, NULL) != RFL_OK)
			return -2; /* out of memory */
		for (; k->ncells <= (size_t)id; k->ncells++)
			k->cells[k->ncells] = (struct cell){ 0 };
	}
	return id;
}

/* Whether an earlier column has the same title. Channels are added up, and one that is repeated
 * must not count twice. */
static bool is_repeated(const struct rocprof *k, size_t column)
{
	size_t i = 0;

	while (!rfl_span_same(rfl_span_trim(k->i.f[i]), rfl_span_trim(k->i.f[column])))
		i++;
	return i < column;
}

/* Request the counters of a table with a column for each. */
static enum rfl_rc find_counters(struct rocprof *k)
{
	if (rfl_grow(&k->counters, &k->counters_cap, k->i.n, SIZE_MAX, NULL) != RFL_OK)
		return rfl_import_no_memory(&k->i);
	for (size_t i = 0; i < k->i.n; i++) {
		const struct rfl_span title = rfl_span_trim(k->i.f[i]);
		bool known = is_other(title) || is_repeated(k, i);

		for (size_t c = 0; c < COLUMNS; c++)
			known = known || k->i.columns.at[c] == (int)i;
		k->counters[i].id = known ? -1 : counter_id(k, title, &k->counters[i].form);
		if (k->counters[i].id == -2)
			return rfl_import_no_memory(&k->i);
	}
	return RFL_OK;
}

static void forget_counters(struct rocprof *k)
{
	for (size_t i = 0; i < k->ntouched; i++)
		k->cells[k->touched[i]] = (struct cell){ 0 };
	k->ntouched = 0;
}

/* Finish the open dispatch. */
static void close_dispatch(struct rocprof *k)
{
	for (size_t i = 0; i < k->ntouched; i++) {
		const struct cell *cell = &k->cells[k->touched[i]];
		const double value = cell->value[cell->has[WHOLE] ? WHOLE
						 : cell->has[SUM] ? SUM
								  : INSTANCE];

		(void)rfl_capture_metric(k->i.b, k->touched[i], value,
					 isnan(value) ? RFL_VALID_UNAVAILABLE : RFL_VALID, -1,
					 isnan(value) ? "rocprof wrote no value" : NULL);
	}
	forget_counters(k);
	k->open = false;
}

/* Begin a table if the record is a header. */
static enum rfl_rc begin_table(struct rocprof *k, bool *mine)
{
	enum table table = NO_TABLE;
	struct rfl_columns columns;
	const int *c = columns.at;

	*mine = false;
	if (rfl_span_number_len(k->i.f[0]) > 0)
		return RFL_OK;
	columns = rfl_import_columns(&k->i, titles, COLUMNS, NULL);
	if (c[KERNEL] >= 0 && c[CALLS] >= 0 && c[TOTAL] >= 0)
		table = STATISTICS;
	else if (c[KERNEL] >= 0 && c[DISPATCH] >= 0)
		table = c[COUNTER] >= 0 && c[VALUE] >= 0 ? COUNTERS : DISPATCHES;
	*mine = table != NO_TABLE;
	if (!*mine)
		return RFL_OK;
	close_dispatch(k);
	k->begun = false;
	k->table = table;
	k->tables++;
	k->i.columns = columns;
	return table == DISPATCHES ? find_counters(k) : RFL_OK;
}

/* --- dispatches ------------------------------------------------------------------------------ */

/* Set a counter of the current dispatch. The first value wins. @param same  false: it has another
 * one */
static enum rfl_rc set_counter(struct rocprof *k, int id, enum form form, double value, bool *same)
{
	struct cell *cell = &k->cells[id];
	double *have = &cell->value[form];

	*same = true;
	if (!cell->has[WHOLE] && !cell->has[SUM] && !cell->has[INSTANCE]) {
		if (rfl_grow(&k->touched, &k->touched_cap, k->ntouched + 1, SIZE_MAX, NULL) !=
		    RFL_OK)
			return rfl_import_no_memory(&k->i);
		k->touched[k->ntouched++] = id;
	}
	if (form == INSTANCE)
		*have += value;
	else if (!cell->has[form])
		*have = value;
	else
		*same = *have == value || (isnan(*have) && isnan(value));
	cell->has[form] = true;
	return RFL_OK;
}

/* Read a value: NaN if it is missing. */
static bool read_value(struct rfl_span s, double *ret)
{
	if (rfl_span_number(s, ret))
		return true;
	*ret = NAN;
	return rfl_num_is_missing(s.at, s.len);
}

static void give_time(struct rocprof *k)
{
	struct rfl_reading time = { .name = "timestamps", .unit = "s", .value = NAN };
	uint64_t start, end;

	if (rfl_import_field(&k->i, START).len == 0 || rfl_import_field(&k->i, END).len == 0)
		return;
	/* nanoseconds; "8.1097E+14" is from a spreadsheet */
	if (!rfl_import_integer(rfl_import_field(&k->i, START), &start) ||
	    !rfl_import_integer(rfl_import_field(&k->i, END), &end))
		time.reason =
			"the timestamps are not integers; a spreadsheet may have rounded them";
	else if (start >= end)
		time.reason = "the kernel's end is not after its start";
	else
		time.value = (double)(end - start) / 1e9;
	if (time.reason)
		time.validity = RFL_VALID_UNAVAILABLE;
	k->timed = true;
	(void)rfl_import_give(&k->i, &time);
}

/* A size as one number, or the product of three columns. 0: unknown */
static double read_size(const struct rocprof *k, enum column c)
{
	double size, part;

	if (rfl_span_number(rfl_import_field(&k->i, c), &size) && size >= 1 && size < 1e15)
		return size;
	size = 1;
	for (enum column axis = c + 1; axis <= c + 3; axis++) {
		if (!rfl_span_number(rfl_import_field(&k->i, axis), &part) || !(part >= 1))
			return 0;
		size *= part;
	}
	return size < 1e15 ? size : 0;
}

/* The name of a kernel without the suffix of its descriptor, which only some tools write. */
static struct rfl_span kernel_name(struct rfl_span name)
{
	static const char *const endings[] = { " [clone .kd]", " (.kd)", ".kd" };

	for (size_t i = 0; i < RFL_ARRAY_LEN(endings); i++)
		if (rfl_span_ends(name, endings[i])) {
			name.len -= strlen(endings[i]);
			break;
		}
	return name;
}

/* Find a channel of the dispatch, or remember it: channels are added up, and one that is repeated
 * must not count twice. @param same  false: it has another value */
static enum rfl_rc find_channel(struct rocprof *k, struct rfl_span name, double value, bool *found,
				bool *same)
{
	bool added;
	const uint32_t number = rfl_keys_add(&k->channels, k->i.arena, name.at, name.len, &added);

	if (number == 0 || rfl_grow(&k->channel, &k->channel_cap, number, SIZE_MAX, NULL) != RFL_OK)
		return rfl_import_no_memory(&k->i);
	struct channel *c = &k->channel[number - 1];
	*found = !added && c->row == k->rows;
	*same = !*found || c->value == value || (isnan(c->value) && isnan(value));
	if (!*found)
		*c = (struct channel){ .row = k->rows, .value = value };
	return RFL_OK;
}

/* Begin the dispatch of a row. Grids are in threads in the file and in blocks in the capture. */
static enum rfl_rc open_dispatch(struct rocprof *k)
{
	const double threads = read_size(k, GRID), per_block = read_size(k, GROUP);
	char name[4096], block[RFL_NUM_MAX], grid[RFL_NUM_MAX], agent[sizeof(k->agent)];

	rfl_span_copy(rfl_import_field(&k->i, AGENT), agent, sizeof(agent));
	if (k->agent[0] == '\0')
		memcpy(k->agent, agent, sizeof(agent));
	k->several_agents = k->several_agents || strcmp(k->agent, agent) != 0;
	if (per_block > 0)
		(void)snprintf(block, sizeof(block), "%.0f", per_block);
	if (threads > 0 && per_block > 0)
		(void)snprintf(grid, sizeof(grid), "%.0f", ceil(threads / per_block));
	enum rfl_rc rc = rfl_capture_begin(
		k->i.b, RFL_RANGE_KERNEL,
		rfl_span_copy(kernel_name(rfl_import_field(&k->i, KERNEL)), name, sizeof(name)),
		per_block > 0 ? block : NULL, threads > 0 && per_block > 0 ? grid : NULL, k->i.err);
	k->open = rc == RFL_OK;
	k->rows++;
	if (k->open)
		give_time(k);
	return rc;
}

/* Set the counters of a row with a column for each. Columns that no formula uses may be text. */
static enum rfl_rc set_counters(struct rocprof *k)
{
	enum rfl_rc rc = RFL_OK;
	double value;
	bool same;

	for (size_t i = 0; i < k->i.n && rc == RFL_OK; i++) {
		if (k->counters[i].id < 0)
			continue;
		if (!read_value(rfl_span_trim(k->i.f[i]), &value) &&
		    (size_t)k->counters[i].id < k->i.b->formulas->nslots) {
			forget_counters(k);
			return rfl_import_bad_field(&k->i, NULL, k->i.f[i], "a number");
		}
		k->counted = true;
		rc = set_counter(k, k->counters[i].id, k->counters[i].form, value, &same);
	}
	return rc == RFL_OK ? open_dispatch(k) : rc;
}

/* Set the counter of a row of COUNTERS. */
static enum rfl_rc set_one_counter(struct rocprof *k, bool new)
{
	const struct rfl_span name = rfl_import_field(&k->i, COUNTER),
			      text = rfl_import_field(&k->i, VALUE);
	enum form form;
	double value;
	bool found = false, same = true;
	enum rfl_rc rc = RFL_OK;

	if (!read_value(text, &value))
		return rfl_import_bad_field(&k->i, titles[VALUE][0], text, "a number");
	if (new)
		rc = open_dispatch(k);
	if (rc != RFL_OK)
		return rc;
	k->counted = true;
	int id = counter_id(k, name, &form);
	if (id == -2)
		return rfl_import_no_memory(&k->i);
	if (id < 0)
		return RFL_OK;
	if (form == INSTANCE)
		rc = find_channel(k, name, value, &found, &same);
	if (rc == RFL_OK && !found)
		rc = set_counter(k, id, form, value, &same);
	if (rc == RFL_OK && !same)
		return rfl_import_bad_row(&k->i, titles[COUNTER][0],
					  "'%.*s' has two different values for this dispatch",
					  RFL_SPAN_ARG(name));
	return rc;
}

/* Read a row of COUNTERS or DISPATCHES. */
static enum rfl_rc dispatch_row(struct rocprof *k)
{
	const struct rfl_span id = rfl_import_field(&k->i, DISPATCH),
			      process = rfl_import_field(&k->i, PROCESS);
	const int64_t pid = process.len > 0 ? (int64_t)rfl_hash64(0, process.at, process.len)
					    : -(int64_t)k->tables;
	uint64_t dispatch;
	bool same, new, is_new = true;
	enum rfl_rc rc = RFL_OK;

	if (!rfl_import_integer(id, &dispatch))
		return rfl_import_bad_field(&k->i, titles[DISPATCH][0], id, "a number");
	same = k->begun && k->table == COUNTERS && pid == k->process && dispatch == k->dispatch;
	new = !k->open || !same;
	if (new)
		close_dispatch(k);
	if (!same)
		rc = rfl_import_launch(&k->i, pid, dispatch, &is_new);
	if (rc != RFL_OK)
		return rc;
	if (!is_new)
		return rfl_import_bad_row(&k->i, titles[DISPATCH][0],
					  "dispatch %" PRIu64
					  " was already read; keep its rows together, and one run "
					  "per file",
					  dispatch);
	k->begun = true;
	k->process = pid;
	k->dispatch = dispatch;
	return k->table == DISPATCHES ? set_counters(k) : set_one_counter(k, new);
}

/* Whether statistics are those of API calls, copies or markers. Functions of HIP are hipMemcpy,
 * ..., without the parentheses of most kernels. */
static bool is_call(struct rfl_span name)
{
	static const char *const calls[] = {
		"hsa_",    "MEMORY_COPY_", "CopyHost", "CopyDevice",      "HIP_", "HSA_",
		"MARKER_", "ROCTX",        "__hipPu",  "KERNEL_DISPATCH", NULL
	};

	return rfl_span_starts_any(name, calls) ||
	       (rfl_span_starts(name, "hip") && name.len > 3 && name.at[3] >= 'A' &&
		name.at[3] <= 'Z' && !rfl_span_has(name, "("));
}

/* Read a row of STATISTICS: a kernel with the sum of its times. */
static enum rfl_rc statistics_row(struct rocprof *k)
{
	const struct rfl_span name = rfl_import_field(&k->i, KERNEL);
	struct rfl_reading time = { .name = "timestamps", .unit = "s" };
	double calls;

	if (is_call(name))
		return rfl_import_refuse(&k->i, k->i.in->line,
					 "statistics of '%.*s', not of kernels; import the file "
					 "*_kernel_stats.csv",
					 RFL_SPAN_ARG(name));
	if (!rfl_import_launches(rfl_import_field(&k->i, CALLS), &calls))
		return rfl_import_bad_field(&k->i, titles[CALLS][0], rfl_import_field(&k->i, CALLS),
					    "a launch count");
	if (!rfl_span_number(rfl_import_field(&k->i, TOTAL), &time.value) || !(time.value >= 0))
		return rfl_import_bad_field(&k->i, titles[TOTAL][0], rfl_import_field(&k->i, TOTAL),
					    "a time");
	time.value /= 1e9;
	k->rows++;
	return rfl_import_times(&k->i, kernel_name(name), NULL, NULL, (int64_t)calls, &time);
}

/* --- the file -------------------------------------------------------------------------------- */

static enum rfl_rc read_record(struct rfl_import *import)
{
	struct rocprof *k = (struct rocprof *)import;
	bool header = false;

	if (import->n == 1 && rfl_span_trim(import->f[0]).len == 0)
		return RFL_OK;
	enum rfl_rc rc = begin_table(k, &header);
	if (rc != RFL_OK || header || k->table == NO_TABLE)
		return rc;
	if (import->n != import->columns.width)
		return rfl_import_bad_width(import);
	if (import->in->torn)
		rfl_import_warn(import, "no line break follows; if the file is cut off here, the "
					"last figure is wrong");
	return k->table == STATISTICS ? statistics_row(k) : dispatch_row(k);
}

/* Other lines may precede the first header. */
static bool is_record(const struct rfl_import *import, struct rfl_span ahead)
{
	static const char *const headers[] = { "Dispatch_I", "KernelName", "TotalDurationNs",
					       "Correlation_I", "Kind" };
	bool record = ((const struct rocprof *)import)->table != NO_TABLE;

	for (size_t i = 0; i < RFL_ARRAY_LEN(headers) && !record; i++)
		record = rfl_span_has(ahead, headers[i]);
	return record;
}

static const char *choose_formulas(struct rfl_span head)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(generations); i++)
		if (rfl_span_has(head, generations[i].name))
			return generations[i].family;
	return NULL;
}

static enum rfl_rc end(struct rfl_import *import)
{
	struct rocprof *k = (struct rocprof *)import;

	close_dispatch(k);
	if (k->rows == 0)
		return rfl_import_refuse(import, 0,
					 "no kernels; run rocprofv3 with --kernel-trace or --pmc, "
					 "and --output-format csv");
	if (k->several_agents)
		rfl_capture_note(import->b, "the kernels of several GPUs are added up");
	if (k->timed && k->counted)
		rfl_capture_note(import->b,
				 "while it counts, rocprof runs one kernel at a time: times may "
				 "differ from those of a run");
	return RFL_OK;
}

static void fini(struct rfl_import *import)
{
	struct rocprof *k = (struct rocprof *)import;

	rfl_keys_fini(&k->channels);
	free(k->channel);
	free(k->counters);
	free(k->cells);
	free(k->touched);
}

static const struct rfl_sign signs[] = {
	{ NULL, { "Dispatch_I", "Counter_Name", "Counter_Value" }, 95 },
	{ NULL, { "Kind", "Dispatch_Id", "Kernel_Name" }, 92 },
	{ NULL, { "Kind", "Kernel_Id", "Kernel_Name" }, 91 },
	{ NULL, { "Dispatch_ID,", "Kernel_Name", "Grid_Size" }, 92 },
	{ NULL, { "Index,KernelName,gpu-id" }, 95 },
	{ NULL, { "\"Index\",\"KernelName\",\"gpu-id\"" }, 95 },
	{ NULL, { "\"Name\",\"Calls\",\"TotalDurationNs\"" }, 92 },
	{ .sure = 0 },
};

const struct rfl_importer rfl_importer_rocprof = {
	.name = "rocprof",
	.summary = "rocprofv3, rocprof and rocprof-compute: CSV of AMD GPUs",
	.formulas = "amd",
	.has_passes = true,
	.size = sizeof(struct rocprof),
	.signs = signs,
	.choose_formulas = choose_formulas,
	.is_record = is_record,
	.record = read_record,
	.end = end,
	.fini = fini,
};
