/*
 * counters_ncu.c - the metrics of a chip as an argument of ncu.
 */
#include "cli/cmd/counters_ncu.h"

#include "base/log.h"
#include "cli/put.h"
#include "profile/cupti/plan.h"

/* What a roofline of training needs, as far as it exists. ncu runs each kernel once per pass. */
enum rfl_rc rfl_counters_print_ncu(struct rfl_cli *cli, const struct rfl_asked_chip *chip,
				   const char *precision, struct rfl_err *err)
{
	const unsigned wanted = RFL_SET_CORE | RFL_SET_FLOPS | (precision ? 0 : RFL_SET_AUDIT);
	struct rfl_metric_set set = { .n = 0 }, there = { .n = 0 };
	struct rfl_buf line;
	size_t passes = 0;
	enum rfl_rc rc = RFL_OK;

	rfl_metric_set_add_sets(&set, chip->f, wanted, precision);
	for (size_t i = 0; i < set.n; i++)
		if (!chip->host || rfl_cupti_metric(chip->host, set.names[i], NULL, NULL) == RFL_OK)
			there.names[there.n++] = set.names[i];
	if (there.n == 0)
		return rfl_fail(err, RFL_EUNSUPPORTED, 0, "%s: no metric is known for this chip",
				chip->name);
	if (chip->host)
		rc = rfl_cupti_passes(chip->host, there.names, there.n, &passes, NULL, err);
	if (rc != RFL_OK)
		return rc;
	rfl_buf_init(&line, 0);
	rfl_buf_puts(&line, "--metrics ");
	for (size_t i = 0; i < there.n; i++)
		rfl_buf_printf(&line, "%s%s", i ? "," : "", there.names[i]);
	rfl_buf_putc(&line, '\n');
	rc = rfl_cli_put(cli, &line, "the argument", err);
	rfl_buf_fini(&line);
	if (chip->host)
		rfl_log(RFL_LOG_INFO, "%zu metrics of %s in %zu passes, by %s", there.n, chip->name,
			passes, rfl_cupti_path(chip->lib));
	else
		rfl_log(RFL_LOG_INFO,
			"%zu metrics of %s; neither names nor passes were checked: %s", there.n,
			chip->name, chip->why.msg);
	return rc;
}
