/*
 * fake_gpu.h - the fake driver and the fake CUPTI (tests/fakes) in this process, and a workload
 * that notes what is done to it.
 */
#ifndef RFL_TESTS_FAKE_GPU_H
#define RFL_TESTS_FAKE_GPU_H

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "profile/capture.h"
#include "profile/source.h"
#include "tests/unit/rfl_test.h"

static struct {
	void (*cuda_control)(const char *script);
	int (*cuda_leaks)(char *out, size_t size);
	const char *(*cuda_log)(void);
	const char *(*cuda_complaints)(void);
	void (*cupti_control)(const char *script);
	const char *(*cupti_log)(void);
	const char *(*cupti_complaints)(void);
} fake;

static void *fake_open(const char *name)
{
	char path[4096];
	void *dl;

	snprintf(path, sizeof(path), "%s/tests/fakes/%s", RFL_TEST_BUILD, name);
	dl = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!dl)
		fail_msg("%s", dlerror());
	return dl;
}

static void fake_symbol(void *dl, const char *name, void *slot)
{
	void *address = dlsym(dl, name);

	if (!address)
		fail_msg("%s is not in the fake library", name);
	memcpy(slot, &address, sizeof(address));
}

/* From here on "libcuda.so.1" is the fake one, and libcupti too. */
static void fake_load(void)
{
	void *cuda = fake_open("libcuda.so.1"), *cupti = fake_open("libcupti.so.13");

	fake_symbol(cuda, "fake_cuda_control", &fake.cuda_control);
	fake_symbol(cuda, "fake_cuda_leaks", &fake.cuda_leaks);
	fake_symbol(cuda, "fake_cuda_log", &fake.cuda_log);
	fake_symbol(cuda, "fake_cuda_complaints", &fake.cuda_complaints);
	fake_symbol(cupti, "fake_cupti_control", &fake.cupti_control);
	fake_symbol(cupti, "fake_cupti_log", &fake.cupti_log);
	fake_symbol(cupti, "fake_cupti_complaints", &fake.cupti_complaints);
}

static void fake_scripts(const char *cuda, const char *cupti)
{
	if (!fake.cuda_control)
		fake_load();
	fake.cuda_control(cuda);
	fake.cupti_control(cupti);
}

static inline size_t fake_calls(const char *log, const char *call)
{
	size_t n = 0, len = strlen(call);

	for (const char *at = log; (at = strstr(at, call)); at += len)
		n += at[len] == '\n' && (at == log || at[-1] == '\n');
	return n;
}

/* Nothing is left open, and no rule of CUPTI was broken. */
static void fake_is_clean(void)
{
	char text[256];

	if (fake.cuda_leaks(text, sizeof(text)))
		fail_msg("left open: %s", text);
	assert_string_equal(fake.cuda_complaints(), "");
	assert_string_equal(fake.cupti_complaints(), "");
	assert_int_equal(fake_calls(fake.cupti_log(), "cuptiProfilerHostInitialize"),
			 fake_calls(fake.cupti_log(), "cuptiProfilerHostDeinitialize"));
}

/* A step of so many ranges. What happens to it: s saved, b put back, r run. */
struct fake_step {
	enum rfl_range_kind kind;
	const char *const *names; /* NULL-terminated */
	char happened[64];
	int fails_at;   /* the n-th run fails; 0: never */
	int differs_at; /* the n-th run has another range; 0: never */
	enum rfl_rc save_rc;
	int runs;
};

static void fake_note(struct fake_step *s, char what)
{
	size_t len = strlen(s->happened);

	if (len + 1 < sizeof(s->happened))
		s->happened[len] = what;
}

static enum rfl_rc fake_step_run(void *ctx, struct rfl_ranges *ranges, struct rfl_err *err)
{
	struct fake_step *s = ctx;
	enum rfl_rc rc = RFL_OK;

	fake_note(s, 'r');
	s->runs++;
	for (size_t i = 0; s->names[i] && rc == RFL_OK; i++) {
		rc = ranges->begin(ranges, s->kind,
				   s->runs == s->differs_at ? "another" : s->names[i], err);
		if (rc == RFL_OK && s->runs == s->fails_at)
			return rfl_fail(err, RFL_EDEVMEM, 2, "out of device memory");
	}
	return rc;
}

static enum rfl_rc fake_step_save(void *ctx, struct rfl_err *err)
{
	struct fake_step *s = ctx;

	fake_note(s, 's');
	return s->save_rc == RFL_OK ? RFL_OK
				    : rfl_fail(err, s->save_rc, 0, "this engine keeps no state");
}

static enum rfl_rc fake_step_restore(void *ctx, struct rfl_err *err)
{
	(void)err;
	fake_note(ctx, 'b');
	return RFL_OK;
}

static inline struct rfl_workload fake_workload(struct fake_step *s)
{
	return (struct rfl_workload){
		.run = fake_step_run, .save = fake_step_save, .restore = fake_step_restore, .ctx = s
	};
}

/* ---- looking into captures ---- */

static inline const struct rfl_range *fake_range(const struct rfl_capture *c,
						 enum rfl_range_kind kind, const char *name)
{
	for (size_t i = 0; i < c->nranges; i++)
		if (c->ranges[i].kind == kind && strcmp(c->ranges[i].name, name) == 0)
			return &c->ranges[i];
	return NULL;
}

static inline const struct rfl_metric *fake_metric(const struct rfl_range *r, const char *name)
{
	for (size_t i = 0; i < r->nmetrics; i++)
		if (strcmp(r->metrics[i].name, name) == 0)
			return &r->metrics[i];
	return NULL;
}

/* The first refusal or note that has the word, or NULL. */
static inline const char *fake_noted(const struct rfl_capture *c, const char *word)
{
	for (size_t i = 0; i < c->nrefusals; i++)
		if (strstr(c->refusals[i].reason, word))
			return c->refusals[i].reason;
	for (size_t i = 0; i < c->nnotes; i++)
		if (strstr(c->notes[i], word))
			return c->notes[i];
	return NULL;
}

#endif
