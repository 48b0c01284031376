/*
 * matrix_loop.c - the loop over the runs of a matrix: what is left to do, whose turn it is,
 * signals, progress. A run itself is run_start.c's.
 */
#include "cli/cmd/matrix_loop.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/num.h"
#include "cli/device_lock.h"
#include "cli/cmd/matrix_data.h"
#include "cli/cmd/run_config.h"
#include "cli/stop.h"

#define LOCK_DIR "/tmp"
#define POLL_NS  50000000

/* Wait a little. False when a signal asks to stop. */
static bool pause_a_little(void)
{
	const struct timespec pause = { .tv_nsec = POLL_NS };

	if (!rfl_stop_asked())
		(void)nanosleep(&pause, NULL);
	return !rfl_stop_asked();
}

/* ---- what is to be done ---- */

static size_t cell_of(const struct rfl_matrix_job *job, size_t run)
{
	return run % job->m->ncells;
}

static void label_of(const struct rfl_matrix_job *job, size_t run, char ret[RFL_LABEL_MAX + 1])
{
	rfl_matrix_label(&job->m->cells[cell_of(job, run)], (int)(run / job->m->ncells) + 1, ret);
}

static bool was_interrupted(const struct rfl_matrix_run *run)
{
	return run->row && run->row->status && strcmp(run->row->status, "interrupted") == 0;
}

static bool is_wanted(const struct rfl_matrix_run *run, bool retry_failed)
{
	return run->state == RFL_MATRIX_MISSING ||
	       (run->state == RFL_MATRIX_FAILED && (retry_failed || was_interrupted(run)));
}

/* Marks what is done in the other folder. */
static enum rfl_rc look_elsewhere(struct rfl_matrix_job *job, bool *done, struct rfl_err *err)
{
	struct rfl_matrix_view view;
	enum rfl_rc rc;

	if (!job->done_in)
		return RFL_OK;
	rc = rfl_cli_matrix_view(job->m, job->done_in, &view, err);
	for (size_t i = 0; rc == RFL_OK && i < view.cover.nruns; i++) {
		done[i] = view.cover.runs[i].state == RFL_MATRIX_DONE;
		if (done[i])
			rfl_matrix_left_add(&job->left, view.cover.runs[i].cell,
					    rfl_matrix_left_of_row(view.cover.runs[i].row));
	}
	rfl_matrix_view_fini(&view);
	return rc;
}

static void plan_runs(struct rfl_matrix_job *job, const struct rfl_matrix_coverage *c,
		      const bool *done, const struct rfl_matrix_pick *pick)
{
	for (size_t i = 0; i < c->nruns; i++) {
		job->failures[i] = c->runs[i].failed;
		if (c->runs[i].state == RFL_MATRIX_DONE)
			rfl_matrix_left_add(&job->left, c->runs[i].cell,
					    rfl_matrix_left_of_row(c->runs[i].row));
	}
	for (size_t i = 0; i < pick->n; i++)
		if (!done[pick->runs[i]] && is_wanted(&c->runs[pick->runs[i]], job->retry_failed))
			job->runs[job->n++] = pick->runs[i];
}

enum rfl_rc rfl_matrix_job_plan(struct rfl_matrix_job *job, const struct rfl_matrix_pick *pick,
				struct rfl_err *err)
{
	const size_t nruns = job->m->ncells * (size_t)job->m->repeats;
	bool *done = rfl_alloc_array(nruns, sizeof(*done));
	struct rfl_matrix_view view = { .ledger = NULL };
	enum rfl_rc rc;

	job->claims = -1;
	job->runs = rfl_alloc_array(nruns, sizeof(*job->runs));
	job->refusals = rfl_alloc_array(nruns, sizeof(*job->refusals));
	job->failures = rfl_alloc_array(nruns, sizeof(*job->failures));
	rc = rfl_matrix_left_init(job->m, &job->left, err);
	if (rc == RFL_OK && (!done || !job->runs || !job->refusals || !job->failures))
		rc = rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", job->m->path);
	if (rc == RFL_OK)
		rc = rfl_cli_matrix_view(job->m, job->log_dir, &view, err);
	if (rc == RFL_OK)
		rc = look_elsewhere(job, done, err);
	if (rc == RFL_OK)
		plan_runs(job, &view.cover, done, pick);
	rfl_matrix_view_fini(&view);
	free(done);
	return rc;
}

void rfl_matrix_job_fini(struct rfl_matrix_job *job)
{
	const size_t nruns = job->m ? job->m->ncells * (size_t)job->m->repeats : 0;

	for (size_t i = 0; job->refusals && i < nruns; i++)
		free(job->refusals[i]);
	free(job->refusals);
	free(job->failures);
	free(job->runs);
	free(job->told);
	rfl_matrix_left_fini(&job->left);
}

/* ---- order ---- */

/* Steele, Lea and Flood's SplitMix64: one call, one number. */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* Fisher and Yates. The modulo is biased by 2^-50: it decides an order, not a draw. */
static void shuffle(size_t *runs, size_t n, uint64_t *state)
{
	for (size_t i = n; i > 1; i--) {
		const size_t k = (size_t)(next_random(state) % i);
		const size_t kept = runs[i - 1];

		runs[i - 1] = runs[k];
		runs[k] = kept;
	}
}

enum rfl_rc rfl_matrix_job_check(struct rfl_matrix_job *job, struct rfl_err *err)
{
	size_t n = 0;
	enum rfl_rc rc =
		rfl_matrix_data_check(job->cli, job->m, job->runs, job->n, job->refusals, err);

	for (size_t i = 0; rc == RFL_OK && i < job->n; i++)
		if (!job->refusals[job->runs[i]])
			job->runs[n++] = job->runs[i];
	if (rc == RFL_OK)
		job->n = n;
	return rc;
}

void rfl_matrix_job_shuffle(struct rfl_matrix_job *job, uint64_t seed)
{
	for (size_t begin = 0; begin < job->n;) {
		const size_t repeat = job->runs[begin] / job->m->ncells;
		uint64_t state = seed ^ ((uint64_t)repeat << 32);
		size_t end = begin;

		while (end < job->n && job->runs[end] / job->m->ncells == repeat)
			end++;
		shuffle(job->runs + begin, end - begin, &state);
		begin = end;
	}
}

/* ---- progress ---- */

/* Seconds until all that is not begun yet is done, this run included. */
static double seconds_left(const struct rfl_matrix_job *job)
{
	double sum = 0;

	for (size_t i = job->finished; i < job->n; i++)
		sum += rfl_matrix_left_cell(&job->left, cell_of(job, job->runs[i]));
	return sum;
}

static void announce(struct rfl_matrix_job *job, const char *label)
{
	char left[64] = "";
	const char *text = rfl_matrix_left_text(seconds_left(job), left, sizeof(left));

	(void)snprintf(job->prefix, sizeof(job->prefix), "[%zu/%zu%s%s] ", job->finished + 1,
		       job->n, *text ? ", " : "", text);
	job->cli->line.prefix = job->prefix;
	if (job->cli->progress)
		rfl_cli_progress(job->cli, "%s", label);
	else
		rfl_log(RFL_LOG_INFO, "%s%s", job->prefix, label);
}

/* ---- one run ---- */

/* Why a run is not ok, on stderr at once; the same reason again only for who wants every detail:
 * the table at the end has all. */
static enum rfl_rc tell(struct rfl_matrix_job *job, const char *label, const char *status,
			const char *reason, struct rfl_err *err)
{
	const bool again = job->told && strcmp(job->told, reason) == 0;

	rfl_log(again ? RFL_LOG_DEBUG : RFL_LOG_ERROR, "%s: %s: %s", label, status, reason);
	if (again)
		return RFL_OK;
	free(job->told);
	job->told = strdup(reason);
	return job->told ? RFL_OK : rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", label);
}

static enum rfl_rc print_summary(struct rfl_matrix_job *job, const struct rfl_ledger_row *row,
				 struct rfl_err *err)
{
	struct rfl_buf line;
	enum rfl_rc rc;

	rfl_buf_init(&line, 0);
	rfl_run_summary(row, &line);
	rc = rfl_buf_check(&line, "summary", err);
	if (rc == RFL_OK) {
		rfl_cli_printf(job->cli, "%s\n", rfl_buf_str(&line));
		/* who looks on sees it now; the last one tells of failures */
		(void)fflush(job->cli->out);
	}
	rfl_buf_fini(&line);
	if (rc == RFL_OK && row->error_text && row->error_text[0])
		rc = tell(job, row->label, row->status, row->error_text, err);
	return rc;
}

/* What could not begin has no row. A run whose row could not be written ends everything: so would
 * all that come after it. */
static enum rfl_rc note_refusal(struct rfl_matrix_job *job, size_t run, const char *label,
				const struct rfl_ledger_row *row, const struct rfl_err *why,
				struct rfl_err *err)
{
	if (row->status || why->rc == RFL_ENOMEM)
		return rfl_fail(err, why->rc, why->native, "%s", why->msg);
	job->refusals[run] = strdup(why->msg);
	if (!job->refusals[run])
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", label);
	return tell(job, label, "refused", why->msg, err);
}

static enum rfl_rc start(struct rfl_matrix_job *job, size_t run, int argc, char **argv,
			 struct rfl_run_result *result, struct rfl_err *why)
{
	struct rfl_run_config config;
	struct rfl_buf command;
	enum rfl_rc rc;

	rfl_buf_init(&command, 0);
	rfl_cli_matrix_command(job->m, run, job->log_dir, &command);
	rc = rfl_run_config_parse(job->cli, argc, argv, &config, why);
	if (rc == RFL_OK)
		rc = rfl_cli_run(job->cli, &config, rfl_buf_str(&command),
					 job->m->cells[cell_of(job, run)].id, result, why);
	rfl_buf_fini(&command);
	return rc;
}

static enum rfl_rc execute(struct rfl_matrix_job *job, size_t run, struct rfl_err *err)
{
	const size_t cell = cell_of(job, run);
	char label[RFL_LABEL_MAX + 1], label_arg[RFL_LABEL_MAX + 16], dir_arg[4200];
	struct rfl_run_result result = { .rc = RFL_OK };
	struct rfl_err why = RFL_ERR_INIT;
	const double begin_s = rfl_clock_s();
	char **argv;
	enum rfl_rc rc;
	int argc;

	rfl_ledger_row_init(&result.row);
	label_of(job, run, label);
	(void)snprintf(label_arg, sizeof(label_arg), "--label=%s", label);
	(void)snprintf(dir_arg, sizeof(dir_arg), "--log-dir=%s", job->log_dir);
	argv = rfl_cli_matrix_argv(&job->m->cells[cell], 2, &argc);
	if (!argv)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", label);
	argv[argc++] = label_arg;
	argv[argc++] = dir_arg;
	rc = start(job, run, argc, argv, &result, &why);
	if (rc == RFL_OK || result.recorded) { /* what failed besides is in the row */
		if (result.rc == RFL_OK)
			rfl_matrix_left_add(&job->left, cell, rfl_clock_s() - begin_s);
		job->stopped = rfl_stop_asked() || result.rc == RFL_EINTR;
		rc = print_summary(job, &result.row, err);
	} else {
		rc = note_refusal(job, run, label, &result.row, &why, err);
	}
	rfl_run_result_fini(&result);
	free(argv);
	return rc;
}

/* ---- whose turn it is ---- */

/* Was it done in the meantime, by another process? */
static enum rfl_rc look_again(const struct rfl_matrix_job *job, size_t run, bool *wanted,
			      struct rfl_err *err)
{
	struct rfl_matrix_view view;
	enum rfl_rc rc = rfl_cli_matrix_view(job->m, job->log_dir, &view, err);

	if (rc == RFL_OK) {
		const struct rfl_matrix_run *r = &view.cover.runs[run];

		*wanted = is_wanted(r, job->retry_failed) &&
			  (r->failed == job->failures[run] || was_interrupted(r));
	}
	rfl_matrix_view_fini(&view);
	return rc;
}

static void say_waiting(struct rfl_matrix_job *job, bool *said, const char *what)
{
	if (!*said && !job->cli->progress)
		rfl_log(RFL_LOG_INFO, "%swaiting: %s", job->prefix, what);
	rfl_cli_progress(job->cli, "waiting: %s", what);
	*said = true;
}

/* Until the device is ours; with `stopped` when a signal came first. */
static enum rfl_rc take_device(struct rfl_matrix_job *job, struct rfl_device_lock *lock,
			       struct rfl_err *err)
{
	bool busy = true, said = false;

	while (lock->n > 0) {
		enum rfl_rc rc = rfl_device_lock_try(lock, &busy, err);

		if (rc || !busy)
			return rc;
		say_waiting(job, &said, "another timed run is on this device");
		job->stopped = !pause_a_little();
		if (job->stopped)
			return RFL_OK;
	}
	return RFL_OK;
}

/* One for each of the processes that a run begins here (--world N). */
static size_t gpus_of(const struct rfl_matrix_cell *cell)
{
	int64_t n = 1;

	for (size_t i = 0; i < cell->noptions; i++)
		if (strcmp(cell->options[i].name, "world") == 0 && cell->options[i].n > 0 &&
		    rfl_num_parse_int(cell->options[i].values[0], "world", &n, NULL) != RFL_OK)
			n = 1; /* "env": a launcher's */
	return n > 1 ? (size_t)n : 1;
}

static enum rfl_rc run_on_device(struct rfl_matrix_job *job, size_t run, struct rfl_err *err)
{
	const char *dir = getenv("ROOFLINE_LOCK_DIR");
	const struct rfl_matrix_cell *cell = &job->m->cells[cell_of(job, run)];
	struct rfl_device_lock lock = { .n = 0 };
	enum rfl_rc rc;

	if (!job->share_device)
		rfl_device_lock_init(&lock, cell->backend, gpus_of(cell),
				     dir && *dir ? dir : LOCK_DIR);
	rc = take_device(job, &lock, err);
	if (rc == RFL_OK && !job->stopped)
		rc = execute(job, run, err);
	rfl_device_lock_release(&lock);
	return rc;
}

static uint64_t claim_of(const struct rfl_matrix_job *job, size_t run)
{
	const char *id = job->m->cells[cell_of(job, run)].id;
	char label[RFL_LABEL_MAX + 1];

	label_of(job, run, label);
	return rfl_hash64(rfl_hash64(0, id, strlen(id)), label, strlen(label));
}

/* One run, unless another process has it: then `busy`, or, with `wait`, when that has ended. */
static enum rfl_rc attempt(struct rfl_matrix_job *job, size_t run, bool wait, bool *busy,
			   struct rfl_err *err)
{
	const uint64_t claim = claim_of(job, run);
	char label[RFL_LABEL_MAX + 1];
	bool wanted = false, said = false;
	enum rfl_rc rc;

	label_of(job, run, label);
	for (;;) {
		rc = rfl_claim_try(job->claims, claim, busy, err);
		if (rc || (*busy && !wait))
			return rc;
		if (!*busy)
			break;
		say_waiting(job, &said, "another process does the last runs");
		job->stopped = !pause_a_little();
		if (job->stopped)
			return RFL_OK;
	}
	rc = look_again(job, run, &wanted, err);
	if (rc == RFL_OK && wanted) {
		announce(job, label);
		rc = run_on_device(job, run, err);
	}
	rfl_claim_release(job->claims, claim);
	return rc;
}

/* First what nobody has; what others had is moved behind it, and looked at again at the end. */
static enum rfl_rc run_all(struct rfl_matrix_job *job, struct rfl_err *err)
{
	size_t free_until = job->n; /* runs behind are another process's */
	enum rfl_rc rc = RFL_OK;

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
	return rc;
}

enum rfl_rc rfl_matrix_job_run(struct rfl_matrix_job *job, struct rfl_err *err)
{
	struct rfl_stop stop;
	enum rfl_rc rc;

	if (job->n == 0)
		return RFL_OK;
	rc = rfl_claims_open(job->log_dir, &job->claims, err);
	if (rc)
		return rc;
	rfl_stop_catch(&stop);
	rc = run_all(job, err);
	rfl_stop_restore(&stop);
	job->cli->line.prefix = NULL;
	rfl_cli_progress(job->cli, NULL);
	rfl_claims_close(job->claims);
	return rc;
}
