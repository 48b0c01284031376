/*
 * probe.c - the parent of cmd/probe.c: starts the child, reads its lines, and puts what became of
 * it into words.
 */
#include "cli/probe.h"

#include <string.h>

#include "base/proc.h"

#define TIMEOUT_S 120.0

/* Take the field after "probe\t<key>\t" out of one line of the child; NULL when it is another. */
static const char *field(struct rfl_arena *arena, const char *line, size_t len, const char *key)
{
	size_t skip = strlen("probe\t") + strlen(key) + 1;

	if (len < skip || strncmp(line, "probe\t", 6) != 0 ||
	    strncmp(line + 6, key, strlen(key)) != 0 || line[skip - 1] != '\t')
		return NULL;
	return rfl_arena_printf(arena, "%.*s", (int)(len - skip), line + skip);
}

static void read_lines(struct rfl_arena *arena, const char *text, struct rfl_probe *ret)
{
	while (*text != '\0') {
		size_t len = strcspn(text, "\n");
		const char *value;

		if ((value = field(arena, text, len, "library")))
			ret->library = value;
		else if ((value = field(arena, text, len, "blas")))
			ret->blas = value;
		else if ((value = field(arena, text, len, "devices")))
			ret->devices = value;
		else if ((value = field(arena, text, len, "no-gpu")))
			ret->no_gpu = value;
		else if ((value = field(arena, text, len, "reason")))
			ret->reason = value;
		text += len + (text[len] == '\n');
	}
}

/* The last line that the child wrote to standard error: usually the loader's complaint. */
static const char *last_words(struct rfl_arena *arena, const char *text)
{
	size_t end = strlen(text), begin;
	const char *words;

	while (end > 0 && (text[end - 1] == '\n' || text[end - 1] == ' '))
		end--;
	for (begin = end; begin > 0 && text[begin - 1] != '\n'; begin--)
		;
	if (end == begin)
		return "";
	words = rfl_arena_printf(arena, "; its last words: %.*s", (int)(end - begin), text + begin);
	return words ? words : "";
}

static const char *what_happened(struct rfl_arena *arena, const struct rfl_proc_result *r)
{
	const char *words = last_words(arena, rfl_buf_str(&r->err));

	if (r->timed_out)
		return rfl_arena_printf(arena, "did not answer within %.0f s%s", TIMEOUT_S, words);
	if (!r->exited)
		return rfl_arena_printf(arena, "crashed while it was opened (signal %d)%s",
					r->signal, words);
	return rfl_arena_printf(arena, "could not be opened (exit code %d)%s", r->exit_code, words);
}

enum rfl_rc rfl_probe_engine(struct rfl_cli *cli, const char *id, struct rfl_arena *arena,
			     struct rfl_probe *ret, struct rfl_err *err)
{
	const char *const argv[] = { cli->self, "-q", "probe", id, NULL };
	const struct rfl_proc_spec spec = {
		.argv = argv,
		.capture_stdout = true,
		.capture_stderr = true,
		.timeout_s = TIMEOUT_S,
	};
	struct rfl_proc_result result;
	enum rfl_rc rc;

	rc = rfl_proc_run(&spec, &result, err);
	if (rc != RFL_OK)
		goto done;
	*ret = (struct rfl_probe){ .devices = "" };
	read_lines(arena, rfl_buf_str(&result.out), ret);
	ret->ok = result.exited && result.exit_code == 0 && ret->devices[0] != '\0';
	if (!ret->ok && (!ret->reason || !result.exited || result.exit_code != 0))
		ret->reason = what_happened(arena, &result);
	if (!ret->ok && !ret->reason)
		rc = rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
done:
	rfl_proc_result_fini(&result);
	return rc;
}
