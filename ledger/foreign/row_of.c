/*
 * row_of.c - words and numbers of other programs. A word that is not known here stays as it
 * is.
 */
#include "ledger/foreign/row_of.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "complexity/zoo.h"
#include "ledger/label.h"
#include "ledger/file/texts.h"

struct word {
	const char *theirs, *ours;
};

static const struct word precisions[] = {
	{ "float32", "fp32" },       { "float", "fp32" },         { "f32", "fp32" },
	{ "full", "fp32" },          { "float16", "fp16" },       { "half", "fp16" },
	{ "f16", "fp16" },           { "bfloat16", "bf16" },      { "mixed", "amp" },
	{ "autocast", "amp" },       { "torch.float32", "fp32" }, { "torch.bfloat16", "bf16" },
	{ "torch.float16", "fp16" },
};

static const struct word layouts[] = {
	{ "1", "nhwc" },
	{ "true", "nhwc" },
	{ "yes", "nhwc" },
	{ "channels_last", "nhwc" },
	{ "channels-last", "nhwc" },
	{ "0", "nchw" },
	{ "false", "nchw" },
	{ "no", "nchw" },
	{ "contiguous", "nchw" },
	{ "contiguous_format", "nchw" },
};

static const struct word statuses[] = {
	{ "success", "ok" },   { "succeeded", "ok" }, { "done", "ok" },
	{ "completed", "ok" }, { "complete", "ok" },  { "passed", "ok" },
	{ "finished", "ok" },  { "pass", "ok" },      { "0", "ok" },
};

static enum rfl_rc set(struct rfl_ledger *l, char **field, const char *text, struct rfl_err *err)
{
	char *copy = rfl_ledger__text(l->texts, text, true);

	if (!copy)
		return rfl_fail(err, RFL_ENOMEM, 0, "ledger: out of memory");
	*field = copy;
	return RFL_OK;
}

/* In small letters, and by our word for it. */
static enum rfl_rc translate(struct rfl_ledger *l, char **field, const struct word *words, size_t n,
			     struct rfl_err *err)
{
	char low[64];
	size_t len = *field ? strlen(*field) : 0;

	if (len == 0 || len >= sizeof(low))
		return RFL_OK;
	for (size_t i = 0; i <= len; i++)
		low[i] = (char)tolower((unsigned char)(*field)[i]);
	for (size_t i = 0; i < n; i++)
		if (strcmp(words[i].theirs, low) == 0)
			return set(l, field, words[i].ours, err);
	return strcmp(low, *field) == 0 ? RFL_OK : set(l, field, low, err);
}

/* Letters and digits only: "ResNet-50" and "resnet50" are one. */
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

static enum rfl_rc name_model(struct rfl_ledger *l, struct rfl_ledger_row *row, struct rfl_err *err)
{
	const struct rfl_zoo_model *m;

	for (size_t i = 0; row->model && (m = rfl_zoo_at(i)) != NULL; i++)
		if (alike(m->name, row->model))
			return strcmp(m->name, row->model) == 0 ? RFL_OK
								: set(l, &row->model, m->name, err);
	return RFL_OK;
}

/* What the label says of what no column does. */
static enum rfl_rc take_label(struct rfl_ledger *l, struct rfl_ledger_row *row, struct rfl_err *err)
{
	struct rfl_label parts;
	enum rfl_rc rc = RFL_OK;

	if (!row->label)
		return RFL_OK;
	rfl_label_parse(row->label, row->model, &parts);
	if (!row->model && parts.model[0])
		rc = set(l, &row->model, parts.model, err);
	if (rc == RFL_OK && !row->precision && parts.precision[0])
		rc = set(l, &row->precision, parts.precision, err);
	if (rc == RFL_OK && !row->mode && parts.mode[0])
		rc = set(l, &row->mode, parts.mode, err);
	if (row->batch < 0)
		row->batch = parts.batch;
	if (row->repeat < 0)
		row->repeat = parts.run;
	return rc;
}

static enum rfl_rc take_env(const char *path, struct rfl_ledger *l, struct rfl_ledger_row *row,
			    struct rfl_err *err)
{
	char env[49];
	enum rfl_rc rc = rfl_label_env(row->env, row->label, row->model,
				       row->backend ? row->backend : "", env, err);

	if (rc != RFL_OK) {
		rfl_err_prefix(err, "%s:%zu", path, row->line);
		if (err)
			err->rc = RFL_EFORMAT;
		return RFL_EFORMAT;
	}
	return env[0] ? set(l, &row->env, env, err) : RFL_OK;
}

void rfl_foreign__derive(struct rfl_ledger_row *row)
{
	double batch = row->batch > 0 ? (double)row->batch : (double)NAN;
	double iters = row->iters > 0 ? (double)row->iters : (double)NAN;
	double step = 1000 * row->wall_s / iters;

	if (isnan(step))
		step = isnan(row->step_ms_mean) ? row->step_ms_median : row->step_ms_mean;
	if (isnan(row->samples_per_s) && step > 0)
		row->samples_per_s = 1000 * batch / step;
	if (isnan(row->step_ms_mean) && row->samples_per_s > 0)
		row->step_ms_mean = 1000 * batch / row->samples_per_s;
}

static enum rfl_rc untold(const char *path, const struct rfl_ledger_row *row, const char *what,
			  struct rfl_err *err)
{
	return rfl_fail(err, RFL_EFORMAT, 0,
			"%s:%zu: neither a column nor the label '%.100s' tells the %s; add --map "
			"%s=COLUMN or --map '%s=\"constant\"'",
			path, row->line, row->label ? row->label : "", what, what, what);
}

static enum rfl_rc check_told(const char *path, const struct rfl_ledger_row *row,
			      struct rfl_err *err)
{
	if (!row->model)
		return untold(path, row, "model", err);
	if (!row->precision)
		return untold(path, row, "precision", err);
	if (row->batch < 1)
		return untold(path, row, "batch", err);
	if (!row->env)
		return untold(path, row, "env", err);
	return RFL_OK;
}

enum rfl_rc rfl_foreign__settle(const char *path, struct rfl_ledger *ledger, size_t i,
				const struct rfl_ledger_metric *metric, bool status,
				struct rfl_err *err)
{
	struct rfl_ledger_row *row = &ledger->rows[i];
	enum rfl_rc rc = name_model(ledger, row, err);

	if (rc == RFL_OK)
		rc = translate(ledger, &row->precision, precisions, RFL_ARRAY_LEN(precisions), err);
	if (rc == RFL_OK)
		rc = translate(ledger, &row->layout, layouts, RFL_ARRAY_LEN(layouts), err);
	if (rc == RFL_OK)
		rc = translate(ledger, &row->status, statuses, RFL_ARRAY_LEN(statuses), err);
	if (rc == RFL_OK)
		rc = translate(ledger, &row->backend, NULL, 0, err);
	if (rc == RFL_OK)
		rc = take_label(ledger, row, err);
	if (rc == RFL_OK)
		rc = take_env(path, ledger, row, err);
	if (rc != RFL_OK)
		return rc;
	rfl_foreign__derive(row);
	if (!status && !isnan(rfl_ledger_metric_value(metric, row)))
		rc = set(ledger, &row->status, "ok", err);
	else if (!row->status)
		rc = set(ledger, &row->status, "unknown", err);
	return rc == RFL_OK ? check_told(path, row, err) : rc;
}
