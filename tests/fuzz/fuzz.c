/*
 * fuzz.c - what the targets share: the input as a file, the check of messages, and formulas that
 * are parsed once for all inputs. The linker puts the functions __wrap_x() in the place of x().
 */
#include "fuzz.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/csv.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "profile/formula.h"

/* ---- the input as a file ---- */

static const uint8_t *memory;
static size_t memory_size;
static const char memory_name[] = "the input";

const char *fuzz_memory(const uint8_t *data, size_t size)
{
	memory = data;
	memory_size = size;
	return memory_name;
}

enum rfl_rc __real_rfl_file_read(const char *path, struct rfl_buf *out, struct rfl_err *err);
enum rfl_rc __wrap_rfl_file_read(const char *path, struct rfl_buf *out, struct rfl_err *err);
enum rfl_rc __real_rfl_csv_open(const char *path, struct rfl_csv **ret, struct rfl_err *err);
enum rfl_rc __wrap_rfl_csv_open(const char *path, struct rfl_csv **ret, struct rfl_err *err);

enum rfl_rc __wrap_rfl_file_read(const char *path, struct rfl_buf *out, struct rfl_err *err)
{
	if (path != memory_name)
		return __real_rfl_file_read(path, out, err);
	rfl_buf_append(out, memory, memory_size);
	return rfl_buf_check(out, path, err);
}

enum rfl_rc __wrap_rfl_csv_open(const char *path, struct rfl_csv **ret, struct rfl_err *err)
{
	if (path != memory_name)
		return __real_rfl_csv_open(path, ret, err);
	return rfl_csv_open_text((const char *)memory, memory_size, path, ret, err);
}

static char path[64];

static void remove_file(void)
{
	(void)unlink(path);
}

/* In memory where the system has such a directory: thousands of inputs a second. */
static void make_file(void)
{
	static const char *const folders[] = { "/dev/shm", "/tmp" };

	for (size_t i = 0; i < RFL_ARRAY_LEN(folders); i++) {
		int fd;

		(void)snprintf(path, sizeof(path), "%s/roofline-fuzz-XXXXXX", folders[i]);
		fd = mkstemp(path);
		if (fd >= 0) {
			(void)close(fd);
			(void)atexit(remove_file);
			rfl_log_set(NULL, NULL, RFL_LOG_ERROR);
			return;
		}
	}
	fuzz_fail("a scratch file", __FILE__, __LINE__);
}

const char *fuzz_file(const uint8_t *data, size_t size)
{
	FILE *f;

	if (!path[0])
		make_file();
	f = fopen(path, "wb");
	FUZZ_ASSERT(f != NULL);
	FUZZ_ASSERT(size == 0 || fwrite(data, 1, size, f) == size);
	FUZZ_ASSERT(fclose(f) == 0);
	return path;
}

/* ---- formulas ---- */

enum rfl_rc __real_rfl_formulas_new(const char *chip, struct rfl_formulas **ret,
				    struct rfl_err *err);
enum rfl_rc __wrap_rfl_formulas_new(const char *chip, struct rfl_formulas **ret,
				    struct rfl_err *err);
void __real_rfl_formulas_free(struct rfl_formulas *f);
void __wrap_rfl_formulas_free(struct rfl_formulas *f);

/* Parsed for every capture, they would take nearly all of the time. Nothing changes them. */
static struct rfl_formulas *kept[256];

enum rfl_rc __wrap_rfl_formulas_new(const char *chip, struct rfl_formulas **ret,
				    struct rfl_err *err)
{
	static char chips[RFL_ARRAY_LEN(kept)][64];
	const char *name = chip ? chip : "any";
	size_t i = 0;
	enum rfl_rc rc;

	while (kept[i] && strcmp(chips[i], name) != 0)
		i++;
	if (!kept[i]) {
		FUZZ_ASSERT(i + 1 < RFL_ARRAY_LEN(kept));
		rc = __real_rfl_formulas_new(chip, &kept[i], err);
		if (rc != RFL_OK)
			return rc;
		FUZZ_ASSERT(strlen(name) < sizeof(chips[i]));
		(void)snprintf(chips[i], sizeof(chips[i]), "%s", name);
	}
	*ret = kept[i];
	return RFL_OK;
}

void __wrap_rfl_formulas_free(struct rfl_formulas *f)
{
	for (size_t i = 0; kept[i]; i++)
		if (f == kept[i])
			return;
	__real_rfl_formulas_free(f);
}

/* ---- checks ---- */

/* Memory that was freed comes back soon: otherwise each input pays for fresh pages. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "quarantine_size_mb=8";
}

bool fuzz_all_due;

bool fuzz_due(const uint8_t *data, size_t size, unsigned check)
{
	return fuzz_all_due || rfl_hash64(0, data, size) % 16 == check;
}

static bool is_one_line(const char *msg)
{
	size_t left = strlen(msg);

	for (size_t n; left > 0; msg += n, left -= n) {
		n = rfl_text_utf8(msg, left);
		if (n == 0 || rfl_text_control(msg))
			return false;
	}
	return true;
}

void fuzz_check(enum rfl_rc rc, const void *ret, const struct rfl_err *err, const char *file)
{
	FUZZ_ASSERT((rc == RFL_OK) == (ret != NULL));
	FUZZ_ASSERT(rc == err->rc);
	FUZZ_ASSERT((rc == RFL_OK) == (err->msg[0] == '\0'));
	FUZZ_ASSERT(rc == RFL_OK || strstr(err->msg, file));
	FUZZ_ASSERT(is_one_line(err->msg));
}

void fuzz_fail(const char *condition, const char *file, int line)
{
	fprintf(stderr, "%s:%d: %s does not hold\n", file, line, condition);
	abort();
}
