/*
 * runs.c - reads several ledgers using little memory: repeats share one row. Columns, keywords and
 * units in the table of another program are mapped to the ledger's; unknown keywords are
 * kept.
 */
#include "ledger/runs.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "complexity/zoo.h"
#include "ledger/facts.h"
#include "ledger/file/steps.h"
#include "ledger/label.h"

#define BATCH ((size_t)1024) /* number of complete rows in memory */

/* Columns needed by summary, compare and points in addition to the fields and the metric. */
static const char columns[] =
	"schema_version cell config_hash repeat timestamp_utc label status error_text rank "
	"requested_batch flags version run_id mem_status";

/* Columns needed only by points. */
static const char columns_of_points[] =
	"step_ms_median step_ms_p10 step_ms_p90 fwd_ms_mean bwd_ms_mean opt_ms_mean "
	"data_wait_ms_mean model_flops_per_step counters_status launcher";

#define COLUMN(name, identity, follows) RFL_LEDGER_AT_##name,

/* Columns that are equal in all runs that share a row. */
static const enum rfl_ledger_at shared[] = {
	RFL_CONFIG_FACTS(COLUMN) RFL_NOTED_FACTS(COLUMN) RFL_LEDGER_AT_config_hash,
	RFL_LEDGER_AT_status,
	RFL_LEDGER_AT_error_text,
	RFL_LEDGER_AT_flags,
	RFL_LEDGER_AT_counters_status,
	RFL_LEDGER_AT_launcher,
	RFL_LEDGER_AT_rank,
	RFL_LEDGER_AT_model_flops_per_step,
};

static uint64_t like_hash(const void *row)
{
	return rfl_facts_hash(row) ^
	       rfl_ledger_hash(shared + rfl_nfacts, RFL_ARRAY_LEN(shared) - rfl_nfacts, row);
}

static bool like_alike(const void *a, const void *b)
{
	return rfl_ledger_same(shared, RFL_ARRAY_LEN(shared), a, b);
}

struct rfl_run_step rfl_run_step_of_row(const struct rfl_ledger_row *row)
{
	return (struct rfl_run_step){
		.samples_per_s = row->samples_per_s,
		.median_ms = row->step_ms_median,
		.p10_ms = row->step_ms_p10,
		.p90_ms = row->step_ms_p90,
		.phase_ms = { row->fwd_ms_mean, row->bwd_ms_mean, row->opt_ms_mean,
			      row->data_wait_ms_mean, row->upload_ms_mean },
	};
}

static char *text_of(struct rfl_runs *runs, const char *text)
{
	return rfl_texts_keep(&runs->ledger->texts, text);
}

static void add_run(struct rfl_runs *runs, struct rfl_ledger_row *row)
{
	size_t cap = runs->cap, like;
	struct rfl_ledger_row *copy;
	char env[49];

	if (row->context_length > 0)
		row->layout = NULL; /* the layout of images */
	/* without an environment, use the one in the label, else the backend */
	if (!row->env &&
	    rfl_label_env(NULL, row->label, row->model, row->backend ? row->backend : "", env,
			  NULL) == RFL_OK &&
	    env[0])
		row->env = text_of(runs, env);
	if (runs->timed)
		rfl_reserve(&runs->times, &cap, runs->n + 1);
	rfl_reserve(&runs->runs, &runs->cap, runs->n + 1);

	/* The row is shared with its repeats; the first one is copied. */
	like = rfl_row_index_find(&runs->likes, row);
	if (like == SIZE_MAX) {
		copy = rfl_arena_array(runs->arena, 1, sizeof(*copy));
		*copy = *row;
		copy->label = copy->timestamp_utc = copy->run_id = copy->mem_status = NULL;
		copy->repeat = -1;
		like = rfl_row_index_put(&runs->likes, copy);
	}
	if (runs->timed)
		runs->times[runs->n] = rfl_run_step_of_row(row);
	runs->runs[runs->n++] = (struct rfl_run){
		.like = runs->likes.rows[like],
		.label = row->label,
		.time = row->timestamp_utc,
		.value = rfl_ledger_metric_value(runs->metric, row),
		.n = runs->metric->column == RFL_LEDGER_AT_samples_per_s ? row->samples_per_s_n
									 : -1,
		.std = runs->metric->column == RFL_LEDGER_AT_samples_per_s ? row->samples_per_s_std
									   : (double)NAN,
		.repeat = row->repeat,
		.line = row->line,
		.id = row->run_id,
		.profiled = row->mem_status && *row->mem_status,
	};
}

/* Common names of ledger columns in other programs. They are compared in lower case, with every
 * sequence of characters other than letters and digits as one '_'. If a table has several, the
 * first in this list is used. */
static const struct {
	enum rfl_ledger_at column;
	const char *names; /* separated by blanks */
} aliases[] = {
	{ RFL_LEDGER_AT_timestamp_utc,
	  "timestamp datetime date_time time date start_time started" },
	{ RFL_LEDGER_AT_label,
	  "run_label run_name label_name tag name kernel kernel_name layer_name" },
	{ RFL_LEDGER_AT_env, "environment env_name" },
	{ RFL_LEDGER_AT_status, "state result outcome" },
	{ RFL_LEDGER_AT_repeat, "run_n run_number run repeat_index rep r" },
	{ RFL_LEDGER_AT_host, "hostname host_name node machine" },
	{ RFL_LEDGER_AT_device_name, "device gpu gpu_name device_model" },
	{ RFL_LEDGER_AT_backend, "device_type accelerator" },
	{ RFL_LEDGER_AT_engine_version,
	  "torch_version pytorch_version torch pytorch framework_version" },
	{ RFL_LEDGER_AT_model, "arch architecture model_name network net" },
	{ RFL_LEDGER_AT_batch, "batch_size batchsize bs global_batch_size" },
	{ RFL_LEDGER_AT_precision, "dtype data_type prec" },
	{ RFL_LEDGER_AT_layout, "memory_format channels_last" },
	{ RFL_LEDGER_AT_mode, "phase" },
	{ RFL_LEDGER_AT_optimizer, "optim opt" },
	{ RFL_LEDGER_AT_data_mode, "dataset data" },
	{ RFL_LEDGER_AT_workers, "num_workers loader_workers" },
	{ RFL_LEDGER_AT_threads, "num_threads cpu_threads" },
	{ RFL_LEDGER_AT_img_size, "image_size input_size resolution" },
	{ RFL_LEDGER_AT_context_length, "seq_len sequence_length seq_length" },
	{ RFL_LEDGER_AT_accum, "grad_accum_steps grad_accum accumulation_steps" },
	{ RFL_LEDGER_AT_world_size, "num_gpus gpus n_gpus" },
	{ RFL_LEDGER_AT_seed, "random_seed" },
	{ RFL_LEDGER_AT_warmup, "warmup_iters warmup_steps" },
	{ RFL_LEDGER_AT_iters, "measured_iters iterations num_iters steps n_iters" },
	{ RFL_LEDGER_AT_wall_s,
	  "measured_sec measured_seconds measured_s elapsed_sec elapsed_seconds elapsed_s "
	  "total_sec duration_s duration_sec" },
	{ RFL_LEDGER_AT_samples_per_s,
	  "imgs_per_sec images_per_sec img_per_sec samples_per_sec imgs_per_s images_per_s "
	  "img_per_s imgs_sec images_sec img_sec samples_sec imgs_s images_s img_s samples_s "
	  "images_per_second imgs_per_second samples_per_second throughput "
	  "throughput_imgs_per_sec throughput_img_s ips imgs_per_sec_mean images_per_sec_mean "
	  "imgs_per_s_mean images_per_s_mean img_s_mean images_s_mean samples_per_s_mean "
	  "mean_imgs_per_sec mean_images_per_sec throughput_mean images_s_mean_std "
	  "imgs_s_mean_std img_s_mean_std samples_s_mean_std throughput_mean_std" },
	{ RFL_LEDGER_AT_samples_per_s_std,
	  "imgs_per_sec_std images_per_sec_std img_per_sec_std samples_per_sec_std imgs_per_s_std "
	  "images_per_s_std imgs_s_std images_s_std img_s_std samples_s_std throughput_std "
	  "std_imgs_per_sec std_images_per_sec std std_dev stddev stdev sd" },
	{ RFL_LEDGER_AT_samples_per_s_n, "n runs n_runs num_runs repeats n_repeats" },
	{ RFL_LEDGER_AT_ai,
	  "arithmetic_intensity arithmetic_intensity_flop_byte arithmetic_intensity_flops_byte "
	  "operational_intensity operational_intensity_flop_byte operational_intensity_flops_byte "
	  "intensity flop_byte flops_byte ai_flop_byte ai_flops_byte ai_hbm ai_dram hbm_ai dram_ai "
	  "oi" },
	{ RFL_LEDGER_AT_ai_l2, "l2_ai arithmetic_intensity_l2" },
	{ RFL_LEDGER_AT_ai_l1, "l1_ai arithmetic_intensity_l1" },
	{ RFL_LEDGER_AT_attained_gflops,
	  "gflop_s gflops_s gflops gflop_per_s gflops_per_s attained_gflop_s attained_gflops_s "
	  "achieved_gflop_s achieved_gflops_s achieved_gflops performance_gflop_s "
	  "performance_gflops_s performance_gflop_sec performance_gflops performance_tflop_s "
	  "performance_tflops_s attained_tflop_s achieved_tflop_s mflop_s mflops_s mflops flop_s "
	  "flops_s flop_per_s flops_per_s gflop_sec gflops_sec gflop_per_sec gflops_per_sec "
	  "tflop_s tflops_s" },
	{ RFL_LEDGER_AT_tokens_per_s, "tokens_per_sec tok_per_s tok_per_sec tokens_sec tok_s" },
	{ RFL_LEDGER_AT_step_ms_mean,
	  "step_ms step_time_ms ms_per_step ms_per_iter ms_per_iteration iter_ms mean_step_ms "
	  "time_ms latency_ms" },
	{ RFL_LEDGER_AT_step_ms_median, "median_step_ms median_ms" },
	{ RFL_LEDGER_AT_tflops, "tflop_s tflops_s achieved_tflops" },
	{ RFL_LEDGER_AT_error_text, "error error_message" },
};

bool rfl_foreign_is_ours(const struct rfl_csv *csv)
{
	return rfl_csv_find(csv, "schema_version") >= 0 && rfl_csv_find(csv, "run_id") >= 0 &&
	       rfl_csv_find(csv, "config_hash") >= 0 && rfl_csv_find(csv, "status") >= 0;
}

/* Return the position of a name, from 1, in a list of words separated by blanks. 0: not found. */
static size_t place_among(const char *words, const char *name)
{
	size_t len = strlen(name);

	for (size_t place = 1; *words; place++) {
		size_t word = strcspn(words, " ");

		if (word == len && memcmp(words, name, len) == 0)
			return place;
		words += word;
		words += *words == ' ';
	}
	return 0;
}

/* The factor from the unit in the name of a rate to GFLOP/s; 0: none. */
static double in_gflops(const char *name)
{
	const char *flop = strstr(name, "flop");
	const char prefix = flop > name ? flop[-1] : '_';

	return prefix == 't' ? 1e3 : prefix == 'm' ? 1e-3 : prefix == 'g' ? 0 : 1e-9;
}

/* Names of ledger columns take precedence over aliases. If two columns have equal names, the first
 * is used. */
static void take_known_names(const struct rfl_csv *csv,
			     struct rfl_ledger_source from[RFL_LEDGER_NREAD])
{
	size_t taken[RFL_LEDGER_NREAD]; /* position among the aliases; 0: ledger name */

	for (size_t i = 0; i < RFL_LEDGER_NREAD; i++) {
		from[i] = (struct rfl_ledger_source){ .column = -1, .foreign = true };
		taken[i] = SIZE_MAX;
	}
	for (size_t i = 0; i < csv->ncolumns; i++) {
		char name[128]; /* "images_sec" for "Images / sec" */
		size_t ours, n = 0;
		const char *bracket;
		double ms = NAN;
		char *unit;

		for (const char *c = csv->columns[i]; *c && n + 1 < sizeof(name); c++) {
			if (isalnum((unsigned char)*c))
				name[n++] = (char)tolower((unsigned char)*c);
			else if (n > 0 && name[n - 1] != '_')
				name[n++] = '_';
		}
		n -= n > 0 && name[n - 1] == '_';
		if (n == 0)
			continue;
		name[n] = '\0';
		/* "Step [s]" is read as "step_ms" */
		unit = strrchr(name, '_');
		bracket = strpbrk(csv->columns[i], "([");
		if (unit && bracket && strcspn(bracket + 1, ")]") == strlen(unit + 1) &&
		    !isnan(ms = rfl_column_map__ms(unit + 1)))
			(void)snprintf(unit + 1, sizeof(name) - (size_t)(unit + 1 - name), "ms");
		ours = rfl_fields_find(rfl_ledger_fields, RFL_LEDGER_NREAD, name);
		if (ours < RFL_LEDGER_NREAD && taken[ours] > 0) {
			from[ours].column = (int)i;
			from[ours].scale = ms > 1 || ms < 1 ? ms : 0;
			taken[ours] = 0;
		}
		for (size_t k = 0; k < RFL_ARRAY_LEN(aliases); k++) {
			size_t place = place_among(aliases[k].names, name);

			if (place == 0 || place >= taken[aliases[k].column])
				continue;
			from[aliases[k].column].column = (int)i;
			from[aliases[k].column].scale = ms > 1 || ms < 1 ? ms : 0;
			if (aliases[k].column == RFL_LEDGER_AT_attained_gflops)
				from[aliases[k].column].scale = in_gflops(name);
			taken[aliases[k].column] = place;
		}
	}
}

static bool has_source(const struct rfl_ledger_source from[], enum rfl_ledger_at column)
{
	return from[column].column >= 0 || (from[column].text && from[column].text[0]);
}

/* Report all missing columns at once. @param whole  include columns required for roofline points */
static enum rfl_rc check_needed(const struct rfl_csv *csv, const struct rfl_ledger_source from[],
				const struct rfl_ledger_metric *metric, bool whole,
				struct rfl_err *err)
{
	const bool label = has_source(from, RFL_LEDGER_AT_label);
	const bool backend = has_source(from, RFL_LEDGER_AT_backend) ||
			     has_source(from, RFL_LEDGER_AT_device_name);
	const struct {
		enum rfl_ledger_at column;
		bool needed;
		const char *constant; /* an example */
	} parts[] = {
		{ metric->column, !has_source(from, metric->instead), NULL },
		{ RFL_LEDGER_AT_model, !label, NULL },
		{ RFL_LEDGER_AT_batch, !label, NULL },
		{ RFL_LEDGER_AT_precision, !label, "fp32" },
		{ RFL_LEDGER_AT_mode, whole && !label, "train" },
		{ RFL_LEDGER_AT_backend, whole && !backend, "cpu" },
		{ RFL_LEDGER_AT_env, !label && !backend, "lab_cpu" },
	};
	/* Each of these can be computed from the others. */
	const bool derived =
		(metric->column == RFL_LEDGER_AT_samples_per_s ||
		 metric->column == RFL_LEDGER_AT_step_ms_median) &&
		(has_source(from, RFL_LEDGER_AT_samples_per_s) ||
		 has_source(from, RFL_LEDGER_AT_step_ms_mean) ||
		 has_source(from, RFL_LEDGER_AT_step_ms_median) ||
		 (has_source(from, RFL_LEDGER_AT_wall_s) && has_source(from, RFL_LEDGER_AT_iters)));
	RFL_AUTO(buf) rules = { .max = 1 << 12 };
	RFL_AUTO(buf) names = { .max = 1 << 12 };
	RFL_AUTO(buf) list = { .max = 1 << 16 };
	enum rfl_rc rc = RFL_OK;

	for (size_t i = derived; i < RFL_ARRAY_LEN(parts); i++) {
		const char *name = rfl_ledger_fields[parts[i].column].name;

		if (!parts[i].needed || has_source(from, parts[i].column))
			continue;
		rfl_buf_printf(&names, "%s'%s'", names.len ? ", " : "", name);
		rfl_buf_printf(&rules, " %s=COLUMN", name);
		if (parts[i].constant)
			rfl_buf_printf(&rules, " (or '%s=\"%s\"')", name, parts[i].constant);
	}
	if (names.len) {
		rfl_column_map__list(csv, &list);
		rc = rfl_fail(err, RFL_EFORMAT, 0,
			      "%s: no column for %s among %s; map each one with --map%s", csv->path,
			      rfl_buf_str(&names), rfl_buf_str(&list), rfl_buf_str(&rules));
	}
	return rc;
}

static const struct {
	enum rfl_ledger_at column;
	const char *ours, *theirs; /* separated by blanks */
} words[] = {
	{ RFL_LEDGER_AT_precision, "fp64", "float64 double f64 dp torch.float64" },
	{ RFL_LEDGER_AT_precision, "fp32", "float32 float f32 full single sp torch.float32" },
	{ RFL_LEDGER_AT_precision, "fp16", "float16 half f16 torch.float16" },
	{ RFL_LEDGER_AT_precision, "bf16", "bfloat16 torch.bfloat16" },
	{ RFL_LEDGER_AT_precision, "amp", "mixed autocast" },
	{ RFL_LEDGER_AT_layout, "nhwc", "1 true yes channels_last channels-last" },
	{ RFL_LEDGER_AT_layout, "nchw", "0 false no contiguous contiguous_format" },
	{ RFL_LEDGER_AT_status, "ok",
	  "success succeeded done completed complete passed finished pass 0" },
};

/* Convert to lower case and to the keyword of the ledger. */
static void translate(struct rfl_runs *runs, enum rfl_ledger_at column, struct rfl_ledger_row *row)
{
	char **field = rfl_field_text_at(&rfl_ledger_fields[column], row), low[64];
	size_t len = *field ? strlen(*field) : 0;

	const char *ours = low;

	if (len == 0 || len >= sizeof(low))
		return;
	for (size_t i = 0; i <= len; i++)
		low[i] = (char)tolower((unsigned char)(*field)[i]);
	for (size_t i = 0; i < RFL_ARRAY_LEN(words); i++)
		if (words[i].column == column && place_among(words[i].theirs, low))
			ours = words[i].ours;
	if (strcmp(ours, *field) != 0)
		*field = text_of(runs, ours);
}

/* Compare only letters and digits: "ResNet-50" equals "resnet50". */
static bool alike(const char *a, const char *b)
{
	for (;;) {
		while (*a && !isalnum((unsigned char)*a))
			a++;
		while (*b && !isalnum((unsigned char)*b))
			b++;
		if (tolower((unsigned char)*a) != tolower((unsigned char)*b))
			return false;
		if (!*a)
			return true;
		a++;
		b++;
	}
}

static void derive(struct rfl_ledger_row *row)
{
	double batch = row->batch > 0 ? (double)row->batch : (double)NAN;
	double iters = row->iters > 0 ? (double)row->iters : (double)NAN;
	double step = 1000 * row->wall_s / iters;

	if (isnan(step))
		step = isnan(row->step_ms_mean) ? row->step_ms_median : row->step_ms_mean;
	if (isnan(row->samples_per_s) && step > 0) {
		row->samples_per_s = 1000 * batch / step;
		row->samples_per_s_std *= row->samples_per_s / step; /* was of the time */
	}
	if (isnan(row->step_ms_mean) && row->samples_per_s > 0)
		row->step_ms_mean = 1000 * batch / row->samples_per_s;
}

/* Convert the words of a row. A device such as "cuda:0" is a backend. */
static void translate_row(struct rfl_runs *runs, struct rfl_ledger_row *row)
{
	static const enum rfl_ledger_at translated[] = { RFL_LEDGER_AT_precision,
							 RFL_LEDGER_AT_layout, RFL_LEDGER_AT_status,
							 RFL_LEDGER_AT_backend };
	const struct rfl_span device = rfl_span_of(row->device_name ? row->device_name : "");
	const struct rfl_span kind = { device.at, rfl_span_find(device, ":") };
	const struct rfl_zoo_model *m;

	if (rfl_span_is(kind, "cuda") || rfl_span_is(kind, "cpu") || rfl_span_is(kind, "mps")) {
		row->backend = row->backend                ? row->backend
			       : rfl_span_is(kind, "cuda") ? text_of(runs, "cuda")
							   : row->device_name;
		row->device_name = NULL;
	}
	for (size_t i = 0; row->model && (m = rfl_zoo_at(i)) != NULL; i++)
		if (alike(m->name, row->model)) {
			if (strcmp(m->name, row->model) != 0)
				row->model = text_of(runs, m->name);
			break;
		}
	for (size_t i = 0; i < RFL_ARRAY_LEN(translated); i++)
		translate(runs, translated[i], row);
}

/* Complete a row of another program: convert model names, precisions and status to the ledger's,
 * and add parts of the label and rates computed from times, or times from rates.
 * @param status  the table has a status column */
static enum rfl_rc settle(struct rfl_runs *runs, const char *path, struct rfl_ledger_row *row,
			  bool status, struct rfl_err *err)
{
	struct rfl_label label;
	const struct {
		char **to;
		const char *from;
	} parts[] = { { &row->model, label.model },
		      { &row->precision, label.precision },
		      { &row->mode, label.mode } };
	const char *lack;
	char env[49];

	translate_row(runs, row);
	/* Add parts of the label that are missing in the columns. */
	rfl_label_parse(row->label, row->model, &label);
	for (size_t i = 0; i < RFL_ARRAY_LEN(parts); i++)
		if (!*parts[i].to && parts[i].from[0])
			*parts[i].to = text_of(runs, parts[i].from);
	if (row->batch < 0)
		row->batch = label.batch;
	if (row->repeat < 0)
		row->repeat = label.run;
	if (rfl_label_env(row->env, row->label, row->model, row->backend ? row->backend : "", env,
			  err) != RFL_OK) {
		rfl_err_prefix(err, "%s:%zu", path, row->line);
		if (err)
			err->rc = RFL_EFORMAT;
		return RFL_EFORMAT;
	}
	if (env[0])
		row->env = text_of(runs, env);

	derive(row);
	if (!status && !isnan(rfl_ledger_metric_value(runs->metric, row)))
		row->status = text_of(runs, "ok");
	else if (!row->status)
		row->status = text_of(runs, "unknown");
	lack = rfl_facts_lack(row);
	if (!lack)
		return RFL_OK;
	return rfl_fail(
		err, RFL_EFORMAT, 0,
		"%s:%zu: neither a column nor the label '%.100s' contains the %s; add --map "
		"%s=COLUMN or --map '%s=\"constant\"'",
		path, row->line, row->label ? row->label : "", lack, lack, lack);
}

struct reading {
	struct rfl_runs *runs;
	const struct rfl_column_map *map; /* NULL: none */
	const bool *wanted;               /* columns to read from a ledger */
	bool found;                       /* intensities and rates */
};

/* Append "; ignored columns: Precison, AI L3". */
static void note_ignored(const struct rfl_csv *csv, const struct rfl_ledger_source from[],
			 struct rfl_buf *notes)
{
	const char *before = "; ignored columns: ";

	for (int c = 0; c < (int)csv->ncolumns; c++) {
		bool used = false;

		for (size_t i = 0; i < RFL_LEDGER_NREAD && !used; i++)
			used = from[i].pattern /* made of several columns */ ||
			       (c >= from[i].column &&
				c < from[i].column + (from[i].nruns > 1 ? from[i].nruns : 1));
		if (used || !csv->columns[c][0])
			continue;
		rfl_buf_printf(notes, "%s%s", before, csv->columns[c]);
		before = ", ";
	}
}

/* Note the columns used: "FILE: ...; used columns: model=arch, batch, env=\"mac_mps\"". */
static void note_sources(const struct rfl_csv *csv, const struct rfl_ledger_source from[],
			 bool ignored, struct rfl_buf *notes)
{
	const char *before = "";

	rfl_buf_printf(notes, "%s: not a ledger of this program; used columns: ", csv->path);
	for (size_t i = 0; i < RFL_LEDGER_NREAD; i++) {
		const char *name = rfl_ledger_fields[i].name;

		if (from[i].column < 0 && !from[i].text)
			continue;
		rfl_buf_printf(notes, "%s%s", before, name);
		before = ", ";
		if (from[i].pattern || from[i].column < 0)
			rfl_buf_printf(notes, "=\"%s\"",
				       from[i].pattern ? from[i].pattern : from[i].text);
		else if (strcmp(csv->columns[from[i].column], name) != 0)
			rfl_buf_printf(notes, "=%s", csv->columns[from[i].column]);
		if (from[i].scale != 0)
			rfl_buf_printf(notes, "*%g", from[i].scale);
	}
	if (ignored)
		note_ignored(csv, from, notes);
	if (!has_source(from, RFL_LEDGER_AT_status))
		rfl_buf_puts(notes,
			     "; without a status column, rows with a value are treated as ok");
	rfl_buf_putc(notes, '\n');
}

/* Find the columns of repeats of a rate or time. The deviation belongs to the first of them, and
 * has its unit if it names none. */
static void bind_runs(const struct rfl_csv *csv, struct rfl_ledger_source from[RFL_LEDGER_NREAD])
{
	static const enum rfl_ledger_at of_runs[] = { RFL_LEDGER_AT_samples_per_s,
						      RFL_LEDGER_AT_step_ms_mean,
						      RFL_LEDGER_AT_step_ms_median };
	struct rfl_ledger_source *std = &from[RFL_LEDGER_AT_samples_per_s_std];
	struct rfl_ledger_source *n = &from[RFL_LEDGER_AT_samples_per_s_n];
	bool found = false;

	for (size_t i = 0; i < RFL_ARRAY_LEN(of_runs); i++) {
		struct rfl_ledger_source *of = &from[of_runs[i]];

		of->nruns = of->foreign ? rfl_column_map__runs(csv, of->column) : 0;
		if (found || of->column < 0)
			continue;
		found = of->of_runs = true;
		if (std->column >= 0 && std->scale == 0)
			std->scale = of->scale;
	}
	for (size_t i = 0; i < RFL_LEDGER_NREAD; i++) /* "n" may be mapped to another column */
		if (i != RFL_LEDGER_AT_samples_per_s_n && from[i].column == n->column)
			n->column = -1;
}

static enum rfl_rc read_numbers(struct rfl_csv *csv, struct rfl_ledger *to, void *ctx,
				struct rfl_err *err)
{
	struct rfl_ledger_source from[RFL_LEDGER_NREAD];
	struct reading *r = ctx;
	size_t kept = 0, failed = 0;
	bool more;
	enum rfl_rc rc;

	if (rfl_foreign_is_ours(csv) || rfl_csv_find(csv, "verdict") >= 0)
		return RFL_OK; /* runs, or points */
	take_known_names(csv, from);
	if (r->map && (rc = rfl_column_map__bind(r->map, csv, from, err)))
		return rc;
	r->found = has_source(from, RFL_LEDGER_AT_ai) &&
		   (has_source(from, RFL_LEDGER_AT_attained_gflops) ||
		    has_source(from, RFL_LEDGER_AT_tflops));
	if (!r->found)
		return RFL_OK;
	bind_runs(csv, from);
	if ((rc = rfl_ledger__read(csv, from, to, &more, err)))
		return rc;
	note_sources(csv, from, true, &r->runs->notes);
	for (size_t i = 0; i < to->nrows; i++) {
		struct rfl_ledger_row *row = &to->rows[i];

		translate_row(r->runs, row);
		if (row->status && strcmp(row->status, "ok") != 0) {
			failed++; /* its texts are the ledger's */
			continue;
		}
		if (isnan(row->attained_gflops))
			row->attained_gflops = 1e3 * row->tflops;
		to->rows[kept++] = *row;
	}
	to->nrows = kept;
	if (failed)
		rfl_buf_printf(&r->runs->notes, "%s: left out %zu row%s whose status is not ok\n",
			       csv->path, failed, failed == 1 ? "" : "s");
	return RFL_OK;
}

#define FOREIGN_TEXT_MAX ((size_t)16 << 20)

enum rfl_rc rfl_foreign_numbers(const char *path, const struct rfl_column_map *map,
				struct rfl_ledger **ret, struct rfl_buf *notes, struct rfl_err *err)
{
	RFL_AUTOPTR(ledger) l = rfl_alloc_array(1, sizeof(*l));
	RFL_AUTO(buf) text = { .max = FOREIGN_TEXT_MAX };
	RFL_AUTO(buf) table = { .max = FOREIGN_TEXT_MAX };
	RFL_AUTOPTR(csv) csv = NULL;
	struct rfl_runs runs = { .ledger = l };
	struct reading reading = { .runs = &runs, .map = map };
	enum rfl_rc rc;

	l->hashed = true;
	if (rfl_file_read(path, &text, NULL) == RFL_OK && /* larger files are tables */
	    (rc = rfl_foreign__text((struct rfl_span){ rfl_buf_str(&text), text.len }, path, &table,
				    err)))
		return rc;
	if (table.len && !(rc = rfl_csv_open_text(table.data, table.len, path, &csv, err)))
		rc = read_numbers(csv, l, &reading, err);
	else if (!table.len)
		rc = rfl_ledger__read_file(path, read_numbers, &reading, l, err);
	rfl_buf_puts(notes, rfl_buf_str(&runs.notes));
	rfl_buf_fini(&runs.notes);
	if (rc || !reading.found)
		return rc;
	*ret = l;
	l = NULL;
	return RFL_OK;
}

static enum rfl_rc read_table(struct rfl_csv *csv, struct rfl_ledger *to, void *ctx,
			      struct rfl_err *err)
{
	/* Tables of this program that are not ledgers, identified by a column. */
	static const struct {
		const char *column, *what;
	} kinds[] = {
		{ "attained_gflops", "the output of 'roofline points'" },
		{ "ci95_lo", "the output of 'roofline summary'" },
		{ "range_kind", "the counters of runs" },
	};
	/* A ledger needs no changes, except for the rate if its column was removed. */
	const bool ours = rfl_foreign_is_ours(csv), cut = rfl_csv_find(csv, "samples_per_s") < 0;
	struct rfl_ledger_source from[RFL_LEDGER_NREAD];
	const struct reading *r = ctx;
	struct rfl_runs *runs = r->runs;
	bool more = true;
	enum rfl_rc rc = RFL_OK;

	if (ours)
		rfl_ledger__bind(csv, cut ? NULL : r->wanted, from);
	else
		take_known_names(csv, from);
	for (size_t i = 0; i < RFL_ARRAY_LEN(kinds) && !ours && !r->map; i++)
		if (rfl_csv_find(csv, kinds[i].column) >= 0)
			return rfl_fail(err, RFL_EFORMAT, 0,
					"%s: contains %s, not runs; use a metrics.csv file",
					csv->path, kinds[i].what);
	if ((r->map && (rc = rfl_column_map__bind(r->map, csv, from, err))) ||
	    (!ours && (rc = check_needed(csv, from, runs->metric, runs->timed, err))))
		return rc;

	bind_runs(csv, from);
	/* Read rows in batches, which are dropped unless requested. A second attempt to read a file
	 * starts over. */
	runs->n = runs->files[runs->nfiles - 1].first;
	while (rc == RFL_OK && more) {
		struct rfl_err why = RFL_ERR_INIT;
		const size_t first = to->nrows;

		rc = rfl_ledger__read(csv, from, to, &more, &why);
		if (rc != RFL_OK)
			return rfl_fail(
				err, rc, why.native,
				rc == RFL_EFORMAT && !ours
					? "%s; if the column has another meaning, exclude it with "
					  "--map 'NAME=\"\"', where NAME is its name in the ledger"
					: "%s",
				why.msg);
		for (size_t i = first; i < to->nrows && rc == RFL_OK; i++) {
			if (!ours)
				rc = settle(runs, csv->path, &to->rows[i],
					    has_source(from, RFL_LEDGER_AT_status), err);
			else if (cut)
				derive(&to->rows[i]);
			if (rc == RFL_OK)
				add_run(runs, &to->rows[i]);
		}
		if (to->batch)
			to->nrows = 0;
	}
	if (rc == RFL_OK && !ours)
		note_sources(csv, from, false, &runs->notes);
	return rc;
}

enum rfl_rc rfl_runs_load(const char *const *paths, size_t npaths, const struct rfl_column_map *map,
			  const struct rfl_ledger_metric *metric, enum rfl_rows rows,
			  struct rfl_runs **ret, struct rfl_err *err)
{
	bool wanted[RFL_LEDGER_NCOLUMNS];
	const bool timed = rows == RFL_ROWS_TIMES;
	struct rfl_runs *runs = rfl_alloc_array(1, sizeof(*runs));
	struct reading reading = { .runs = runs, .map = map, .wanted = wanted };
	enum rfl_rc rc = RFL_OK;

	runs->metric = metric;
	runs->timed = timed;
	runs->likes = (struct rfl_row_index){ .hash = like_hash, .alike = like_alike };
	runs->arena = rfl_arena_new();
	runs->files = rfl_arena_array(runs->arena, npaths, sizeof(*runs->files));
	runs->ledger = rfl_alloc_array(1, sizeof(*runs->ledger));
	runs->ledger->batch = rows == RFL_ROWS_KEPT || rows == RFL_ROWS_WHOLE ? 0 : BATCH;
	runs->ledger->hashed = timed;
	memset(wanted, rows == RFL_ROWS_WHOLE, sizeof(wanted));
	rfl_ledger_want(columns, wanted);
	rfl_ledger_want(timed ? columns_of_points : "", wanted);
	for (size_t i = 0; i < rfl_nfacts; i++)
		wanted[rfl_facts[i].column] = true;
	wanted[metric->column] = wanted[metric->instead] = true;
	for (size_t i = 0; i < npaths && rc == RFL_OK; i++) {
		runs->files[runs->nfiles++] =
			(struct rfl_runs_file){ .path = paths[i], .first = runs->n };
		rc = rfl_ledger__read_file(paths[i], read_table, &reading, runs->ledger, err);
	}
	if (rc) {
		rfl_runs_free(runs);
		return rc;
	}
	rfl_runs_drop_continued(runs);
	*ret = runs;
	return RFL_OK;
}

void rfl_runs_free(struct rfl_runs *runs)
{
	if (!runs)
		return;
	rfl_row_index_fini(&runs->likes);
	rfl_arena_free(runs->arena);
	rfl_ledger_free(runs->ledger);
	free(runs->runs);
	free(runs->times);
	rfl_buf_fini(&runs->notes);
	free(runs);
}

const struct rfl_run_step *rfl_runs_times(const struct rfl_runs *runs, const struct rfl_run *run)
{
	return &runs->times[run - runs->runs];
}

const struct rfl_ledger_row *rfl_runs_row(const struct rfl_runs *runs, const struct rfl_run *run)
{
	return &runs->ledger->rows[run - runs->runs];
}

/* The path of the table with a run. */
static const char *table_of(const struct rfl_runs *runs, const struct rfl_run *run)
{
	size_t at = (size_t)(run - runs->runs), i = runs->nfiles - 1;

	while (i > 0 && runs->files[i].first > at)
		i--;
	return runs->files[i].path;
}

void rfl_runs_where(const struct rfl_runs *runs, const struct rfl_run *run, struct rfl_buf *out)
{
	rfl_buf_printf(out, "%s:%zu", table_of(runs, run), run->line);
}

void rfl_runs_select(struct rfl_runs *runs,
		     bool (*keep)(const struct rfl_runs *runs, size_t i, void *ctx), void *ctx)
{
	const bool rows = runs->ledger->batch == 0;
	size_t n = 0, file = 0;

	for (size_t i = 0; i < runs->n; i++) {
		for (; file < runs->nfiles && runs->files[file].first <= i; file++)
			runs->files[file].first = n;
		if (!keep(runs, i, ctx))
			continue;
		if (runs->timed)
			runs->times[n] = runs->times[i];
		if (rows)
			runs->ledger->rows[n] = runs->ledger->rows[i];
		runs->runs[n++] = runs->runs[i];
	}
	for (; file < runs->nfiles; file++)
		runs->files[file].first = n;
	runs->n = n;
	if (rows)
		runs->ledger->nrows = n;
}

bool rfl_runs_beside(const struct rfl_runs *runs, const struct rfl_run *run, const char *dir,
		     const char *folder, struct rfl_buf *out)
{
	const char *table = table_of(runs, run);

	if (!run->id || strchr(run->id, '/'))
		return false;
	if (dir)
		rfl_buf_printf(out, "%s/%s.csv", dir, run->id);
	else
		rfl_buf_printf(out, "%.*s%s/%s.csv", (int)(rfl_path_base(table) - table), table,
			       folder, run->id);
	return true;
}

bool rfl_runs_network(const struct rfl_runs *runs, const struct rfl_run *run, struct rfl_buf *out)
{
	const char *digest = run->like->net_digest, *table;

	if (!digest || !*digest || strchr(digest, '/'))
		return false;
	table = table_of(runs, run);
	rfl_buf_printf(out, "%.*snetworks/%s.json", (int)(rfl_path_base(table) - table), table,
		       digest);
	return true;
}

enum rfl_rc rfl_runs_check_steps(const struct rfl_csv *csv, size_t n, int64_t iters,
				 struct rfl_err *err)
{
	if (csv->torn)
		return rfl_fail(err, RFL_EFORMAT, 0,
				"%s:%zu: the last line is incomplete, so the file was cut short; "
				"repeat the run, or delete the file",
				csv->path, csv->line);
	if (iters < 0 || n == (size_t)iters)
		return RFL_OK;
	return rfl_fail(err, RFL_EFORMAT, 0,
			"%s:%zu: the file has %zu steps, the run had %" PRId64
			"; repeat the run, or delete the file",
			csv->path, csv->line, n, iters);
}
