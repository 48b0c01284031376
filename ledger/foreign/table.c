/*
 * table.c - which columns of a table are which of ours. What the words in them come to is in
 * foreign/row_of.c.
 */
#include "ledger/foreign.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "ledger/foreign/row_of.h"
#include "ledger/file/steps.h"

/* What other programs call our columns, compared without case, signs for letters and digits only,
 * every run of others as one '_'. Of several that a table has the first is taken. */
static const struct {
	enum rfl_ledger_at column;
	const char *names; /* separated by blanks */
} aliases[] = {
	{ RFL_LEDGER_AT_timestamp_utc,
	  "timestamp datetime date_time time date start_time started" },
	{ RFL_LEDGER_AT_label, "run_label run_name label_name tag name" },
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
	  "throughput_imgs_per_sec throughput_img_s ips" },
	{ RFL_LEDGER_AT_tokens_per_s, "tokens_per_sec tok_per_s tok_per_sec tokens_sec tok_s" },
	{ RFL_LEDGER_AT_step_ms_mean,
	  "step_ms step_time_ms ms_per_step ms_per_iter ms_per_iteration iter_ms mean_step_ms" },
	{ RFL_LEDGER_AT_step_ms_median, "median_step_ms median_ms" },
	{ RFL_LEDGER_AT_tflops, "tflop_s tflops_s achieved_tflops" },
	{ RFL_LEDGER_AT_error_text, "error error_message" },
};

bool rfl_foreign_is_ours(const struct rfl_csv *csv)
{
	return rfl_csv_find(csv, "schema_version") >= 0 && rfl_csv_find(csv, "run_id") >= 0 &&
	       rfl_csv_find(csv, "config_hash") >= 0 && rfl_csv_find(csv, "status") >= 0;
}

/* --- names ----------------------------------------------------------------------------------- */

/* "Images / sec" as "images_sec". */
static void plain_name(const char *name, char *out, size_t size)
{
	size_t n = 0;

	for (; *name && n + 1 < size; name++) {
		if (isalnum((unsigned char)*name))
			out[n++] = (char)tolower((unsigned char)*name);
		else if (n > 0 && out[n - 1] != '_')
			out[n++] = '_';
	}
	while (n > 0 && out[n - 1] == '_')
		n--;
	out[n] = '\0';
}

/* Which of the words, separated by blanks, a name is, counted from 1; 0: none of them. */
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

/* Our own names first, then what others have for them; of equal names the first column. */
static void take_known_names(const struct rfl_csv *csv,
			     struct rfl_ledger_source from[RFL_LEDGER_NCOLUMNS])
{
	size_t taken[RFL_LEDGER_NCOLUMNS]; /* the place of the name, 0 for our own */

	for (size_t i = 0; i < RFL_LEDGER_NCOLUMNS; i++) {
		from[i] = (struct rfl_ledger_source){ .column = -1, .foreign = true };
		taken[i] = SIZE_MAX;
	}
	for (size_t i = 0; i < rfl_csv_columns(csv); i++) {
		char name[128];
		size_t ours;

		plain_name(rfl_csv_column(csv, i), name, sizeof(name));
		ours = rfl_ledger_column_find(name);
		if (ours < RFL_LEDGER_NCOLUMNS && taken[ours] > 0) {
			from[ours].column = (int)i;
			taken[ours] = 0;
		}
		for (size_t k = 0; k < RFL_ARRAY_LEN(aliases); k++) {
			size_t place = place_among(aliases[k].names, name);

			if (place == 0 || place >= taken[aliases[k].column])
				continue;
			from[aliases[k].column].column = (int)i;
			taken[aliases[k].column] = place;
		}
	}
}

/* --- what is needed -------------------------------------------------------------------------- */

static bool is_told(const struct rfl_ledger_source from[], enum rfl_ledger_at column)
{
	return from[column].column >= 0 || (from[column].text && from[column].text[0]);
}

static bool has_rate_parts(const struct rfl_ledger_source from[])
{
	return is_told(from, RFL_LEDGER_AT_samples_per_s) ||
	       is_told(from, RFL_LEDGER_AT_step_ms_mean) ||
	       is_told(from, RFL_LEDGER_AT_step_ms_median) ||
	       (is_told(from, RFL_LEDGER_AT_wall_s) && is_told(from, RFL_LEDGER_AT_iters));
}

static bool has_metric(const struct rfl_ledger_source from[], const struct rfl_ledger_metric *m)
{
	if (is_told(from, m->column) || is_told(from, m->instead))
		return true;
	return (m->column == RFL_LEDGER_AT_samples_per_s ||
		m->column == RFL_LEDGER_AT_step_ms_median) &&
	       has_rate_parts(from);
}

/* What a table cannot do without. */
struct needs {
	struct rfl_buf names, rules; /* of the columns that are not there */
};

static void lacks(struct needs *n, const char *column, const char *constant)
{
	rfl_buf_printf(&n->names, "%s'%s'", n->names.len ? ", " : "", column);
	rfl_buf_printf(&n->rules, " %s=COLUMN", column);
	if (constant)
		rfl_buf_printf(&n->rules, " (or '%s=\"%s\"')", column, constant);
}

/* Tables of this program that are not ledgers, known by a column. */
static enum rfl_rc check_kind(const struct rfl_csv *csv, struct rfl_err *err)
{
	static const struct {
		const char *column, *what;
	} kinds[] = {
		{ "attained_gflops", "the output of 'roofline points'" },
		{ "ci95_lo", "the output of 'roofline summary'" },
		{ "range_kind", "the counters of runs" },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(kinds); i++)
		if (rfl_csv_find(csv, kinds[i].column) >= 0)
			return rfl_fail(
				err, RFL_EFORMAT, 0,
				"%s: contains %s, not runs; use the metrics.csv of the runs",
				rfl_csv_path(csv), kinds[i].what);
	return RFL_OK;
}

/* All that is missing at once. @param whole  rows are to be placed under a roof */
static enum rfl_rc check_needed(const struct rfl_csv *csv, const struct rfl_ledger_source from[],
				const struct rfl_ledger_metric *metric, bool whole,
				struct rfl_err *err)
{
	static const struct {
		enum rfl_ledger_at column;
		bool labelled, whole;
		const char *constant;
	} parts[] = {
		{ RFL_LEDGER_AT_model, true, false, NULL },
		{ RFL_LEDGER_AT_batch, true, false, NULL },
		{ RFL_LEDGER_AT_precision, true, false, "fp32" },
		{ RFL_LEDGER_AT_mode, true, true, "train" },
		{ RFL_LEDGER_AT_backend, false, true, "cpu" },
	};
	const bool label = is_told(from, RFL_LEDGER_AT_label);
	struct rfl_buf list;
	struct needs n;
	enum rfl_rc rc = RFL_OK;

	rfl_buf_init(&n.names, 1 << 12);
	rfl_buf_init(&n.rules, 1 << 12);
	rfl_buf_init(&list, 1 << 16);
	if (!has_metric(from, metric))
		lacks(&n, rfl_ledger_column_name(metric->column), NULL);
	for (size_t i = 0; i < RFL_ARRAY_LEN(parts); i++)
		if (!is_told(from, parts[i].column) && !(label && parts[i].labelled) &&
		    (whole || !parts[i].whole))
			lacks(&n, rfl_ledger_column_name(parts[i].column), parts[i].constant);
	if (!label && !is_told(from, RFL_LEDGER_AT_env) && !is_told(from, RFL_LEDGER_AT_backend))
		lacks(&n, "env", "lab_cpu");
	if (n.names.len) {
		rfl_column_map_list(csv, &list);
		rc = rfl_fail(err, RFL_EFORMAT, 0,
			      "%s: no column for %s among %s; name each with --map%s",
			      rfl_csv_path(csv), rfl_buf_str(&n.names), rfl_buf_str(&list),
			      rfl_buf_str(&n.rules));
	}
	rfl_buf_fini(&list);
	rfl_buf_fini(&n.names);
	rfl_buf_fini(&n.rules);
	return rc;
}

/* --- reading --------------------------------------------------------------------------------- */

/* "file: read as ...: model=arch batch=batch_size env=\"mac_mps\"". */
static void note_sources(const struct rfl_csv *csv, const struct rfl_ledger_source from[],
			 struct rfl_buf *notes)
{
	const char *before = "";

	rfl_buf_printf(notes, "%s: not a ledger of this program; taken are ", rfl_csv_path(csv));
	for (size_t i = 0; i < RFL_LEDGER_NCOLUMNS; i++) {
		const char *name = rfl_ledger_column_name(i);

		if (from[i].column < 0 && !from[i].text)
			continue;
		rfl_buf_printf(notes, "%s%s", before, name);
		before = ", ";
		if (from[i].column < 0)
			rfl_buf_printf(notes, "=\"%s\"", from[i].text);
		else if (strcmp(rfl_csv_column(csv, (size_t)from[i].column), name) != 0)
			rfl_buf_printf(notes, "=%s", rfl_csv_column(csv, (size_t)from[i].column));
		if (from[i].scale != 0)
			rfl_buf_printf(notes, "*%g", from[i].scale);
	}
	if (!is_told(from, RFL_LEDGER_AT_status))
		rfl_buf_puts(notes, "; without a status, a row with a value is a run that is ok");
	rfl_buf_putc(notes, '\n');
}

/* Pass the rows on to a caller that does not keep them whole. */
static enum rfl_rc hand_over(struct rfl_ledger *to, struct rfl_err *err)
{
	return to->take ? to->take(to, err) : RFL_OK;
}

/* One that was cut down to a few columns may lack the rate, which follows from others then. */
static enum rfl_rc read_ours(struct rfl_csv *csv, const struct rfl_column_map *map,
			     const bool wanted[], struct rfl_ledger *to, struct rfl_err *err)
{
	const bool cut = rfl_csv_find(csv, "samples_per_s") < 0;
	struct rfl_ledger_source from[RFL_LEDGER_NCOLUMNS];
	bool more = true;
	enum rfl_rc rc;

	for (size_t i = 0; i < RFL_LEDGER_NCOLUMNS; i++) {
		from[i] = (struct rfl_ledger_source){ .column = -1 };
		if (wanted[i] || cut)
			from[i].column = rfl_csv_find(csv, rfl_ledger_column_name(i));
	}
	rc = map ? rfl_column_map_bind(map, csv, from, err) : RFL_OK;
	while (rc == RFL_OK && more) {
		const size_t first = to->nrows;

		rc = rfl_ledger_read(csv, from, to, &more, err);
		for (size_t i = first; i < to->nrows && cut && rc == RFL_OK; i++)
			rfl_foreign__derive(&to->rows[i]);
		if (rc == RFL_OK)
			rc = hand_over(to, err);
	}
	return rc;
}

/* Some rows of a table, in our words. */
static enum rfl_rc read_batch(struct rfl_csv *csv,
			      const struct rfl_ledger_source from[RFL_LEDGER_NCOLUMNS],
			      const struct rfl_ledger_metric *metric, struct rfl_ledger *to,
			      bool *more, struct rfl_err *err)
{
	struct rfl_err why = RFL_ERR_INIT;
	size_t first = to->nrows;
	enum rfl_rc rc = rfl_ledger_read(csv, from, to, more, &why);

	if (rc == RFL_EFORMAT)
		return rfl_fail(err, rc, 0,
				"%s; if the column means something else, use --map 'NAME=\"\"', "
				"with the ledger's name for it",
				why.msg);
	if (rc != RFL_OK)
		return rfl_fail(err, rc, why.native, "%s", why.msg);
	for (size_t i = first; i < to->nrows && rc == RFL_OK; i++)
		rc = rfl_foreign__settle(rfl_csv_path(csv), to, i, metric,
					 is_told(from, RFL_LEDGER_AT_status), err);
	return rc == RFL_OK ? hand_over(to, err) : rc;
}

static enum rfl_rc read_others(struct rfl_csv *csv, const struct rfl_column_map *map,
			       const struct rfl_ledger_metric *metric, bool roofs,
			       struct rfl_ledger *to, struct rfl_buf *notes, struct rfl_err *err)
{
	struct rfl_ledger_source from[RFL_LEDGER_NCOLUMNS];
	bool more = true;
	enum rfl_rc rc;

	take_known_names(csv, from);
	rc = map ? rfl_column_map_bind(map, csv, from, err) : check_kind(csv, err);
	if (rc == RFL_OK)
		rc = check_needed(csv, from, metric, roofs, err);
	while (rc == RFL_OK && more)
		rc = read_batch(csv, from, metric, to, &more, err);
	if (rc == RFL_OK)
		note_sources(csv, from, notes);
	return rc;
}

enum rfl_rc rfl_foreign_read_table(struct rfl_csv *csv, const struct rfl_column_map *map,
				   const struct rfl_ledger_metric *metric, bool roofs,
				   const bool wanted[RFL_LEDGER_NCOLUMNS], struct rfl_ledger *to,
				   struct rfl_buf *notes, struct rfl_err *err)
{
	if (rfl_foreign_is_ours(csv))
		return read_ours(csv, map, wanted, to, err);
	return read_others(csv, map, metric, roofs, to, notes, err);
}

/* A ledger of ours that a power cut tore is read without the torn rows, as everywhere.
 * @param why  what is in the way of reading it as it is */
static enum rfl_rc read_whole_rows(const char *path, const struct rfl_err *why,
				   const struct rfl_column_map *map,
				   const bool wanted[RFL_LEDGER_NCOLUMNS], struct rfl_ledger *to,
				   struct rfl_err *err)
{
	struct rfl_csv *csv = NULL;
	struct rfl_buf text;
	uint64_t hash;
	enum rfl_rc rc;

	rfl_buf_init(&text, RFL_LEDGER__BYTES_MAX);
	rc = rfl_ledger__open_whole(path, why, &text, &hash, &csv, err);
	if (rc == RFL_OK)
		rc = read_ours(csv, map, wanted, to, err);
	if (rc == RFL_OK)
		to->torn = true;
	if (rc == RFL_OK && to->hashed)
		rfl_hash64_text(hash, to->hash);
	rfl_csv_close(csv);
	rfl_buf_fini(&text);
	return rc;
}

enum rfl_rc rfl_foreign_read(const char *path, const struct rfl_column_map *map,
			     const struct rfl_ledger_metric *metric, bool roofs,
			     const bool wanted[RFL_LEDGER_NCOLUMNS], struct rfl_ledger *to,
			     struct rfl_buf *notes, struct rfl_err *err)
{
	struct rfl_err why = RFL_ERR_INIT;
	struct rfl_csv *csv = NULL;
	size_t before = to->nrows;
	enum rfl_rc rc;
	int lock = -1;

	rc = rfl_file_lock_shared(path, &lock, &why); /* an append is over, or has not begun */
	if (rc == RFL_OK)
		rc = rfl_csv_open(path, &csv, &why);
	if (rc == RFL_OK)
		rc = rfl_foreign_read_table(csv, map, metric, roofs, wanted, to, notes, &why);
	if (rc == RFL_EFORMAT && csv && rfl_foreign_is_ours(csv)) {
		to->nrows = before; /* the texts of the others stay in its arena */
		if (to->again)
			to->again(to);
		rc = read_whole_rows(path, &why, map, wanted, to, err);
	} else if (rc != RFL_OK) {
		rc = rfl_fail(err, rc, why.native, "%s", why.msg);
	}
	rfl_csv_close(csv);
	if (lock >= 0)
		(void)!rfl_file_unlock(lock, path, NULL); /* nothing was written */
	return rc;
}
