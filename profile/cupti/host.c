/*
 * host.c - the part of CUPTI that needs no GPU: the metrics of a chip, which of them can be counted
 * together and in how many passes, and the evaluation of counter data.
 */
#include "profile/cupti/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

struct rfl_cupti_host {
	struct rfl_cupti *lib;
	char *chip;
	const uint8_t *availability;          /* borrowed */
	struct rfl_cupti_host_object *host;   /* for queries */
	struct rfl_cupti_host_object *counts; /* with the metrics of the last configuration */
};

enum rfl_rc rfl_cupti_chips(struct rfl_cupti *c, const char *const **ret, size_t *n,
			    struct rfl_err *err)
{
	struct rfl_cupti_host_chips p = { RFL_CUPTI_SIZED(host_chips) };
	enum rfl_rc rc = RFL_CUPTI_CALL(c, host_chips, err, &p);

	if (rc != RFL_OK)
		return rc;
	*ret = p.names;
	*n = p.n;
	return RFL_OK;
}

/* ---- host objects ---- */

static struct rfl_cupti_host_initialize initial(const struct rfl_cupti_host *h)
{
	return (struct rfl_cupti_host_initialize){
		RFL_CUPTI_SIZED(host_initialize),
		.type = RFL_CUPTI_TYPE_RANGE_PROFILER,
		.chip = h->chip,
		.availability = h->availability,
	};
}

static void stop(struct rfl_cupti_host *h, struct rfl_cupti_host_object *host)
{
	struct rfl_cupti_host_deinitialize p = { RFL_CUPTI_SIZED(host_deinitialize), .host = host };

	if (host)
		(void)h->lib->calls.host_deinitialize(&p);
}

static enum rfl_rc check_chip(struct rfl_cupti *c, const char *chip, struct rfl_err *err)
{
	const char *const *chips = NULL;
	RFL_AUTO(buf) known = { .max = RFL_ERR_MSG_MAX / 2 };
	size_t n = 0, at = 0;
	enum rfl_rc rc = rfl_cupti_chips(c, &chips, &n, err);

	for (; at < n && strcmp(chips[at], chip) != 0; at++)
		rfl_buf_printf(&known, "%s%s", at ? " " : "", chips[at]);
	if (rc == RFL_OK && at == n)
		rc = rfl_fail(err, RFL_ENOTFOUND, RFL_CUPTI_INVALID_CHIP_NAME,
			      "no chip '%s' in %s; choose one of %s", chip, c->path,
			      rfl_buf_str(&known));
	return rc;
}

enum rfl_rc rfl_cupti_host_open(struct rfl_cupti *c, const char *chip, const uint8_t *availability,
				struct rfl_cupti_host **ret, struct rfl_err *err)
{
	enum rfl_rc rc = check_chip(c, chip, err);

	if (rc != RFL_OK)
		return rc;
	struct rfl_cupti_host *h = rfl_alloc_array(1, sizeof(*h));
	h->chip = rfl_strdup(chip);
	h->lib = c;
	h->availability = availability;
	struct rfl_cupti_host_initialize p = initial(h);
	const int result = c->calls.host_initialize(&p);
	if (result == RFL_CUPTI_NOT_SUPPORTED)
		rc = rfl_fail(err, RFL_EUNSUPPORTED, result,
			      "%s: %s has no range profiler for this chip; use another CUPTI", chip,
			      c->path);
	else
		rc = rfl_cupti_check(c, result, rfl_cupti_symbols.host_initialize, err);
	if (rc == RFL_OK) {
		h->host = p.host;
		*ret = h;
	} else {
		rfl_cupti_host_close(h);
	}
	return rc;
}

void rfl_cupti_host_close(struct rfl_cupti_host *h)
{
	if (!h)
		return;
	stop(h, h->counts);
	stop(h, h->host);
	free(h->chip);
	free(h);
}

/* ---- metrics ---- */

enum rfl_rc rfl_cupti_metrics(struct rfl_cupti_host *h, const char ***ret, size_t *n,
			      struct rfl_err *err)
{
	const char **names = NULL;
	size_t all = 0, cap = 0;
	enum rfl_rc rc = RFL_OK;

	for (int type = 0; type < RFL_CUPTI_METRIC_TYPE_COUNT; type++) {
		struct rfl_cupti_host_base_metrics p = {
			RFL_CUPTI_SIZED(host_base_metrics),
			.host = h->host,
			.type = type,
		};

		if ((rc = RFL_CUPTI_CALL(h->lib, host_base_metrics, err, &p)) != RFL_OK) {
			free(names);
			return rc;
		}
		rfl_reserve(&names, &cap, all + p.n + 1);
		for (size_t i = 0; i < p.n; i++)
			names[all++] = p.names[i];
		names[all] = NULL;
	}
	*ret = names;
	*n = all;
	return RFL_OK;
}

static enum rfl_rc no_such_metric(struct rfl_cupti_host *h, const char *metric, struct rfl_err *err)
{
	const char *tail = strstr(metric, "__");
	const char **names = NULL;
	RFL_AUTO(buf) near = { .max = RFL_ERR_MSG_MAX / 2 };
	size_t n = 0;
	char base[256]; /* without the rollup: ".sum", ".avg.per_second" */

	if (!err) /* only the message needs similar names */
		return RFL_ENOTFOUND;
	if (rfl_metric_is_legacy(metric, strlen(metric)))
		return rfl_fail(
			err, RFL_ENOTFOUND, RFL_CUPTI_INVALID_METRIC_NAME,
			"%s has no metric '%s', a name from nvprof that no chip since Turing "
			"supports; find its replacement with 'roofline counters list --chip %s'",
			h->chip, metric, h->chip);
	tail = tail ? tail : metric;
	snprintf(base, sizeof(base), "%.*s", (int)(tail - metric) + (int)strcspn(tail, "."),
		 metric);
	if (rfl_cupti_metrics(h, &names, &n, NULL) == RFL_OK && n > 0)
		(void)rfl_text_suggest(base, names, 4, &near);
	enum rfl_rc rc = rfl_fail(err, RFL_ENOTFOUND, RFL_CUPTI_INVALID_METRIC_NAME,
				  "%s has no metric '%s'%s%s", h->chip, metric,
				  near.len ? "; similar: " : "", rfl_buf_str(&near));
	free(names);
	return rc;
}

static int properties(struct rfl_cupti_host *h, const char *metric,
		      struct rfl_cupti_host_metric_properties *ret)
{
	*ret = (struct rfl_cupti_host_metric_properties){
		RFL_CUPTI_SIZED(host_metric_properties),
		.host = h->host,
		.metric = metric,
	};
	return h->lib->calls.host_metric_properties(ret);
}

/* Find a rollup that makes `metric` a valid name, among the types `first` to `last`. */
static bool with_rollup(struct rfl_cupti_host *h, const char *metric, int first, int last,
			struct rfl_buf *name, struct rfl_cupti_host_metric_properties *ret)
{
	static const char *const rollups[RFL_CUPTI_METRIC_TYPE_COUNT] = {
		".sum", ".ratio", ".avg.pct_of_peak_sustained_elapsed"
	};

	for (int type = first; type <= last; type++) {
		rfl_buf_reset(name);
		rfl_buf_printf(name, "%s%s", metric, rollups[type]);
		if (!name->failed && properties(h, rfl_buf_str(name), ret) == RFL_CUPTI_SUCCESS)
			return true;
	}
	return false;
}

/* A rollup is missing if adding one makes the name valid. CUPTI 13, unlike 12, also describes names
 * without a rollup, but neither version can count them. */
enum rfl_rc rfl_cupti_metric(struct rfl_cupti_host *h, const char *metric,
			     struct rfl_cupti_host_metric_properties *ret, struct rfl_err *err)
{
	struct rfl_cupti_host_metric_properties p, other;
	const int result = properties(h, metric, &p);
	const bool unknown = result == RFL_CUPTI_INVALID_METRIC_NAME;
	const int first = unknown ? 0 : p.type;
	const int last = unknown ? RFL_CUPTI_METRIC_TYPE_COUNT - 1 : p.type;
	RFL_AUTO(buf) name = { .max = RFL_ERR_MSG_MAX };
	enum rfl_rc rc = RFL_OK;

	if (unknown && !err)
		return RFL_ENOTFOUND;
	if (!unknown)
		rc = rfl_cupti_check(h->lib, result, rfl_cupti_symbols.host_metric_properties, err);
	if (rc == RFL_OK && first >= 0 && last < RFL_CUPTI_METRIC_TYPE_COUNT &&
	    with_rollup(h, metric, first, last, &name, &other))
		rc = rfl_fail(err, RFL_ENOTFOUND, RFL_CUPTI_INVALID_METRIC_NAME,
			      "%s: '%s' needs a rollup, for example %s", h->chip, metric,
			      rfl_buf_str(&name));
	else if (unknown)
		rc = no_such_metric(h, metric, err);
	if (rc == RFL_OK && ret)
		*ret = p;
	return rc;
}

enum rfl_rc rfl_cupti_describe(struct rfl_cupti_host *h, const char *base,
			       struct rfl_cupti_host_metric_properties *ret, struct rfl_err *err)
{
	RFL_AUTO(buf) name = { .max = RFL_ERR_MSG_MAX };

	bool found = with_rollup(h, base, 0, RFL_CUPTI_METRIC_TYPE_COUNT - 1, &name, ret);
	return found ? RFL_OK : no_such_metric(h, base, err);
}

/* ---- sets of metrics ---- */

/* A host object with metrics added, and its config image. */
struct attempt {
	struct rfl_cupti_host_object *host;
	uint8_t *image;
	size_t size;
};

/* Each attempt needs a new object: after refusing one metric, an object refuses all others. */
static enum rfl_rc attempt(struct rfl_cupti_host *h, const char *const *metrics, size_t n,
			   struct attempt *ret, struct rfl_err *err)
{
	struct rfl_cupti_host_initialize init = initial(h);
	struct rfl_cupti_host_add_metrics add = {
		RFL_CUPTI_SIZED(host_add_metrics),
		.names = (const char **)metrics, /* read only */
		.n = n,
	};
	struct rfl_cupti_host_config_size size = { RFL_CUPTI_SIZED(host_config_size) };
	struct rfl_cupti_host_config_image image = { RFL_CUPTI_SIZED(host_config_image) };
	enum rfl_rc rc;

	*ret = (struct attempt){ .host = NULL };
	if ((rc = RFL_CUPTI_CALL(h->lib, host_initialize, err, &init)) != RFL_OK)
		return rc;
	ret->host = add.host = size.host = image.host = init.host;
	if ((rc = RFL_CUPTI_CALL(h->lib, host_add_metrics, err, &add)) != RFL_OK ||
	    (rc = RFL_CUPTI_CALL(h->lib, host_config_size, err, &size)) != RFL_OK ||
	    (rc = rfl_cupti_image(size.size, &ret->image, err)) != RFL_OK)
		return rc;
	ret->size = image.size = size.size;
	image.image = ret->image;
	return RFL_CUPTI_CALL(h->lib, host_config_image, err, &image);
}

static void release(struct rfl_cupti_host *h, struct attempt *a)
{
	stop(h, a->host);
	free(a->image);
}

enum rfl_rc rfl_cupti_config(struct rfl_cupti_host *h, const char *const *metrics, size_t n,
			     uint8_t **image, size_t *image_size, size_t *passes, size_t *refused,
			     struct rfl_err *err)
{
	struct rfl_cupti_host_passes p = { RFL_CUPTI_SIZED(host_passes) };
	struct rfl_err why = RFL_ERR_INIT;
	struct attempt a = { .host = NULL };
	enum rfl_rc rc;

	if (n == 0)
		return rfl_fail(err, RFL_EINVAL, 0, "%s: no metrics to count", h->chip);
	for (size_t i = 0; i < n; i++) {
		rc = rfl_cupti_metric(h, metrics[i], NULL, err);
		if (rc != RFL_OK && refused)
			*refused = i;
		if (rc != RFL_OK)
			return rc;
	}
	rc = attempt(h, metrics, n, &a, &why);
	if (why.native == RFL_CUPTI_NOT_SUPPORTED || why.native == RFL_CUPTI_UNKNOWN ||
	    why.native == RFL_CUPTI_INVALID_METRIC_NAME) {
		/* find the first metric that is refused together with those before it */
		const int call = (int)strcspn(why.msg, ":");
		size_t taken = 0;

		while (n - taken > 1) {
			const size_t k = taken + (n - taken) / 2;
			struct attempt part;

			if (attempt(h, metrics, k, &part, NULL) == RFL_OK)
				taken = k;
			else
				n = k;
			release(h, &part);
		}
		if (refused)
			*refused = taken;
		if (taken == 0)
			rc = rfl_fail(err, RFL_EUNSUPPORTED, why.native,
				      "%s cannot count '%s' (%.*s: %d)", h->chip, metrics[0], call,
				      why.msg, why.native);
		else
			rc = rfl_fail(err, RFL_EUNSUPPORTED, why.native,
				      "%s cannot count '%s' together with '%s'%s (%.*s: %d): count "
				      "it separately",
				      h->chip, metrics[taken], metrics[0],
				      taken > 1 ? " and the others before it" : "", call, why.msg,
				      why.native);
	} else if (rc != RFL_OK) {
		(void)rfl_err_pass(err, &why);
	}
	p.size = a.size;
	p.image = a.image;
	if (rc != RFL_OK || (rc = RFL_CUPTI_CALL(h->lib, host_passes, err, &p)) != RFL_OK) {
		release(h, &a);
		return rc;
	}
	stop(h, h->counts);
	h->counts = a.host;
	*image = a.image;
	*image_size = a.size;
	*passes = p.passes;
	return RFL_OK;
}

enum rfl_rc rfl_cupti_passes(struct rfl_cupti_host *h, const char *const *metrics, size_t n,
			     size_t *ret, size_t *refused, struct rfl_err *err)
{
	RFL_AUTOFREE uint8_t *image = NULL;
	size_t size = 0;
	enum rfl_rc rc = rfl_cupti_config(h, metrics, n, &image, &size, ret, refused, err);

	return rc;
}

enum rfl_rc rfl_cupti_values(struct rfl_cupti_host *h, const uint8_t *data, size_t data_size,
			     size_t range, const char *const *metrics, size_t n, double *ret,
			     struct rfl_err *err)
{
	struct rfl_cupti_host_values p = {
		RFL_CUPTI_SIZED(host_values),
		.host = h->counts,
		.data = data,
		.data_size = data_size,
		.range = range,
		.names = (const char **)metrics, /* read only */
		.n = n,
		.values = ret,
	};

	return RFL_CUPTI_CALL(h->lib, host_values, err, &p);
}
