/* profiler.c - command lines of ncu and nsys, and what their failures mean. */
#include "runner/program/profiler.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/launch.h"
#include "machine/gpu.h"
#include "profile/chips.h"
#include "profile/cupti/plan.h"
#include "profile/import/importer.h"

#define ONLY_A_PART                                                      \
	"only a part of the program was profiled; see its kernels with " \
	"'roofline points --by kernel'"

struct rfl_profiler {
	struct rfl_arena *arena;
	struct rfl_profiler_config config;
	const char *path;            /* of the program */
	const struct rfl_chip *chip; /* of ncu */
};

static bool is_ncu(const struct rfl_profiler *p)
{
	return strcmp(p->config.tool, "ncu") == 0;
}

static bool of_part(const struct rfl_profiler *p)
{
	return p->config.nvtx || p->config.from_call;
}

const char *rfl_profiler_no_work(const struct rfl_profiler *p)
{
	if (!is_ncu(p))
		return "nsys counts none; use --with ncu";
	return of_part(p) ? ONLY_A_PART
			  : "ncu counts it on the GPU, unless it fails; run --with ncu again";
}

/* In PATH, or where the CUDA toolkit has it. */
static enum rfl_rc find_tool(struct rfl_profiler *p, struct rfl_err *err)
{
	const char *name = p->config.tool;
	const char *const paths[] = { name,
				      rfl_arena_printf(p->arena, "/usr/local/cuda/bin/%s", name) };

	for (size_t i = 0; i < RFL_ARRAY_LEN(paths); i++) {
		const char *const argv[] = { paths[i], "--version", NULL };
		const struct rfl_proc_spec spec = { .argv = argv,
						    .capture_stdout = true,
						    .capture_stderr = true,
						    .timeout_s = 60 };
		RFL_CLEANUP(rfl_proc_result_fini)
		struct rfl_proc_result result = { .started = false };

		if (rfl_proc_run(&spec, &result, NULL) == RFL_OK) {
			p->path = paths[i];
			return RFL_OK;
		}
	}
	return rfl_fail(
		err, RFL_EUNAVAILABLE, 0,
		"%s: not found in PATH and in /usr/local/cuda/bin; install Nsight %s, which "
		"is part of the CUDA toolkit, or add its directory to PATH",
		name, is_ncu(p) ? "Compute" : "Systems");
}

static enum rfl_rc find_chip(const struct rfl_profiler *p, const struct rfl_chip **ret,
			     struct rfl_err *err)
{
	RFL_AUTOPTR(gpus) gpus = NULL;
	struct rfl_err why = RFL_ERR_INIT;

	if (p->config.chip) {
		*ret = rfl_chip_of_text(p->config.chip);
		return *ret ? RFL_OK
			    : rfl_fail(err, RFL_EINVAL, 0,
				       "--chip: '%s' is neither a chip nor a product; 'roofline "
				       "counters list' lists all",
				       p->config.chip);
	}
	if (rfl_gpus_new(&gpus, &why) != RFL_OK)
		return rfl_fail(err, RFL_EUNAVAILABLE, 0,
				"cannot choose the metrics for ncu, because the chip is unknown: "
				"%s; use --chip",
				why.msg);
	*ret = rfl_chip_of_device(gpus->gpus[0].name,
				  gpus->gpus[0].cc_major * 10 + gpus->gpus[0].cc_minor);
	return *ret ? RFL_OK
		    : rfl_fail(err, RFL_EUNAVAILABLE, 0,
			       "%s: there are no formulas for this GPU; use --chip with a similar "
			       "one",
			       gpus->gpus[0].name);
}

enum rfl_rc rfl_profiler_new(const struct rfl_profiler_config *config, struct rfl_profiler **ret,
			     struct rfl_err *err)
{
	struct rfl_arena *arena = rfl_arena_new();
	RFL_AUTOPTR(profiler) p = rfl_arena_array(arena, 1, sizeof(*p));
	enum rfl_rc rc;

	p->arena = arena;
	p->config = *config;
	if ((rc = find_tool(p, err)) || (is_ncu(p) && (rc = find_chip(p, &p->chip, err))))
		return rc;
	*ret = p;
	p = NULL;
	return RFL_OK;
}

void rfl_profiler_free(struct rfl_profiler *p)
{
	if (p)
		rfl_arena_free(p->arena);
}

/* ---- running ---- */

/* The metrics of the chip, as 'roofline counters list --ncu' prints them. Not chosen earlier,
 * because CUPTI takes 100 MiB, which would be in the memory of the children. */
static enum rfl_rc choose_metrics(const struct rfl_profiler *p, struct rfl_buf *out,
				  struct rfl_err *err)
{
	struct rfl_formulas *f = NULL;
	struct rfl_cupti *lib = NULL;
	struct rfl_cupti_host *host = NULL;
	struct rfl_metric_set set;
	enum rfl_rc rc = rfl_formulas_new(p->chip->name, &f, err);

	if (rc)
		return rc;
	/* without CUPTI the names are not checked */
	if (rfl_cupti_open(&p->config.places, &lib, NULL) == RFL_OK)
		(void)!rfl_cupti_host_open(lib, p->chip->name, NULL, &host, NULL);
	rc = rfl_metric_set_ncu(f, host, p->config.precision, &set, err);
	if (rc == RFL_OK)
		rfl_metric_set_text(&set, out);
	rfl_cupti_host_close(host);
	rfl_cupti_close(lib);
	rfl_formulas_free(f);
	return rc;
}

/* The options, followed by the command. */
static const char **words_of(const struct rfl_profiler *p, const char *metrics,
			     const char *const *argv, const char *stem, struct rfl_arena *arena)
{
	const struct rfl_profiler_config *c = &p->config;
	/* a replayed kernel would find its own data in the caches; the clock is not locked,
	 * because times are compared with ceilings at the clock of the device */
	const bool cold = c->replay && strcmp(c->replay, "kernel") == 0;
	/* clang-format off */
	const char *const ncu[] = {
		p->path, "--metrics", metrics,
		"--csv", "--page", "raw", "--print-units", "base",
		"--log-file", rfl_arena_printf(arena, "%s.csv", stem),
		"--target-processes", "all",
		"--replay-mode", c->replay,
		"--cache-control", cold ? "all" : "none",
		"--clock-control", "none",
		"--profile-from-start", c->from_call ? "off" : "on",
		c->nvtx ? "--nvtx" : NULL, "--nvtx-include", c->nvtx, NULL,
	};
	const char *const nsys[] = {
		p->path, "profile", "--trace=cuda,nvtx", "--sample=none", "--cpuctxsw=none",
		"--force-overwrite=true", rfl_arena_printf(arena, "--output=%s", stem),
		c->from_call ? "--capture-range=cudaProfilerApi" : NULL,
		"--capture-range-end=stop", NULL,
	};
	/* clang-format on */
	const char *const *options = is_ncu(p) ? ncu : nsys;
	const char **words = NULL;
	size_t n = 0;

	for (; *options; options++)
		*(const char **)rfl_arena_append(arena, &words, &n) = *options;
	for (; *argv; argv++)
		*(const char **)rfl_arena_append(arena, &words, &n) = *argv;
	*(const char **)rfl_arena_append(arena, &words, &n) = NULL;
	return words;
}

/* Run it with our standard streams. @param status  as a shell reports it */
static enum rfl_rc launch(const char *const *words, int *status, struct rfl_err *err)
{
	const struct rfl_launch_spec spec = { .argv = words };
	RFL_AUTOPTR(launch) l = NULL;
	RFL_CLEANUP(rfl_proc_result_fini) struct rfl_proc_result result = { .started = false };
	enum rfl_rc rc = rfl_launch_new(&spec, &l, err);

	if (rc || (rc = rfl_launch_go(l, err)) || (rc = rfl_launch_wait(l, &result, err)))
		return rc;
	*status = result.exited ? result.exit_code : 128 + result.signal;
	return RFL_OK;
}

/* Write the table of kernel times in the report of nsys. */
static enum rfl_rc export_nsys(const struct rfl_profiler *p, const char *stem, const char *csv,
			       struct rfl_err *err)
{
	RFL_AUTOPTR(arena) arena = rfl_arena_new();
	const char *const argv[] = { p->path,
				     "stats",
				     "--report=cuda_gpu_kern_sum",
				     "--format=csv",
				     "--force-export=true",
				     rfl_arena_printf(arena, "%s.nsys-rep", stem),
				     NULL };
	const struct rfl_proc_spec spec = { .argv = argv, .capture_stdout = true };
	RFL_CLEANUP(rfl_proc_result_fini) struct rfl_proc_result result = { .started = false };
	enum rfl_rc rc = rfl_proc_run(&spec, &result, err);

	if (rc)
		return rc;
	if (!result.exited || result.exit_code != 0)
		return rfl_fail(err, RFL_EFAILED, result.exit_code,
				"'nsys stats' failed; see its messages above. The report is %s",
				argv[5]);
	if ((rc = rfl_buf_check(&result.out, "the table of nsys", err)))
		return rc;
	return rfl_file_write(csv, rfl_buf_str(&result.out), result.out.len, err);
}

static void keep_warning(const char *line, void *ctx)
{
	rfl_buf_printf(ctx, "%s\n", line);
}

/* ncu's own status is not documented; its message has the program's. */
static int program_status(const char *complaint)
{
	static const char words[] = "application returned an error code (";
	const char *at = complaint ? strstr(complaint, words) : NULL;
	int status = 0;

	return at && sscanf(at + strlen(words), "%d", &status) == 1 && status > 0 && status < 256
		       ? status
		       : 0;
}

enum rfl_rc rfl_profiler_run(const struct rfl_profiler *p, const char *const *argv,
			     const char *log_dir, const char *run_id, struct rfl_captures *captures,
			     int *status, struct rfl_buf *warnings, struct rfl_err *err)
{
	const bool ncu = is_ncu(p);
	const char *name = p->config.tool;
	RFL_AUTOPTR(arena) arena = rfl_arena_new();
	const char *stem = rfl_arena_printf(arena, "%s/%s/%s", log_dir, name, run_id);
	const char *csv = rfl_arena_printf(arena, "%s.csv", stem), *complaint = NULL;
	const struct rfl_import_options options = { .from = name,
						    .steps = 1, /* the whole program */
						    .warn = keep_warning,
						    .ctx = warnings };
	RFL_AUTO(captures) found = { .n = 0 };
	RFL_AUTO(buf) metrics = { .len = 0 };
	struct rfl_err why = RFL_ERR_INIT;
	bool nothing; /* was counted */
	int ended = 0;
	enum rfl_rc rc = rfl_file_mkdirs_for(csv, err);

	if (rc || (ncu && (rc = choose_metrics(p, &metrics, err))) ||
	    (rc = launch(words_of(p, rfl_buf_str(&metrics), argv, stem, arena), &ended, err)))
		return rc;
	/* a file of ncu may say what failed */
	if (!ncu && ended == 0)
		rc = export_nsys(p, stem, csv, &why);
	if (rc == RFL_OK && (ncu || ended == 0))
		rc = rfl_import_file(csv, &options, &found, &why);
	nothing = found.n > 0 && found.captures[0]->nrefusals > 0;
	if (nothing)
		complaint = found.captures[0]->refusals[0].reason;
	for (size_t i = 0; found.n > 0 && !complaint && i < found.captures[0]->nnotes; i++)
		if (strncmp(found.captures[0]->notes[i], "incomplete: ", 12) == 0)
			complaint = found.captures[0]->notes[i];
	*status = program_status(complaint);
	if ((*status == 0 && nothing && strstr(complaint, "No kernels were profiled")) ||
	    (rc && strstr(why.msg, "no kernels: nsys")))
		return rfl_fail(err, RFL_EUNAVAILABLE, 0, "%s found no kernels: %s", name,
				of_part(p)
					? "none is in the part that --nvtx or --profile-from-start "
					  "off selects"
					: "the command launches none; check that it uses the GPU");
	if (*status == 0 && nothing)
		return rfl_fail(err, RFL_EUNAVAILABLE, 0, "%s", complaint);
	if (*status != 0)
		return rfl_fail(err, RFL_EFAILED, *status,
				"%s ended with status %d under %s, and with 0 without it: its "
				"counts are not used; see its messages above",
				argv[0], *status, name);
	if (ended != 0)
		return rfl_fail(err, RFL_EFAILED, ended,
				"%s ended with status %d: its counts are not used: %s", name, ended,
				complaint ? complaint : "see its messages above");
	if (rc)
		return rfl_err_pass(err, &why);
	if (of_part(p))
		rfl_capture_of_part(&found, 0, ONLY_A_PART);
	*captures = found;
	found = (struct rfl_captures){ .n = 0 };
	return RFL_OK;
}
