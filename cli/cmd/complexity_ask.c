/*
 * complexity_ask.c - what roofline complexity is asked beyond counting: whose memory to fit, which
 * ceilings to stand under.
 */
#include "cli/cmd/complexity.h"

#include <ctype.h>
#include <string.h>

#include "base/num.h"

enum { LEAST_MEMORY = 1 << 20 };

/*
 * Of a device that was named: a sixteenth of its memory, which error correction takes on cards with
 * GDDR and an allocator cannot use elsewhere, and 512 MiB for its context, with the kernels of the
 * libraries and their workspaces. A size is taken as it is given.
 */
static int64_t reserve_of_device(int64_t memory_bytes)
{
	return memory_bytes / 16 + (INT64_C(512) << 20);
}

static enum rfl_rc bytes_of(const char *text, const char *option, int64_t *ret, struct rfl_err *err)
{
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc = rfl_num_parse_bytes(text, option, ret, &why);

	return rc == RFL_OK ? rc : rfl_fail(err, RFL_EUSAGE, 0, "%s", why.msg);
}

/* "24" is a size that lost its unit: no network fits into 24 bytes. */
static enum rfl_rc by_size(struct rfl_complexity_report *r, const char *text, struct rfl_err *err)
{
	enum rfl_rc rc = bytes_of(text, "--fit", &r->device.memory_bytes, err);

	if (rc != RFL_OK || r->device.memory_bytes >= LEAST_MEMORY)
		return rc;
	return rfl_fail(err, RFL_EUSAGE, 0,
			"--fit: '%s' is %lld bytes, less than 1 MiB; a size has a unit, as 24GiB",
			text, (long long)r->device.memory_bytes);
}

static enum rfl_rc by_name(struct rfl_complexity_report *r, const char *name, struct rfl_err *err)
{
	const struct rfl_device_sheet *sheet = NULL;
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc = rfl_devices_load(&r->devices, err);

	if (rc != RFL_OK)
		return rc;
	rc = rfl_devices_find(r->devices, name, &sheet, &why);
	if (rc == RFL_ENOTFOUND)
		return rfl_fail(err, RFL_EUSAGE, 0, "--fit: %s (a size is 24GiB or 80e9)", why.msg);
	if (rc != RFL_OK)
		return rfl_fail(err, rc, why.native, "%s", why.msg);
	if (!(sheet->memory_bytes > 0))
		return rfl_fail(err, RFL_EMISSING, 0,
				"--fit: the data sheet of %s does not say its memory; give a size, "
				"as 24GiB",
				sheet->label);
	r->device.name = sheet->label;
	r->device.memory_bytes = (int64_t)sheet->memory_bytes;
	r->device.reserve_bytes = reserve_of_device(r->device.memory_bytes);
	return RFL_OK;
}

enum rfl_rc rfl_complexity_find_device(struct rfl_complexity_report *r, struct rfl_err *err)
{
	const struct rfl_complexity_args *a = r->args;
	enum rfl_rc rc;

	if (a->reserve && !a->fit)
		return rfl_fail(err, RFL_EUSAGE, 0, "--reserve goes with --fit");
	if (!a->fit)
		return RFL_OK;
	r->device.name = a->fit;
	if (isalpha((unsigned char)a->fit[0]))
		rc = by_name(r, a->fit, err);
	else
		rc = by_size(r, a->fit, err);
	if (rc == RFL_OK && a->reserve && strcmp(a->reserve, "0") == 0)
		r->device.reserve_bytes = 0;
	else if (rc == RFL_OK && a->reserve)
		rc = bytes_of(a->reserve, "--reserve", &r->device.reserve_bytes, err);
	if (rc == RFL_OK && r->device.reserve_bytes >= r->device.memory_bytes)
		rc = rfl_fail(err, RFL_EUSAGE, 0, "--reserve: %s leaves nothing of %s",
			      a->reserve ? a->reserve : "the default", r->device.name);
	return rc;
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
	rc = rfl_cli_need_file(a->peaks, "roofline peaks measure --env NAME --output FILE", err);
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
