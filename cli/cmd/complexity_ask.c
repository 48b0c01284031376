/*
 * complexity_ask.c - what roofline complexity is asked beyond counting: which counters to compare
 * with, whose memory to fit, which ceilings to stand under.
 */
#include "cli/cmd/complexity.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
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
static enum rfl_rc by_size(struct rfl_complexity_run *run, const char *text, struct rfl_err *err)
{
	enum rfl_rc rc = bytes_of(text, "--fit", &run->r.device.memory_bytes, err);

	if (rc != RFL_OK || run->r.device.memory_bytes >= LEAST_MEMORY)
		return rc;
	return rfl_fail(err, RFL_EUSAGE, 0,
			"--fit: '%s' is %lld bytes, less than 1 MiB; a size has a unit, as 24GiB",
			text, (long long)run->r.device.memory_bytes);
}

static enum rfl_rc by_name(struct rfl_complexity_run *run, const char *name, struct rfl_err *err)
{
	const struct rfl_device_sheet *sheet = NULL;
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc = rfl_devices_load(&run->devices, err);

	if (rc != RFL_OK)
		return rc;
	rc = rfl_devices_find(run->devices, name, &sheet, &why);
	if (rc == RFL_ENOTFOUND)
		return rfl_fail(err, RFL_EUSAGE, 0, "--fit: %s (a size is 24GiB or 80e9)", why.msg);
	if (rc != RFL_OK)
		return rfl_fail(err, rc, why.native, "%s", why.msg);
	if (!(sheet->memory_bytes > 0))
		return rfl_fail(err, RFL_EMISSING, 0,
				"--fit: the data sheet of %s does not say its memory; give a size, "
				"as 24GiB",
				sheet->label);
	run->r.device.name = sheet->label;
	run->r.device.memory_bytes = (int64_t)sheet->memory_bytes;
	run->r.device.reserve_bytes = reserve_of_device(run->r.device.memory_bytes);
	return RFL_OK;
}

static enum rfl_rc find_device(struct rfl_complexity_run *run, struct rfl_err *err)
{
	const struct rfl_complexity_args *a = run->args;
	enum rfl_rc rc;

	if (!a->fit)
		return RFL_OK;
	run->r.device.name = a->fit;
	if (isalpha((unsigned char)a->fit[0]))
		rc = by_name(run, a->fit, err);
	else
		rc = by_size(run, a->fit, err);
	if (rc == RFL_OK && a->reserve && strcmp(a->reserve, "0") == 0)
		run->r.device.reserve_bytes = 0;
	else if (rc == RFL_OK && a->reserve)
		rc = bytes_of(a->reserve, "--reserve", &run->r.device.reserve_bytes, err);
	if (rc == RFL_OK && run->r.device.reserve_bytes >= run->r.device.memory_bytes)
		rc = rfl_fail(err, RFL_EUSAGE, 0, "--reserve: %s leaves nothing of %s",
			      a->reserve ? a->reserve : "the default", run->r.device.name);
	return rc;
}

static enum rfl_rc find_roof(struct rfl_complexity_run *run, struct rfl_err *err)
{
	const struct rfl_complexity_args *a = run->args;
	enum rfl_fusion fusion =
		run->r.fusion < 0 ? RFL_FUSION_FUSED : (enum rfl_fusion)run->r.fusion;
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc;

	if (!a->peaks && !a->env)
		return RFL_OK;
	if (!a->peaks || !a->env)
		return rfl_fail(err, RFL_EUSAGE, 0, "--peaks FILE and --env NAME go together");
	rc = rfl_cli_need_file(a->peaks, "roofline peaks measure --env NAME --output FILE", err);
	if (rc == RFL_OK)
		rc = rfl_peaks_load(a->peaks, &run->peaks, err);
	if (rc != RFL_OK)
		return rc;
	rc = rfl_attain_find(run->peaks, a->env, run->r.options.precision, fusion, &run->roof,
			     &why);
	if (rc == RFL_ENOTFOUND)
		return rfl_fail(err, RFL_EUSAGE, 0, "--precision: %s", why.msg);
	if (rc != RFL_OK)
		return rfl_fail(err, rc, why.native, "%s", why.msg);
	run->r.options.roof = &run->roof.base;
	return RFL_OK;
}

static void add_once(struct rfl_complexity *r, const struct rfl_peer *peer)
{
	for (size_t i = 0; i < r->npeers; i++)
		if (r->peers[i] == peer)
			return;
	r->peers[r->npeers++] = peer;
}

static enum rfl_rc find_peers(struct rfl_complexity_run *run, struct rfl_err *err)
{
	const struct rfl_opt_list *names = &run->args->peers;
	const struct rfl_peer *peer = NULL;
	size_t all = 0;

	while (rfl_peer_at(all))
		all++;
	run->r.peers = rfl_alloc_array(all, sizeof(*run->r.peers));
	if (!run->r.peers)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
	for (size_t i = 0; i < names->n; i++) {
		struct rfl_err why = RFL_ERR_INIT;

		if (strcmp(names->items[i], "all") == 0) {
			for (size_t k = 0; k < all; k++)
				add_once(&run->r, rfl_peer_at(k));
			continue;
		}
		if (rfl_peer_find(names->items[i], &peer, &why) != RFL_OK)
			return rfl_fail(err, RFL_EUSAGE, 0, "--as: %s", why.msg);
		add_once(&run->r, peer);
	}
	return RFL_OK;
}

enum rfl_rc rfl_complexity_ask(struct rfl_complexity_run *run, struct rfl_err *err)
{
	enum rfl_rc rc = find_peers(run, err);

	if (rc == RFL_OK)
		rc = find_device(run, err);
	return rc == RFL_OK ? find_roof(run, err) : rc;
}
