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
enum column { COLUMN_LIST(RFL_LIST_ID) COLUMNS };
static rfl_titles titles[] = { COLUMN_LIST(RFL_LIST_ROW) };

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
	size_t tables;

	struct {
		int id; /* DISPATCHES: the counter of each column; below 0: none */
		enum form form;
	} * counters;
	size_t counters_cap;
	struct cell *cells;
	size_t cells_cap;
	int *touched; /* the ids of the open dispatch */
	size_t touched_cap, ntouched;
	struct rfl_keys channels; /* names of instances, "TCC_HIT[3]" */
	struct channel {
		int64_t row; /* number of the last dispatch with a value */
		double value;
	} * channel;
	size_t channel_cap;

	bool open, begun; /* begun: `process` and `dispatch` come from a row of this table */
	int64_t process;
	uint64_t dispatch;
	char agent[64];
	bool several_agents, timed, counted, averaged;
	bool elsewhere; /* the file is named after other statistics */
	bool statistics;
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
	if (id >= 0)
		rfl_arena_reserve(k->i.arena, &k->cells, &k->cells_cap, (size_t)id + 1);
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
static void find_counters(struct rocprof *k, const struct rfl_columns *columns)
{
	rfl_arena_reserve(k->i.arena, &k->counters, &k->counters_cap, k->i.n);
	for (size_t i = 0; i < k->i.n; i++) {
		const struct rfl_span title = rfl_span_trim(k->i.f[i]);
		bool known = is_other(title) || is_repeated(k, i);

		for (size_t c = 0; c < COLUMNS; c++)
			known = known || columns->at[c] == (int)i;
		k->counters[i].id = known ? -1 : counter_id(k, title, &k->counters[i].form);
	}
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

static enum rfl_rc begin_table(struct rfl_import *import, const struct rfl_columns *columns,
			       int *table)
{
	struct rocprof *k = (struct rocprof *)import;
	const int *c = columns->at;

	if (c[KERNEL] >= 0 && c[CALLS] >= 0 && c[TOTAL] >= 0)
		*table = STATISTICS;
	else if (c[KERNEL] >= 0 && c[DISPATCH] >= 0)
		*table = c[COUNTER] >= 0 && c[VALUE] >= 0 ? COUNTERS : DISPATCHES;
	else
		return RFL_OK;
	close_dispatch(k);
	k->begun = false;
	k->tables++;
	if (*table == DISPATCHES)
		find_counters(k, columns);
	return RFL_OK;
}

/* --- dispatches ------------------------------------------------------------------------------ */

/* Set a counter of the current dispatch; the first value wins. Returns false if it has another
 * one. */
static bool set_counter(struct rocprof *k, int id, enum form form, double value)
{
	struct cell *cell = &k->cells[id];
	double *have = &cell->value[form];
	bool same = true;

	if (!cell->has[WHOLE] && !cell->has[SUM] && !cell->has[INSTANCE]) {
		rfl_arena_reserve(k->i.arena, &k->touched, &k->touched_cap, k->ntouched + 1);
		k->touched[k->ntouched++] = id;
	}
	if (form == INSTANCE)
		*have += value;
	else if (!cell->has[form])
		*have = value;
	else
		same = *have == value || (isnan(*have) && isnan(value));
	cell->has[form] = true;
	return same;
}

/* Read a value: NaN if it is missing. */
static bool read_value(struct rfl_span s, double *ret)
{
	if (rfl_span_number(s, ret))
		return true;
	*ret = NAN;
	return rfl_num_is_missing(s.at, s.len);
}

/* Read a timestamp in ns: an integer, which a double may not hold, and perhaps a fraction. */
static bool read_stamp(struct rfl_span s, uint64_t *whole, double *fraction)
{
	const size_t point = rfl_span_find(s, ".");
	const struct rfl_span rest = rfl_span_from(s, point);

	*fraction = 0;
	return rfl_import_integer((struct rfl_span){ s.at, point }, whole) &&
	       (rest.len < 2 || (rfl_span_number(rest, fraction) && *fraction < 1));
}

static void give_time(struct rocprof *k)
{
	struct rfl_reading time = { .name = "timestamps", .unit = "s", .value = NAN };
	double start_ns, end_ns; /* fractions */
	uint64_t start, end;

	if (rfl_import_field(&k->i, START).len == 0 || rfl_import_field(&k->i, END).len == 0)
		return;
	/* "8.1097E+14" is from a spreadsheet */
	if (!read_stamp(rfl_import_field(&k->i, START), &start, &start_ns) ||
	    !read_stamp(rfl_import_field(&k->i, END), &end, &end_ns))
		time.reason =
			"the timestamps are not integers; a spreadsheet may have rounded them";
	else if (start > end || (double)(end - start) + end_ns - start_ns <= 0)
		time.reason = "the kernel's end is not after its start";
	else
		time.value = ((double)(end - start) + end_ns - start_ns) / 1e9;
	if (time.reason)
		time.validity = RFL_VALID_UNAVAILABLE;
	else if (start_ns != 0 || end_ns != 0)
		k->averaged = true; /* over the passes of rocprof-compute */
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
static bool find_channel(struct rocprof *k, struct rfl_span name, double value, bool *same)
{
	bool added;
	const uint32_t number = rfl_keys_add(&k->channels, k->i.arena, name.at, name.len, &added);

	rfl_arena_reserve(k->i.arena, &k->channel, &k->channel_cap, number);
	struct channel *c = &k->channel[number - 1];
	const bool found = !added && c->row == k->rows;
	*same = !found || c->value == value || (isnan(c->value) && isnan(value));
	if (!found)
		*c = (struct channel){ .row = k->rows, .value = value };
	return found;
}

/* Begin the dispatch of a row. Grids are in threads in the file and in blocks in the capture. */
static void open_dispatch(struct rocprof *k)
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
	rfl_capture_begin(
		k->i.b, RFL_RANGE_KERNEL,
		rfl_span_copy(kernel_name(rfl_import_field(&k->i, KERNEL)), name, sizeof(name)),
		per_block > 0 ? block : NULL, threads > 0 && per_block > 0 ? grid : NULL);
	k->open = true;
	k->rows++;
	give_time(k);
}

/* Set the counters of a row with a column for each. Columns that no formula uses may be text. */
static enum rfl_rc set_counters(struct rocprof *k)
{
	double value;

	for (size_t i = 0; i < k->i.n; i++) {
		if (k->counters[i].id < 0)
			continue;
		if (!read_value(rfl_span_trim(k->i.f[i]), &value) &&
		    (size_t)k->counters[i].id < k->i.b->formulas->nslots) {
			forget_counters(k);
			return rfl_import_bad_field(&k->i, NULL, k->i.f[i], "a number");
		}
		k->counted = true;
		(void)set_counter(k, k->counters[i].id, k->counters[i].form, value);
	}
	open_dispatch(k);
	return RFL_OK;
}

/* Set the counter of a row of COUNTERS. */
static enum rfl_rc set_one_counter(struct rocprof *k, bool new)
{
	const struct rfl_span name = rfl_import_field(&k->i, COUNTER),
			      text = rfl_import_field(&k->i, VALUE);
	enum form form;
	double value;
	bool found = false, same = true;

	if (!read_value(text, &value))
		return rfl_import_bad_field(&k->i, titles[VALUE][0], text, "a number");
	if (new)
		open_dispatch(k);
	k->counted = true;
	const int id = counter_id(k, name, &form);
	if (id >= 0 && form == INSTANCE)
		found = find_channel(k, name, value, &same);
	if (id >= 0 && !found)
		same = set_counter(k, id, form, value);
	if (!same)
		return rfl_import_bad_row(&k->i, titles[COUNTER][0],
					  "'%.*s' has two different values for this dispatch",
					  RFL_SPAN_ARG(name));
	return RFL_OK;
}

/* Read a row of COUNTERS or DISPATCHES. */
static enum rfl_rc dispatch_row(struct rocprof *k)
{
	const bool counters = k->i.table == COUNTERS;
	const struct rfl_span id = rfl_import_field(&k->i, DISPATCH),
			      process = rfl_import_field(&k->i, PROCESS);
	const int64_t pid = process.len > 0 ? (int64_t)rfl_hash64(0, process.at, process.len)
					    : -(int64_t)k->tables;
	uint64_t dispatch;

	if (!rfl_import_integer(id, &dispatch))
		return rfl_import_bad_field(&k->i, titles[DISPATCH][0], id, "a number");
	const bool same = k->begun && counters && pid == k->process && dispatch == k->dispatch;
	const bool new = !k->open || !same;
	if (new)
		close_dispatch(k);
	if (!same && !rfl_import_launch(&k->i, pid, dispatch))
		return rfl_import_bad_row(&k->i, titles[DISPATCH][0],
					  "dispatch %" PRIu64
					  " was already read; keep its rows together, and one run "
					  "per file",
					  dispatch);
	k->begun = true;
	k->process = pid;
	k->dispatch = dispatch;
	return counters ? set_one_counter(k, new) : set_counters(k);
}

/* --- statistics ------------------------------------------------------------------------------ */

/* Whether a file is named after statistics of API calls, copies or markers: rocprofv3 writes
 * 123_marker_api_stats.csv, rocprof results.copy_stats.csv, with the columns of kernels. */
static bool is_elsewhere(struct rfl_span file)
{
	static const char *const words[] = { "marker", "copy",  "hip",    "hsa",  "rccl", "scratch",
					     "alloc",  "roctx", "domain", "ompt", "api" };
	bool found = false;

	file.len = rfl_span_find(file, "stats");
	for (size_t i = 0; i < RFL_ARRAY_LEN(words); i++)
		found = found || rfl_span_has(file, words[i]);
	return found && !rfl_span_has(file, "kernel");
}

/* Whether a name belongs to an API call, a copy or a marker. Functions of HIP and RCCL are
 * hipMemcpy, ncclAllReduce, ..., without the parentheses of most kernels. */
static bool is_call(struct rfl_span name)
{
	static const char *const calls[] = { "hsa_",       "MEMORY_",         "async-copy",
					     "CopyHost",   "CopyDevice",      "HIP_",
					     "HSA_",       "MARKER_",         "ROCTX",
					     "SCRATCH_",   "RCCL_",           "ROCDECODE_",
					     "ROCJPEG_",   "rocDec",          "rocJpeg",
					     "omp_target", "ompt_",           "OMPT",
					     "__hipPu",    "KERNEL_DISPATCH", NULL };
	const size_t prefix = rfl_span_starts(name, "hip")    ? 3
			      : rfl_span_starts(name, "nccl") ? 4
							      : 0;

	return rfl_span_starts_any(name, calls) ||
	       (prefix > 0 && name.len > prefix && name.at[prefix] >= 'A' &&
		name.at[prefix] <= 'Z' && !rfl_span_has(name, "("));
}

/* Join the name of a kernel in the first column, which rocprof writes without quotes, so that
 * commas in it look like delimiters. The other columns, which are numbers, are the last fields.
 * Returns false for another kind of row. */
static bool join_name(struct rfl_import *import, struct rfl_span *name)
{
	const size_t more = import->n - import->columns.width;
	const struct rfl_span first = import->f[0], last = import->f[more];
	double number;

	for (size_t i = 0; i < import->n; i++)
		if (i < more ? import->f[i].at + import->f[i].len + 1 != import->f[i + 1].at
			     : i > more && !rfl_span_number(import->f[i], &number))
			return false;
	*name = (struct rfl_span){ first.at, (size_t)(last.at - first.at) + last.len };
	import->f += more;
	import->n -= more;
	return true;
}

/* Read a row of STATISTICS: a kernel with the sum of its times. */
static enum rfl_rc statistics_row(struct rocprof *k)
{
	struct rfl_span name = rfl_import_field(&k->i, KERNEL);
	struct rfl_reading time = { .name = "timestamps", .unit = "s" };
	double calls;

	if (k->i.n > k->i.columns.width &&
	    (k->i.columns.at[KERNEL] != 0 || !join_name(&k->i, &name)))
		return rfl_import_bad_width(&k->i);
	if (k->elsewhere || is_call(name))
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
	k->statistics = true;
	rfl_import_times(&k->i, kernel_name(name), NULL, NULL, (int64_t)calls, &time);
	return RFL_OK;
}

/* --- the file -------------------------------------------------------------------------------- */

static enum rfl_rc read_row(struct rfl_import *import)
{
	struct rocprof *k = (struct rocprof *)import;
	const bool statistics = import->table == STATISTICS;

	if (statistics ? import->n < import->columns.width : import->n != import->columns.width)
		return rfl_import_bad_width(import);
	if (import->in->torn)
		rfl_import_warn(import, "no line break follows; if the file is cut off here, the "
					"last figure is wrong");
	return statistics ? statistics_row(k) : dispatch_row(k);
}

/* Other lines may precede the first header. */
static bool is_record(const struct rfl_import *import, struct rfl_span ahead)
{
	static const char *const headers[] = { "Dispatch_I", "KernelName", "TotalDurationNs",
					       "Correlation_I", "Kind" };
	bool record = import->table != NO_TABLE;

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

static void begin(struct rfl_import *import)
{
	((struct rocprof *)import)->elsewhere =
		is_elsewhere(rfl_span_of(rfl_path_base(import->in->name)));
}

static enum rfl_rc end(struct rfl_import *import)
{
	struct rocprof *k = (struct rocprof *)import;

	close_dispatch(k);
	if (k->rows == 0)
		return rfl_import_refuse(import, 0,
					 "no kernels; run rocprofv3 with --kernel-trace or --pmc, "
					 "and --output-format csv");
	if (k->statistics)
		rfl_import_note_kernels(import, "the statistics of markers and API calls");
	if (k->averaged)
		rfl_capture_note(import->b, "times are means over the passes of rocprof-compute");
	if (k->several_agents)
		rfl_capture_note(import->b, "the kernels of several GPUs are added up");
	if (k->timed && k->counted)
		rfl_capture_note(import->b, "while it counts, rocprof runs one kernel at a time: "
					    "times may differ from the times in a run");
	return RFL_OK;
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
	.begin = begin,
	.is_record = is_record,
	.titles = titles,
	.ntitles = COLUMNS,
	.table = begin_table,
	.record = read_row,
	.end = end,
};
