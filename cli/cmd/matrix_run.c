/* matrix_run.c - roofline matrix run: execute the missing runs, each in a separate process. */
#include "cli/cmd/matrix.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/num.h"
#include "base/json.h"
#include "cli/device_lock.h"
#include "cli/inputs.h"
#include "cli/stop.h"
#include "complexity/zoo.h"
#include "ledger/repeats/row_index.h"

struct run_args {
	struct rfl_opt_list operands, only;
	const char *shard;
	struct rfl_matrix_execution how;
};

#define OPT(kind, member, ...) RFL_OPT(struct run_args, kind, member, __VA_ARGS__)

static const struct rfl_opt opts[] = {
	OPT(TEXT, how.log_dir, RFL_MATRIX_LOG_DIR),
	OPT(LIST, only, RFL_MATRIX_ONLY),
	OPT(TEXT, shard, RFL_MATRIX_SHARD),
	OPT(FLAG, how.retry_failed, RFL_MATRIX_RETRY_FAILED),
	OPT(TEXT, how.done_in, .name = "done-in", .meta = "DIR",
	    .help = "another log directory; runs that are ok in it are skipped"),
	OPT(INT, how.shuffle, .name = "shuffle", .meta = "SEED", .def = "-1", .min = -1,
	    .max = INT64_MAX,
	    .help = "random seed for shuffling the runs within each repeat; -1: keep the order of "
		    "the file"),
	OPT(FLAG, how.share_device, RFL_MATRIX_SHARE_DEVICE),
	OPT(FLAG, how.dry_run, RFL_MATRIX_DRY_RUN),
	{ .name = NULL },
};

#define NAMED_MAX 5 /* runs in a message */

struct job {
	struct rfl_cli *cli;
	const struct rfl_matrix_execution *a;
	const struct rfl_matrix_pick *pick;
	const struct rfl_matrix *m;
	size_t n;     /* number of runs to execute */
	size_t *runs; /* in the order of execution */
	struct {
		bool elsewhere;      /* it is ok in --done-in */
		size_t failures;     /* number of failed rows at the start */
		const char *refusal; /* why it could not start; NULL: it could */
	} * state;                   /* of each run of the matrix */
	size_t size;                 /* of the ledger at the start */
	int claims;
	size_t finished;      /* number of runs executed, here or by another process */
	size_t lost;          /* number of runs of which a file could not be written */
	bool stopped;         /* stopped by a signal */
	bool said_cpu;        /* that there is no GPU */
	const char *reported; /* the last logged reason of a failed run */
	struct rfl_matrix_left left;
	char prefix[160];
};

/* A data directory, read for one model and size. Checked and reported once, not for each run. */
struct look {
	const struct rfl_matrix_option *data; /* --data, with its position in the file */
	const char *reason;                   /* why the data cannot be read; NULL: they can */
	size_t nruns;                         /* number of runs that cannot start for this reason */
};

/* Check the data of a cell, unless the same data were checked before.
 * @param seen  the data that were checked, in the order of `looks`
 * @param ret   set to the element of `looks`; NULL: the cell reads no data */
static enum rfl_rc look_up(const struct job *job, const struct rfl_matrix_cell *cell,
			   struct rfl_texts *seen, struct look *looks, struct look **ret,
			   struct rfl_err *err)
{
	const struct rfl_matrix_option *data = NULL;
	const size_t nlooks = seen->index.n;
	struct rfl_zoo_options sizes;
	struct rfl_run_config config;
	struct rfl_data_spec spec;
	struct rfl_net *net = NULL;
	struct rfl_err why = RFL_ERR_INIT;
	char key[1024];
	size_t number;
	enum rfl_rc rc;

	for (size_t i = 0; i < cell->noptions; i++)
		if (strcmp(cell->options[i].name, "data") == 0)
			data = &cell->options[i];
	if (!data)
		return RFL_OK;
	rc = rfl_cli_matrix_config(job->cli, cell, NULL, &config, err);
	if (rc || !config.data_dir)
		return rc;
	(void)snprintf(key, sizeof(key), "%s %d %lld %lld %s", data->pointer, config.data_kind,
		       (long long)config.image_size, (long long)config.context_length, cell->model);
	number = rfl_texts_put(seen, key);
	*ret = &looks[number];
	if (number < nlooks)
		return RFL_OK;
	(*ret)->data = data;

	/* Make the same check as a run does. Errors in the network are reported by the run. */
	sizes = (struct rfl_zoo_options){ .image_size = config.image_size,
					  .context_length = config.context_length };
	spec = (struct rfl_data_spec){ .kind = (enum rfl_data_kind)config.data_kind,
				       .dir = data->values[0] };
	if (config.data_kind == RFL_RUN_DATA_AUTO)
		rc = rfl_data_detect(spec.dir, &spec.kind, &why);
	if (rc == RFL_OK && rfl_zoo_build(cell->model, &sizes, &net, NULL) == RFL_OK)
		rc = rfl_data_probe(&spec, net, &why);
	rfl_net_free(net);
	if (rc)
		(*ret)->reason = rfl_arena_strdup(job->cli->arena, why.msg);
	return RFL_OK;
}

/* Set `refusal` for the runs that cannot start. Each reason is logged once, with its position in
 * the file and the number of runs. */
static enum rfl_rc check_data(struct job *job, struct rfl_err *err)
{
	const struct rfl_matrix *m = job->m;
	struct look *looks = rfl_arena_array(job->cli->arena, m->ncells, sizeof(*looks));
	struct look **of_cell = rfl_arena_array(job->cli->arena, m->ncells, sizeof(struct look *));
	RFL_AUTO(texts) seen = { .arena = NULL };
	enum rfl_rc rc;

	for (size_t i = 0; i < job->n; i++) {
		struct look **look = &of_cell[job->runs[i] % m->ncells];

		if (!*look && (rc = look_up(job, &m->cells[job->runs[i] % m->ncells], &seen, looks,
					    look, err)))
			return rc;
		if (!*look || !(*look)->reason)
			continue;
		(*look)->nruns++;
		job->state[job->runs[i]].refusal = (*look)->reason;
	}
	for (struct look *l = looks; l < looks + seen.index.n; l++) {
		struct rfl_err line = RFL_ERR_INIT;
		struct rfl_where w;

		if (!l->reason || l->nruns == 0)
			continue;
		for (struct look *k = l + 1; k < looks + seen.index.n; k++)
			if (k->reason && strcmp(k->data->pointer, l->data->pointer) == 0 &&
			    strcmp(k->reason, l->reason) == 0) {
				l->nruns += k->nruns;
				k->nruns = 0; /* counted with `l` */
			}
		rfl_where_begin(&w, m->path, l->data->pointer);
		(void)rfl_where_fail(&w, &line, "%zu run%s cannot start: %s", l->nruns,
				     l->nruns == 1 ? "" : "s", l->reason);
		rfl_log(RFL_LOG_ERROR, "%s", line.msg);
	}
	return RFL_OK;
}

/* ---- plan ---- */

static bool was_interrupted(const struct rfl_matrix_run *run)
{
	return run->status && strcmp(run->status, "interrupted") == 0;
}

static bool is_wanted(const struct rfl_matrix_run *run, bool retry_failed)
{
	return run->state == RFL_MATRIX_MISSING ||
	       (run->state == RFL_MATRIX_FAILED && (retry_failed || was_interrupted(run)));
}

/* Add the times of finished runs. */
static void learn_times(struct job *job, const struct rfl_matrix_coverage *cover)
{
	for (size_t i = 0; i < cover->nruns; i++)
		if (cover->runs[i].state == RFL_MATRIX_DONE)
			rfl_matrix_left_add(&job->left, cover->runs[i].cell, cover->runs[i].run_s);
}

/* Write what distinguishes a cell from others with its label: " (context-length 32, iters 5)". */
static void put_differences(const struct rfl_matrix *m, const struct rfl_matrix_cell *cell,
			    struct rfl_buf *out)
{
	const char *sep = " (";

	for (size_t i = 0; i < cell->noptions; i++) {
		const struct rfl_matrix_option *o = &cell->options[i];
		bool differs = false;

		for (size_t k = 0; k < m->ncells && !differs; k++) {
			const struct rfl_matrix_cell *c = &m->cells[k];
			size_t at = 0;

			if (strcmp(c->env, cell->env) != 0 || strcmp(c->model, cell->model) != 0 ||
			    strcmp(c->precision, cell->precision) != 0 || c->batch != cell->batch)
				continue;
			while (at < c->noptions && strcmp(c->options[at].name, o->name) != 0)
				at++;
			differs = at == c->noptions || c->options[at].n != o->n ||
				  (o->n > 0 && strcmp(c->options[at].values[0], o->values[0]) != 0);
		}
		if (!differs)
			continue;
		rfl_buf_printf(out, "%s%s%s%s", sep, o->name, o->n ? " " : "",
			       o->n ? o->values[0] : "");
		sep = ", ";
	}
	rfl_buf_puts(out, sep[0] == ',' ? ")" : "");
}

/* Name the runs that are ok already: at most a few, with what distinguishes them. */
static void report_reused(const struct job *job, const struct rfl_matrix_view *view)
{
	RFL_AUTO(buf) names = { .len = 0 };
	size_t n = 0;

	for (size_t i = 0; i < job->pick->n; i++) {
		const size_t run = job->pick->runs[i];
		char label[RFL_LABEL_MAX + 1];
		const struct rfl_matrix_cell *cell = rfl_cli_matrix_cell(job->m, run, label);

		if (view->cover.runs[run].state != RFL_MATRIX_DONE || ++n > NAMED_MAX)
			continue;
		rfl_buf_printf(&names, "%s%s", n == 1 ? "" : ", ", label);
		put_differences(job->m, cell, &names);
	}
	if (n > NAMED_MAX)
		rfl_buf_printf(&names, " and %zu more", n - NAMED_MAX);
	if (n > 0)
		rfl_log(RFL_LOG_INFO, "already in %s, %zu of %zu: %s", view->path, n, job->pick->n,
			rfl_buf_str(&names));
}

/* Find the selected runs that are missing or interrupted or, with --retry-failed, failed. */
static enum rfl_rc plan(struct job *job, size_t nruns, struct rfl_err *err)
{
	RFL_AUTO(matrix_view) view = { .ledger = NULL };
	RFL_AUTO(matrix_view) other = { .ledger = NULL };
	enum rfl_rc rc;

	job->runs = rfl_arena_array(job->cli->arena, nruns, sizeof(*job->runs));
	job->state = rfl_arena_array(job->cli->arena, nruns, sizeof(*job->state));
	rfl_matrix_left_init(job->m, &job->left);
	if ((rc = rfl_cli_matrix_view(job->m, job->a->log_dir, 0, &view, err)) ||
	    (job->a->done_in &&
	     (rc = rfl_cli_matrix_view(job->m, job->a->done_in, 0, &other, err))))
		return rc;
	job->size = view.size;
	for (size_t i = 0; i < nruns; i++) {
		job->state[i].failures = view.cover.runs[i].failed;
		job->state[i].elsewhere =
			job->a->done_in && other.cover.runs[i].state == RFL_MATRIX_DONE;
	}
	learn_times(job, &other.cover);
	learn_times(job, &view.cover);
	for (size_t i = 0; i < job->pick->n; i++) {
		const size_t run = job->pick->runs[i];

		if (!job->state[run].elsewhere &&
		    is_wanted(&view.cover.runs[run], job->a->retry_failed))
			job->runs[job->n++] = run;
	}
	if (job->a->quiet)
		report_reused(job, &view);
	return RFL_OK;
}

/* Fisher-Yates shuffle within each repeat, with random numbers from SplitMix64 (Steele, Lea and
 * Flood). The bias of the modulo, 2^-50, is negligible here. */
static void shuffle(struct job *job, uint64_t seed)
{
	for (size_t begin = 0, end = 0; begin < job->n; begin = end) {
		const size_t repeat = job->runs[begin] / job->m->ncells;
		uint64_t state = seed ^ ((uint64_t)repeat << 32);

		while (end < job->n && job->runs[end] / job->m->ncells == repeat)
			end++;
		for (size_t i = end - begin; i > 1; i--) {
			uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);
			size_t k, kept;

			z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
			z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
			k = begin + (size_t)((z ^ (z >> 31)) % i);
			kept = job->runs[begin + i - 1];
			job->runs[begin + i - 1] = job->runs[k];
			job->runs[k] = kept;
		}
	}
}

/* Report immediately why a run is not ok. A repeated reason is only logged with -v, because the
 * final table contains it. */
static void report(struct job *job, const char *label, const char *status, const char *reason)
{
	const bool again = job->reported && strcmp(job->reported, reason) == 0;

	rfl_log(again ? RFL_LOG_DEBUG : RFL_LOG_ERROR, "%s: %s: %s", label, status, reason);
	if (!again)
		job->reported = rfl_arena_strdup(job->cli->arena, reason);
}

static enum rfl_rc execute(struct job *job, size_t run, const char *label, struct rfl_err *err)
{
	const struct rfl_matrix_cell *cell = rfl_cli_matrix_cell(job->m, run, NULL);
	char label_arg[RFL_LABEL_MAX + 16], dir_arg[4200];
	RFL_AUTO(run_result) result = { .rc = RFL_OK };
	const struct rfl_ledger_row *row = &result.row;
	struct rfl_err why = RFL_ERR_INIT;
	struct rfl_run_config config;
	RFL_AUTO(buf) text = { .len = 0 }; /* the command, then the summary */
	const double begin_s = rfl_clock_s();
	enum rfl_rc rc;

	(void)snprintf(label_arg, sizeof(label_arg), "--label=%s", label);
	(void)snprintf(dir_arg, sizeof(dir_arg), "--log-dir=%s", job->a->log_dir);
	rfl_ledger_row_init(&result.row);
	rfl_cli_matrix_command(job->m, run, job->a->log_dir, &text);
	rc = rfl_cli_matrix_config(job->cli, cell, (const char *const[2]){ label_arg, dir_arg },
				   &config, &why);
	if (rc == RFL_OK)
		rc = rfl_cli_run(job->cli, &config, rfl_buf_str(&text), cell->id, &result, &why);
	if (rc == RFL_OK || result.recorded) { /* other failures are in the row */
		if (rc) {                      /* a file beside the row could not be written */
			job->lost++;
			if (!row->error_text)
				report(job, label, row->status, why.msg);
			rc = RFL_OK;
		}
		if (result.rc == RFL_OK)
			rfl_matrix_left_add(&job->left, run % job->m->ncells,
					    rfl_clock_s() - begin_s);
		job->stopped = rfl_stop_asked() || result.rc == RFL_EINTR;
		rfl_buf_reset(&text);
		if (rfl_run_found_no_gpu(row) && !job->said_cpu)
			rfl_log(RFL_LOG_INFO, "%s", RFL_RUN_NO_GPU);
		job->said_cpu |= rfl_run_found_no_gpu(row);
		rfl_run_summary(row, &text);
		rfl_buf_putc(&text, '\n');
		if (job->a->quiet) {
			rfl_cli_log_lines(RFL_LOG_INFO, rfl_buf_str(&text));
		} else {
			rc = rfl_cli_put(job->cli, &text, "summary", err);
			/* show it immediately; rfl_cli_main() reports a failed write */
			(void)fflush(job->cli->out);
		}
		if (rc == RFL_OK && row->error_text && row->error_text[0])
			report(job, row->label, row->status, row->error_text);
	} else if (row->status) {
		/* a row cannot be written: later rows would fail as well */
		rc = rfl_err_pass(err, &why);
	} else {
		job->state[run].refusal = rfl_arena_strdup(job->cli->arena, why.msg);
		report(job, label, "refused", why.msg);
		rc = RFL_OK;
	}
	return rc;
}

/* ---- waiting for the device and for other processes ---- */

/* Announce a run, and execute it as soon as the device is free, unless a signal arrives first. */
static enum rfl_rc run_on_device(struct job *job, size_t run, const char *label,
				 struct rfl_err *err)
{
	const struct rfl_matrix_cell *cell = rfl_cli_matrix_cell(job->m, run, NULL);
	struct rfl_device_lock lock = { .n = 0 };
	int64_t ngpus = 1; /* one for each process of --world N */
	char left[64] = "";
	RFL_AUTO(buf) name = { .len = 0 };
	double seconds = 0; /* expected for this run and all later ones */
	enum rfl_rc rc = RFL_OK;

	for (size_t i = job->finished; i < job->n; i++)
		seconds += rfl_matrix_left_cell(&job->left, job->runs[i] % job->m->ncells);
	if (seconds < 90)
		(void)snprintf(left, sizeof(left), ", about %.0f s left", ceil(seconds));
	else if (seconds < 90 * 60)
		(void)snprintf(left, sizeof(left), ", about %.0f min left", seconds / 60);
	else if (!isnan(seconds))
		(void)snprintf(left, sizeof(left), ", about %.1f h left", seconds / 3600);
	(void)snprintf(job->prefix, sizeof(job->prefix), "[%zu/%zu%s] ", job->finished + 1, job->n,
		       left);
	job->cli->line.prefix = job->prefix;
	rfl_buf_puts(&name, label);
	put_differences(job->m, cell, &name);
	if (job->cli->progress)
		rfl_cli_progress(job->cli, "%s", rfl_buf_str(&name));
	else
		rfl_log(RFL_LOG_INFO, "%s%s", job->prefix, rfl_buf_str(&name));
	for (size_t i = 0; i < cell->noptions; i++)
		if (strcmp(cell->options[i].name, "world") == 0 && cell->options[i].n > 0 &&
		    rfl_num_parse_int(cell->options[i].values[0], "world", &ngpus, NULL) != RFL_OK)
			ngpus = 1; /* "env": the launcher starts the other processes */
	if (!job->a->share_device)
		rc = rfl_device_lock_wait(&lock, cell->backend, ngpus > 1 ? (size_t)ngpus : 1,
					  job->cli, err);
	job->stopped = rfl_stop_asked();
	if (rc == RFL_OK && !job->stopped)
		rc = execute(job, run, label, err);
	rfl_device_lock_release(&lock);
	return rc;
}

/* Execute a run. If another process has claimed it, set `busy` or, with `wait`, wait for it. */
static enum rfl_rc attempt(struct job *job, size_t run, bool wait, bool *busy, struct rfl_err *err)
{
	char label[RFL_LABEL_MAX + 1];
	const char *id = rfl_cli_matrix_cell(job->m, run, label)->id;
	const uint64_t claim = rfl_hash64(rfl_hash64(0, id, strlen(id)), label, strlen(label));
	struct rfl_matrix_view view;
	bool said = false;
	enum rfl_rc rc;

	while (!(rc = rfl_claim_try(job->claims, claim, busy, err)) && *busy && wait) {
		rfl_device_pause(job->cli, &said, "another process is executing the last runs");
		job->stopped = rfl_stop_asked();
		if (job->stopped)
			return RFL_OK;
	}
	if (rc || *busy)
		return rc;
	rc = rfl_cli_matrix_view(job->m, job->a->log_dir, job->size, &view, err);
	if (rc == RFL_OK) {
		const struct rfl_matrix_run *r = &view.cover.runs[run];
		/* another process may have executed it in the meantime */
		const size_t failures = view.partial ? 0 : job->state[run].failures;
		const bool wanted = is_wanted(r, job->a->retry_failed) &&
				    (r->failed == failures || was_interrupted(r));

		rfl_matrix_view_fini(&view);
		if (wanted)
			rc = run_on_device(job, run, label, err);
	} else {
		rfl_matrix_view_fini(&view);
	}
	rfl_claim_release(job->claims, claim);
	return rc;
}

/* Runs claimed by other processes are moved to the end, where they are tried again. */
static enum rfl_rc run_all(struct job *job, struct rfl_err *err)
{
	size_t free_until = job->n; /* index of the first run that another process had claimed */
	struct rfl_stop stop;
	enum rfl_rc rc;

	if (job->n == 0)
		return RFL_OK;
	rc = rfl_claims_open(job->a->log_dir, &job->claims, err);
	if (rc)
		return rc;
	rfl_stop_catch(&stop);
	while (job->finished < job->n && rc == RFL_OK && !job->stopped) {
		const size_t at = job->finished, run = job->runs[at];
		const bool wait = at >= free_until;
		bool busy = false;

		rc = attempt(job, run, wait, &busy, err);
		if (rc == RFL_OK && busy && !wait) {
			memmove(&job->runs[at], &job->runs[at + 1],
				(job->n - at - 1) * sizeof(*job->runs));
			job->runs[job->n - 1] = run;
			free_until--;
		} else if (rc == RFL_OK && !job->stopped) {
			job->finished++;
		}
		job->stopped = job->stopped || rfl_stop_asked();
	}
	rfl_stop_restore(&stop);
	job->cli->line.prefix = NULL;
	rfl_cli_progress(job->cli, NULL);
	(void)close(job->claims);
	return rc;
}

/* Print the selected runs that are not done. If a run could not start, the reason for that is
 * shown, even if the run has an older row. After a signal, missing runs are not listed. */
static enum rfl_rc conclude(const struct job *job, struct rfl_err *err)
{
	const size_t chosen = job->pick->n;
	struct rfl_matrix_gap *gaps = rfl_arena_array(job->cli->arena, chosen, sizeof(*gaps));
	RFL_AUTO(matrix_view) view = { .ledger = NULL };
	struct rfl_err why = RFL_ERR_INIT;
	RFL_AUTO(buf) out = { .len = 0 };
	size_t ok = 0, n = 0;
	enum rfl_rc rc = rfl_cli_matrix_view(job->m, job->a->log_dir, 0, &view, err);

	if (rc)
		return rc;
	for (size_t i = 0; i < chosen; i++) {
		const size_t run = job->pick->runs[i];
		const struct rfl_matrix_run *r = &view.cover.runs[run];
		struct rfl_matrix_gap gap = { .run = run, .status = "missing" };

		if (job->state[run].elsewhere || r->state == RFL_MATRIX_DONE) {
			ok++;
			continue;
		}
		if (job->state[run].refusal) {
			gap.status = "refused";
			gap.reason = job->state[run].refusal;
		} else if (r->state == RFL_MATRIX_FAILED) {
			gap.status = r->status;
			gap.reason = r->reason;
		} else if (job->stopped) {
			continue;
		}
		gaps[n++] = gap;
	}
	if (!job->a->quiet) {
		rfl_matrix_gaps_render(job->m, gaps, n, RFL_FORMAT_TABLE, &out);
		if ((rc = rfl_cli_put(job->cli, &out, "runs that are not done", err)))
			return rc;
	}

	/* The last run may have been killed after writing to metrics.csv, but before writing to
	 * metrics.jsonl. Do not change the files of other programs. */
	if (rfl_ledger_check(view.path, NULL) == RFL_OK &&
	    rfl_ledger_mend(view.path, &why) != RFL_OK)
		rfl_log(RFL_LOG_WARN, "%s", why.msg);
	if (!job->a->quiet)
		rfl_log(RFL_LOG_INFO, "%s: %zu of %zu runs ok", job->m->name, ok, chosen);
	if (job->lost && !job->stopped)
		rc = rfl_fail(err, RFL_EIO, 0,
			      "files of %zu run%s were lost, as reported above; the rows are in "
			      "the ledger",
			      job->lost, job->lost == 1 ? "" : "s");
	else if (job->stopped)
		rc = rfl_fail(err, RFL_EINTR, 0,
			      "stopped by a signal; repeat the command to continue");
	else if (ok < chosen && !job->a->quiet)
		rc = rfl_fail(
			err, RFL_EFAILED, 0, "%zu of %zu runs are not ok%s", chosen - ok, chosen,
			job->a->retry_failed ? ""
					     : "; repeat the command to execute the missing runs "
					       "(with --retry-failed, also the failed ones)");
	return rc;
}

static void release(struct job *job)
{
	rfl_matrix_left_fini(&job->left);
}

enum rfl_rc rfl_cli_matrix_execute(struct rfl_cli *cli, const struct rfl_matrix_pick *pick,
				   const struct rfl_matrix_execution *how, struct rfl_err *err)
{
	RFL_CLEANUP(release) struct job job = { .cli = cli, .a = how, .pick = pick, .m = pick->m };
	RFL_AUTO(buf) commands = { .len = 0 };
	size_t n = 0;
	enum rfl_rc rc = plan(&job, pick->m->ncells * (size_t)pick->m->repeats, err);

	if (rc)
		return rc;
	if (how->shuffle >= 0)
		shuffle(&job, (uint64_t)how->shuffle);
	if (how->dry_run) {
		for (size_t i = 0; i < job.n; i++) {
			rfl_cli_matrix_command(job.m, job.runs[i], how->log_dir, &commands);
			rfl_buf_putc(&commands, '\n');
		}
		return rfl_cli_put(cli, &commands, "commands", err);
	}
	if ((rc = check_data(&job, err)))
		return rc;
	for (size_t i = 0; i < job.n; i++)
		if (!job.state[job.runs[i]].refusal)
			job.runs[n++] = job.runs[i];
	job.n = n;
	rc = run_all(&job, err);
	return rc ? rc : conclude(&job, err);
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct run_args *a = args;
	RFL_AUTO(matrix_pick) pick;
	enum rfl_rc rc =
		rfl_cli_matrix_pick(cli, a->operands.items[0], &a->only, a->shard, &pick, err);

	return rc ? rc : rfl_cli_matrix_execute(cli, &pick, &a->how, err);
}

const struct rfl_cmd rfl_cmd_matrix_run = {
	.name = "matrix run",
	.summary = "execute the missing runs of a matrix",
	.operands = "FILE",
	.description =
		"Executes the runs of a matrix (docs/reference/matrix.md) that have no row in "
		"metrics.csv in the log directory: the first repeat of every configuration, then "
		"the second, and so on, so that drift of the machine affects all configurations "
		"alike. Each run is a separate process; a run that fails writes a row and does not "
		"stop the others. The command can be interrupted or killed at any time; repeat it "
		"to continue. Several commands can share a log directory: each run is executed by "
		"one of them, and only one run at a time is timed on each CPU and GPU. If a run is "
		"not ok, a table shows the reason, and the exit code is 1.",
	.example = "roofline matrix run examples/study-laptop.json\n"
		   "roofline matrix run matrix.json --only lab_gpu/resnet50 --retry-failed\n"
		   "roofline matrix run matrix.json --shard 0/2 --log-dir logs-0",
	.opts = opts,
	.args_size = sizeof(struct run_args),
	.run = run,
};
