/*
 * complexity_ask.c - what roofline complexity is asked beyond counting: whose memory to fit, which
 * ceilings to stand under.
 */
#include "cli/complexity.h"

#include <ctype.h>
#include <string.h>

#include "base/num.h"

/* Of a device that was named: its context with the kernels of the libraries, their workspaces, and
 * what the allocator cannot use. A size is taken as it is given. */
#define RESERVE_OF_DEVICE (INT64_C(1) << 30)

static enum rfl_rc bytes_of(const char *text, const char *option, int64_t *ret, struct rfl_err *err)
{
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc = rfl_num_parse_bytes(text, option, ret, &why);

	return rc == RFL_OK ? rc : rfl_fail(err, RFL_EUSAGE, 0, "%s", why.msg);
}

enum rfl_rc rfl_complexity_find_device(struct rfl_complexity_report *r, struct rfl_err *err)
{
	const struct rfl_complexity_args *a = r->args;
	int64_t reserve = 0;
	enum rfl_rc rc;

	if (a->reserve && !a->fit)
		return rfl_fail(err, RFL_EUSAGE, 0, "--reserve goes with --fit");
	if (!a->fit)
		return RFL_OK;
	r->device.name = a->fit;
	rc = bytes_of(a->fit, "--fit", &r->device.memory_bytes, err);
	if (rc == RFL_OK && a->reserve)
		rc = bytes_of(a->reserve, "--reserve", &reserve, err);
	if (rc != RFL_OK)
		return rc;
	if (reserve >= r->device.memory_bytes)
		return rfl_fail(err, RFL_EUSAGE, 0,
				"--reserve: %s leaves nothing of the %lld bytes of %s",
				a->reserve ? a->reserve : "1GiB", (long long)r->device.memory_bytes,
				r->device.name);
	r->device.reserve_bytes = reserve;
	return RFL_OK;
}

enum rfl_rc rfl_complexity_find_roof(struct rfl_complexity_report *r, struct rfl_err *err)
{
	const struct rfl_complexity_args *a = r->args;
	enum rfl_fusion fusion =
		r->options.fusion < 0 ? RFL_FUSION_FUSED : (enum rfl_fusion)r->options.fusion;
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc;

	if (!a->peaks && !a->env)
		return RFL_OK;
	if (!a->peaks || !a->env)
		return rfl_fail(err, RFL_EUSAGE, 0, "--peaks FILE and --env NAME go together");
	rc = rfl_cli_need_file(a->peaks, "roofline peaks measure --output FILE", err);
	if (rc == RFL_OK)
		rc = rfl_peaks_load(a->peaks, &r->peaks, err);
	if (rc != RFL_OK)
		return rc;
	rc = rfl_attain_find(r->peaks, a->env, r->options.precision, fusion, &r->roof, &why);
	if (rc == RFL_ENOTFOUND)
		return rfl_fail(err, RFL_EUSAGE, 0, "--precision: %s", why.msg);
	if (rc != RFL_OK)
		return rfl_fail(err, rc, why.native, "%s", why.msg);
	r->options.roof = &r->roof.base;
	return RFL_OK;
}
