/*
 * files.c - the files of one run besides its row: the table of steps, and the process record in
 * the words of GNU time's -v.
 */
#include "runner/run/parts.h"

#include <errno.h>
#include <inttypes.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/csv.h"
#include "base/file.h"
#include "base/num.h"

/* ---- the table of steps ---- */

/* Of ten million steps the table has a gigabyte: it is never in memory as a whole. */
#define PIECE ((size_t)8 << 20)

static const char *const step_columns[] = {
	"step",        "data_wait_ms", "upload_ms", "forward_ms",
	"backward_ms", "optimizer_ms", "step_ms",   "loss",
};

static void put_step(struct rfl_buf *out, int64_t i, const struct rfl_burst_step *s)
{
	const double values[] = {
		s->data_wait_s * 1e3,
		s->upload_s * 1e3,
		s->forward_s * 1e3,
		s->backward_s * 1e3,
		s->optimizer_s * 1e3,
		s->total_s * 1e3,
		s->loss,
	};
	char text[RFL_ARRAY_LEN(step_columns)][RFL_NUM_MAX];
	const char *fields[RFL_ARRAY_LEN(step_columns)] = { text[0] };

	snprintf(text[0], sizeof(text[0]), "%" PRId64, i);
	for (size_t v = 0; v < RFL_ARRAY_LEN(values); v++)
		fields[v + 1] = rfl_num_exact(values[v], text[v + 1]);
	rfl_csv_write_row(out, fields, RFL_ARRAY_LEN(fields));
}

/* Begin the file with the first piece, and add the others to it. */
static enum rfl_rc write_piece(const char *path, struct rfl_buf *piece, bool first,
			       struct rfl_err *err)
{
	enum rfl_rc rc = rfl_buf_check(piece, path, err), unlocked;
	int fd = -1;

	if (rc == RFL_OK && first) {
		rc = rfl_file_create(path, piece->data, piece->len, err);
	} else if (rc == RFL_OK) {
		rc = rfl_file_lock(path, &fd, err);
		if (rc == RFL_OK)
			rc = rfl_file_append(fd, path, piece->data, piece->len, err);
		unlocked = rfl_file_unlock(fd, path, err);
		rc = rc ? rc : unlocked;
		if (rc)
			(void)unlink(path); /* half a table is none */
	}
	rfl_buf_reset(piece);
	return rc;
}

enum rfl_rc rfl_run__write_steps(const char *path, const struct rfl_burst *burst,
				 struct rfl_err *err)
{
	enum rfl_rc rc = rfl_file_mkdirs_for(path, err);
	struct rfl_buf piece;
	bool first = true;

	rfl_buf_init(&piece, 0);
	rfl_csv_write_row(&piece, step_columns, RFL_ARRAY_LEN(step_columns));
	for (int64_t i = 0; i < burst->nsteps && rc == RFL_OK; i++) {
		put_step(&piece, i, &burst->steps[i]);
		if (piece.len < PIECE && i + 1 < burst->nsteps && !piece.failed)
			continue;
		rc = write_piece(path, &piece, first, err);
		first = false;
	}
	rfl_buf_fini(&piece);
	return rc;
}

/* ---- the process record ---- */

static void put_measured(struct rfl_buf *out, const struct rfl_ledger_row *row)
{
	char backend[16];

	if (isnan(row->wall_s))
		return;
	snprintf(backend, sizeof(backend), "%s", row->backend ? row->backend : "");
	for (char *p = backend; *p; p++)
		*p = (char)toupper((unsigned char)*p);
	rfl_buf_printf(out,
		       "MEASURED_SEC=%.6f IMGS_PER_SEC=%.2f BATCH=%" PRId64 " ARCH=%s BACKEND=%s\n",
		       row->wall_s, row->samples_per_s, row->batch, row->model, backend);
}

static void put_elapsed(struct rfl_buf *out, double wall_s)
{
	int64_t centi = (int64_t)llrint(wall_s * 100.0), s = centi / 100;

	rfl_buf_puts(out, "\tElapsed (wall clock) time (h:mm:ss or m:ss): ");
	if (s >= 3600)
		rfl_buf_printf(out, "%" PRId64 ":%02" PRId64 ":%02" PRId64 "\n", s / 3600,
			       s / 60 % 60, s % 60);
	else
		rfl_buf_printf(out, "%" PRId64 ":%02" PRId64 ".%02" PRId64 "\n", s / 60, s % 60,
			       centi % 100);
}

/* Line for line as GNU time 1.9 writes it. The zeros are its own: Linux does not count these. */
static void put_record(struct rfl_buf *out, const char *command_line,
		       const struct rfl_proc_result *p)
{
	double busy = p->wall_s > 0 ? (p->user_s + p->system_s) / p->wall_s * 100.0 : 0;

	if (!p->exited)
		rfl_buf_printf(out, "Command terminated by signal %d\n", p->signal);
	else if (p->exit_code)
		rfl_buf_printf(out, "Command exited with non-zero status %d\n", p->exit_code);
	rfl_buf_printf(out, "\tCommand being timed: \"%s\"\n", command_line);
	rfl_buf_printf(out, "\tUser time (seconds): %.2f\n", p->user_s);
	rfl_buf_printf(out, "\tSystem time (seconds): %.2f\n", p->system_s);
	rfl_buf_printf(out, "\tPercent of CPU this job got: %.0f%%\n", busy);
	put_elapsed(out, p->wall_s);
	rfl_buf_puts(out, "\tAverage shared text size (kbytes): 0\n"
			  "\tAverage unshared data size (kbytes): 0\n"
			  "\tAverage stack size (kbytes): 0\n"
			  "\tAverage total size (kbytes): 0\n");
	rfl_buf_printf(out, "\tMaximum resident set size (kbytes): %.0f\n",
		       p->max_rss_bytes / 1024.0);
	rfl_buf_puts(out, "\tAverage resident set size (kbytes): 0\n");
	rfl_buf_printf(out, "\tMajor (requiring I/O) page faults: %ld\n", p->major_faults);
	rfl_buf_printf(out, "\tMinor (reclaiming a frame) page faults: %ld\n", p->minor_faults);
	rfl_buf_printf(out, "\tVoluntary context switches: %ld\n", p->voluntary_switches);
	rfl_buf_printf(out, "\tInvoluntary context switches: %ld\n", p->involuntary_switches);
	rfl_buf_puts(out, "\tSwaps: 0\n");
	rfl_buf_printf(out, "\tFile system inputs: %ld\n", p->fs_inputs);
	rfl_buf_printf(out, "\tFile system outputs: %ld\n", p->fs_outputs);
	rfl_buf_puts(out, "\tSocket messages sent: 0\n"
			  "\tSocket messages received: 0\n"
			  "\tSignals delivered: 0\n");
	rfl_buf_printf(out, "\tPage size (bytes): %ld\n", sysconf(_SC_PAGESIZE));
	rfl_buf_printf(out, "\tExit status: %d\n", p->exited ? p->exit_code : 0);
}

/* <label>_<stamp>.txt; a second run of the second gets <label>_<stamp>_2.txt, and so on. */
static enum rfl_rc create_stamped(const char *dir, const char *label, const struct rfl_buf *text,
				  char *path, size_t path_size, struct rfl_err *err)
{
	struct rfl_err why = RFL_ERR_INIT;
	char stamp[RFL_TIME_ISO_SIZE];
	int len = snprintf(path, path_size, "%s", dir);

	rfl_clock_stamp(stamp);
	for (unsigned n = 1; len >= 0 && (size_t)len < path_size; n++) {
		rfl_err_clear(&why);
		if (n == 1)
			len = snprintf(path, path_size, "%s/%s_%s.txt", dir, label, stamp);
		else
			len = snprintf(path, path_size, "%s/%s_%s_%u.txt", dir, label, stamp, n);
		if (rfl_file_create(path, text->data, text->len, &why) == RFL_OK)
			return RFL_OK;
		if (why.native != EEXIST)
			return rfl_fail(err, why.rc, why.native, "%s", why.msg);
	}
	return rfl_fail(err, RFL_EIO, ENAMETOOLONG, "%s: %s", dir, strerror(ENAMETOOLONG));
}

enum rfl_rc rfl_run__write_time_log(const char *dir, const char *command_line,
				    const struct rfl_ledger_row *row,
				    const struct rfl_proc_result *process, char *path,
				    size_t path_size, struct rfl_err *err)
{
	struct rfl_buf out;
	enum rfl_rc rc;

	rfl_buf_init(&out, 0);
	put_measured(&out, row);
	put_record(&out, command_line, process);
	rc = rfl_buf_check(&out, "time log", err);
	if (rc == RFL_OK)
		rc = rfl_file_mkdirs(dir, err);
	if (rc == RFL_OK)
		rc = create_stamped(dir, row->label, &out, path, path_size, err);
	rfl_buf_fini(&out);
	return rc;
}
