/*
 * columns.c - the columns of the ledger, the metrics computed from them, and the fields by which
 * rows are compared. The rows are filled in by runner/run/row.c.
 */
#include "ledger/facts.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"

#define COLUMN(kind, name, meaning) RFL_FIELD(kind, struct rfl_ledger_row, name, meaning),

const struct rfl_field rfl_ledger_fields[RFL_LEDGER_NREAD] = { RFL_LEDGER_COLUMNS(
	COLUMN) RFL_LEDGER_FOREIGN_COLUMNS(COLUMN) };

static uint64_t hash_column(uint64_t h, const struct rfl_field *f, const struct rfl_ledger_row *row)
{
	const char *text;

	if (f->kind != RFL_FIELD_TEXT) /* A floating-point number is hashed by its bits. */
		return rfl_hash64(h, rfl_field_int_at(f, row), sizeof(int64_t));
	text = *rfl_field_text_at(f, row) ? *rfl_field_text_at(f, row) : "";
	return rfl_hash64(h, text, strlen(text) + 1);
}

uint64_t rfl_ledger_hash(const enum rfl_ledger_at *columns, size_t n,
			 const struct rfl_ledger_row *row)
{
	uint64_t h = 0;

	for (size_t i = 0; i < n; i++)
		h = hash_column(h, &rfl_ledger_fields[columns[i]], row);
	return h;
}

bool rfl_ledger_same(const enum rfl_ledger_at *columns, size_t n, const struct rfl_ledger_row *a,
		     const struct rfl_ledger_row *b)
{
	size_t i = 0;

	while (i < n && rfl_field_same(&rfl_ledger_fields[columns[i]], a, b))
		i++;
	return i == n;
}

size_t rfl_ledger_column_find(const char *name)
{
	return rfl_fields_find(rfl_ledger_fields, RFL_LEDGER_NCOLUMNS, name);
}

void rfl_ledger_want(const char *columns, bool wanted[RFL_LEDGER_NCOLUMNS])
{
	struct rfl_span rest = rfl_span_of(columns), name;

	while (rfl_span_next_word(&rest, &name)) {
		size_t i = 0;

		while (i < RFL_LEDGER_NCOLUMNS && !rfl_span_is(name, rfl_ledger_fields[i].name))
			i++;
		assert(i < RFL_LEDGER_NCOLUMNS);
		wanted[i] = true;
	}
}

void rfl_ledger_row_init(struct rfl_ledger_row *row)
{
	row->line = 0;
	rfl_fields_clear(rfl_ledger_fields, RFL_LEDGER_NREAD, row);
}

void rfl_ledger_row_fini(struct rfl_ledger_row *row)
{
	rfl_fields_free(rfl_ledger_fields, RFL_LEDGER_NCOLUMNS, row);
}

/* clang-format off */
/* X(name, title, column, instead, speed) */
#define SPEEDS(X) \
	X("samples_per_s", "samples/s over the whole window", samples_per_s, samples_per_s, 1) \
	X("compute_samples_per_s", "samples/s, without waiting for data", compute_samples_per_s, compute_samples_per_s, 1) \
	X("step_ms", "median step (the mean if no median is known), ms", step_ms_median, step_ms_mean, -1) \
	X("tokens_per_s", "tokens/s", tokens_per_s, tokens_per_s, 1) \
	X("tflops", "TFLOP/s of the median step", tflops, tflops, 1) \
	X("fwd_ms", "forward, ms per step", fwd_ms_mean, fwd_ms_mean, -1) \
	X("bwd_ms", "backward, ms per step", bwd_ms_mean, bwd_ms_mean, -1) \
	X("opt_ms", "optimizer, ms per step", opt_ms_mean, opt_ms_mean, -1) \
	X("data_wait_ms", "waiting for data, ms per step", data_wait_ms_mean, data_wait_ms_mean, -1) \
	X("upload_ms", "upload, ms per step", upload_ms_mean, upload_ms_mean, -1) \
	X("ttfb_ms", "first step, ms", ttfb_ms, ttfb_ms, -1)
#define OTHERS(X) \
	X("energy_j_per_step", "energy, J per step", energy_j_per_step, energy_j_per_step, 0) \
	X("samples_per_j", "samples per J", samples_per_j, samples_per_j, 0) \
	X("power_w", "power, W", power_mean_w, power_mean_w, 0) \
	X("device_memory_peak_bytes", "device memory, bytes", device_memory_peak_bytes, device_memory_peak_bytes, 0) \
	X("mem_alloc_peak_bytes", "allocated memory, bytes", mem_alloc_peak_bytes, mem_alloc_peak_bytes, 0) \
	X("host_peak_bytes", "host memory, bytes", host_peak_bytes, host_peak_bytes, 0) \
	X("loss_last", "last loss", loss_last, loss_last, 0)

#define ROW(n, t, c, i, s) \
	{ .name = n, .title = t, .column = RFL_LEDGER_AT_##c, .instead = RFL_LEDGER_AT_##i, .speed = s },
#define NAME(n, t, c, i, s) n,
/* clang-format on */

const struct rfl_ledger_metric rfl_ledger_metrics[] = { SPEEDS(ROW) OTHERS(ROW){ .name = NULL } };
const char *const rfl_ledger_metric_names[] = { SPEEDS(NAME) OTHERS(NAME) NULL };
const char *const rfl_ledger_speed_names[] = { SPEEDS(NAME) NULL };

double rfl_ledger_metric_value(const struct rfl_ledger_metric *m, const struct rfl_ledger_row *row)
{
	double value = rfl_field_number(&rfl_ledger_fields[m->column], row);

	return isnan(value) ? rfl_field_number(&rfl_ledger_fields[m->instead], row) : value;
}

/* clang-format off */
#define FACT(n, i, f) \
	{ .name = #n, .column = RFL_LEDGER_AT_##n, .identity = RFL_IDENTITY_##i, .follows = f },
#define FACT_NAME(n, i, f) #n,
/* clang-format on */

const struct rfl_fact rfl_facts[] = { RFL_CONFIG_FACTS(FACT) RFL_NOTED_FACTS(FACT) };
const char *const rfl_fact_names[] = { RFL_CONFIG_FACTS(FACT_NAME) NULL };
const size_t rfl_nfacts = RFL_ARRAY_LEN(rfl_facts);
_Static_assert(RFL_ARRAY_LEN(rfl_facts) <= RFL_FACTS_MAX, "more fields than RFL_FACTS_MAX");

static const struct rfl_field *field_of(const struct rfl_fact *f)
{
	return &rfl_ledger_fields[f->column];
}

size_t rfl_fact_find(enum rfl_ledger_at column)
{
	size_t i = 0;

	while (i < rfl_nfacts && rfl_facts[i].column != column)
		i++;
	return i;
}

bool rfl_fact_known(const struct rfl_fact *f, const struct rfl_ledger_row *row)
{
	return rfl_field_known(field_of(f), row);
}

const char *rfl_facts_lack(const struct rfl_ledger_row *row)
{
	if (!row->model)
		return "model";
	if (!row->precision)
		return "precision";
	if (row->batch < 1)
		return "batch";
	return row->env ? NULL : "env";
}

bool rfl_fact_same(const struct rfl_fact *f, const struct rfl_ledger_row *a,
		   const struct rfl_ledger_row *b)
{
	return rfl_field_same(field_of(f), a, b);
}

bool rfl_fact_follows(const struct rfl_fact *f, enum rfl_ledger_at by)
{
	struct rfl_span rest = rfl_span_of(f->follows), name;

	while (rfl_span_next_word(&rest, &name))
		if (rfl_span_is(name, rfl_ledger_fields[by].name))
			return true;
	return false;
}

unsigned rfl_facts_identity(const struct rfl_ledger_row *row)
{
	return row->epochs > 0 ? RFL_IDENTITY_BOTH : RFL_IDENTITY_SPEED;
}

bool rfl_fact_agree(const struct rfl_fact *f, const struct rfl_ledger_row *a,
		    const struct rfl_ledger_row *b)
{
	return rfl_fact_same(f, a, b) || !rfl_fact_known(f, a) || !rfl_fact_known(f, b);
}

bool rfl_facts_agree(const struct rfl_ledger_row *a, const struct rfl_ledger_row *b,
		     unsigned identity)
{
	for (size_t i = 0; i < rfl_nfacts; i++)
		if ((rfl_facts[i].identity & identity) && !rfl_fact_agree(&rfl_facts[i], a, b))
			return false;
	return true;
}

static bool has_hash(const struct rfl_ledger_row *row)
{
	return row->config_hash && row->config_hash[0];
}

static bool equal(const struct rfl_ledger_row *a, const struct rfl_ledger_row *b, unsigned identity)
{
	if (has_hash(a) != has_hash(b) || !rfl_text_same(a->env, b->env) ||
	    (has_hash(a) && !rfl_text_same(a->config_hash, b->config_hash)))
		return false;
	for (size_t i = 0; i < rfl_nfacts; i++)
		if ((rfl_facts[i].identity & identity) && !rfl_fact_same(&rfl_facts[i], a, b))
			return false;
	return true;
}

bool rfl_facts_repeats(const void *a, const void *b)
{
	return equal(a, b, rfl_facts_identity(a));
}

bool rfl_facts_repeat_losses(const void *a, const void *b)
{
	return equal(a, b, RFL_IDENTITY_BOTH);
}

uint64_t rfl_facts_hash(const void *item)
{
	const struct rfl_ledger_row *row = item;
	uint64_t h = 0;

	if (has_hash(row))
		return rfl_hash64(0, row->config_hash, strlen(row->config_hash));
	for (size_t i = 0; i < rfl_nfacts; i++)
		if (rfl_facts[i].identity & RFL_IDENTITY_SPEED)
			h = hash_column(h, field_of(&rfl_facts[i]), row);
	return h;
}

void rfl_facts_apart_add(struct rfl_facts_apart *a, const struct rfl_ledger_row *row)
{
	const unsigned identity = a->losses ? RFL_IDENTITY_BOTH : rfl_facts_identity(row);
	const bool ok = rfl_text_same(row->status, "ok");

	for (size_t i = 0; i < rfl_nfacts; i++) {
		if (!(rfl_facts[i].identity & identity) ||
		    (!ok && !rfl_fact_known(&rfl_facts[i], row)))
			continue;
		if (!a->first[i])
			a->first[i] = row;
		else if (!rfl_fact_same(&rfl_facts[i], a->first[i], row))
			a->differs[i] = true;
	}
}

bool rfl_facts_apart_told(const struct rfl_facts_apart *a, size_t i)
{
	const enum rfl_ledger_at column = rfl_facts[i].column;
	size_t id = 0;

	/* the plugin's name contains its engine and the version that it was built against */
	while (rfl_facts[id].column != RFL_LEDGER_AT_engine_id)
		id++;
	if (a->differs[id] &&
	    (column == RFL_LEDGER_AT_engine || column == RFL_LEDGER_AT_engine_version))
		return false;
	return a->differs[i] && column != RFL_LEDGER_AT_env && column != RFL_LEDGER_AT_batch &&
	       column != RFL_LEDGER_AT_micro_batch;
}

void rfl_facts_apart_put(const struct rfl_facts_apart *a, const struct rfl_ledger_row *row,
			 struct rfl_buf *out)
{
	char number[RFL_NUM_MAX];
	const char *before = "";

	for (size_t i = 0; i < rfl_nfacts; i++) {
		if (!rfl_facts_apart_told(a, i) || !rfl_fact_known(&rfl_facts[i], row))
			continue;
		rfl_buf_printf(out, "%s%s %s", before, rfl_facts[i].name,
			       rfl_field_write(field_of(&rfl_facts[i]), row, number));
		before = ", ";
	}
}

/* Words around values; other fields have their name first. */
static const struct {
	const char *name, *before, *one, *many; /* the text after 1 and after other values */
} phrases[] = {
	{ "precision", "", "", "" },
	{ "mode", "", "", "" },
	{ "layout", "", "", "" },
	{ "optimizer", "", "", "" },
	{ "backend", "", "", "" },
	{ "engine", "", "", "" },
	{ "engine_id", "", "", "" },
	{ "device_name", "", "", "" },
	{ "data_mode", "", "", "" },
	{ "data_name", "", "", "" },
	{ "data_samples", "", " sample", " samples" },
	{ "data_digest", "data ", "", "" },
	{ "net_digest", "network ", "", "" },
	{ "lr", "learning rate ", "", "" },
	{ "epochs", "", " epoch", " epochs" },
	{ "autocast", "", " autocast", " autocast" },
	{ "attention", "", " attention", " attention" },
	{ "optimizer_kernels", "", " kernels", " kernels" },
	{ "grad_clip", "gradients clipped to ", "", "" },
	{ "vocab", "vocabulary of ", "", "" },
	{ "classes", "", " class", " classes" },
	{ "warmup", "", " warm-up step", " warm-up steps" },
	{ "iters", "", " step", " steps" },
	{ "threads", "", " thread", " threads" },
	{ "workers", "", " worker", " workers" },
	{ "world_size", "", " process", " processes" },
	{ "img_size", "", " px", " px" },
	{ "context_length", "", " token", " tokens" },
	{ "past", "after ", " token", " tokens" },
	{ "weights", "", " weights", " weights" },
};

void rfl_fact_say(const char *name, const char *value, struct rfl_buf *out)
{
	if (strcmp(name, "data_mode") == 0 && strcmp(value, "imagefolder") == 0)
		value = "images";
	for (size_t i = 0; i < RFL_ARRAY_LEN(phrases); i++)
		if (strcmp(phrases[i].name, name) == 0) {
			rfl_buf_printf(out, "%s%s%s", phrases[i].before, value,
				       strcmp(value, "1") == 0 ? phrases[i].one : phrases[i].many);
			return;
		}
	rfl_buf_printf(out, "%s%s%s", name, *name ? " " : "", value);
}

/* The length of the ledger column at the beginning of a text, if followed by a space; 0 if none. */
static size_t key_at(const char *text)
{
	char key[RFL_FACT_NAME_MAX];
	const size_t len = strcspn(text, " ,");

	if (len >= sizeof(key) || text[len] != ' ')
		return 0;
	(void)snprintf(key, sizeof(key), "%.*s", (int)len, text);
	return rfl_ledger_column_find(key) < RFL_LEDGER_NCOLUMNS ? len : 0;
}

bool rfl_variant_next(const char **rest, char key[RFL_FACT_NAME_MAX], struct rfl_span *value)
{
	const char *text = *rest, *next;
	size_t len;

	if (!text || !*text)
		return false;
	len = key_at(text);
	next = strstr(text, ", ");
	/* a comma may belong to a value, such as a device's name */
	while (next && !key_at(next + 2))
		next = strstr(next + 2, ", ");
	(void)snprintf(key, RFL_FACT_NAME_MAX, "%.*s", (int)len, text);
	text += len ? len + 1 : 0;
	*value =
		(struct rfl_span){ .at = text, .len = next ? (size_t)(next - text) : strlen(text) };
	*rest = next ? next + 2 : NULL;
	return true;
}

void rfl_variant_say(const char *variant, struct rfl_buf *out)
{
	char key[RFL_FACT_NAME_MAX], text[256];
	const char *before = "";
	struct rfl_span value;

	while (rfl_variant_next(&variant, key, &value)) {
		(void)snprintf(text, sizeof(text), "%.*s", (int)value.len, value.at);
		rfl_buf_puts(out, before);
		rfl_fact_say(key, text, out);
		before = ", ";
	}
}
