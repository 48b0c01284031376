/* import_ert.c - roofline.json of the Empirical Roofline Toolkit, read and written. Its kernel is
 * compiled C: rates can be below loops in assembly. */
#include <string.h>

#include "base/json.h"
#include "peaks/import.h"
#include "peaks/peaks.h"

/* Version 1.1.0 has one rate, of doubles; later versions name the precision. Levels are named by
 * the order of their plateaus. */
static const struct rfl_peaks_name names[] = {
	{ "FP64 GFLOPs", "fp64.vector" },
	{ "FP32 GFLOPs", "fp32.vector" },
	{ "FP16 GFLOPs", "fp16.vector" },
	{ "GFLOPs", "fp64.vector" },
	{ "L1", "L1" },
	{ "L2", "L2" },
	{ "L3", "L3" },
	{ "DRAM", "DRAM" },
	{ NULL, NULL },
};

static bool detect(struct rfl_span head)
{
	return rfl_span_has(head, "\"empirical\"") && rfl_span_has(head, "\"gbytes\"");
}

static enum rfl_rc read_file(struct rfl_peaks_import *in)
{
	static const char *const parts[] = { "gflops", "gbytes" };
	const json_t *data, *empirical;
	const char *name;
	json_auto_t *root = NULL;
	double value;
	enum rfl_rc rc = rfl_json_loads(in->text.at, in->text.len, in->name, &root, in->err);

	empirical = json_object_get(root, "empirical");
	for (size_t p = 0; rc == RFL_OK && p < RFL_ARRAY_LEN(parts); p++) {
		data = json_object_get(json_object_get(empirical, parts[p]), "data");
		if (!json_is_array(data))
			rc = rfl_peaks_import_refuse(
				in, "/empirical/%s/data: must be a list of [name, value]",
				parts[p]);
		for (size_t i = 0; rc == RFL_OK && i < json_array_size(data); i++) {
			if (json_unpack(json_array_get(data, i), "[s, F!]", &name, &value) != 0)
				rc = rfl_peaks_import_refuse(
					in, "/empirical/%s/data/%zu: must be [name, value]",
					parts[p], i);
			else
				rc = rfl_peaks_import_put(in, rfl_peaks_import_key(in, name), name,
							  value, 0);
		}
	}
	return rc;
}

const struct rfl_peaks_format rfl_peaks_format_ert = {
	.name = "ert",
	.tool = "Empirical Roofline Toolkit",
	.detect = detect,
	.read = read_file,
	.names = names,
};

static json_t *pair(const char *name, const struct rfl_peak *peak, double cores)
{
	return json_pack("[s, f]", name, peak->value / 1e9 * cores);
}

json_t *rfl_peaks_export_ert(const struct rfl_peaks_env *env, struct rfl_buf *skipped)
{
	json_t *gflops = json_array(), *gbytes = json_array();

	for (size_t i = 0; i < env->ncompute; i++) {
		const struct rfl_peak_compute *c = &env->compute[i];
		const struct rfl_peaks_name *n = names;

		while (n->name && strcmp(n->key, c->key) != 0)
			n++;
		if (n->name && rfl_peak_usable(&c->peak))
			json_array_append_new(gflops, pair(n->name, &c->peak, 1));
		else
			rfl_buf_printf(skipped, "%s%s", skipped->len ? ", " : "", c->cell);
	}
	for (size_t i = 0; i < env->nlevels; i++) {
		const struct rfl_peak_level *l = &env->levels[i];
		const struct rfl_peaks_name *n = names;
		/* ERT's rates are for the whole machine */
		const double cores = strcmp(l->scope, "core") != 0 ? 1 : env->units;

		while (n->name && strcmp(n->key, strcmp(l->level, "HBM") ? l->level : "DRAM") != 0)
			n++;
		if (n->name && rfl_peak_usable(&l->peak) && cores > 0)
			json_array_append_new(gbytes, pair(n->name, &l->peak, cores));
		else
			rfl_buf_printf(skipped, "%s%s", skipped->len ? ", " : "", l->cell);
	}
	return json_pack("{s:{s:{s:s}, s:{s:o, s:{}}, s:{s:o, s:{}}}, s:{s:{s:[]}, s:{s:[]}}}",
			 "empirical", "metadata", "DEVICE",
			 env->device ? env->device : RFL_PEAKS_NO_DEVICE, "gflops", "data", gflops,
			 "metadata", "gbytes", "data", gbytes, "metadata", "spec", "gflops", "data",
			 "gbytes", "data");
}
