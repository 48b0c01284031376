/*
 * fake_script.h - what the fake libraries share: a script of "key=value;key=value" that says
 * how they behave, the log of calls, and complaints about a caller who breaks the rules.
 */
#ifndef RFL_TESTS_FAKE_SCRIPT_H
#define RFL_TESTS_FAKE_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

#define FAKE_TEXT_MAX  ((size_t)1 << 20)
#define FAKE_VALUE_MAX 512

struct fake_script {
	const char *variable; /* of the environment */
	bool read, overflow;  /* overflow: the log is full, and calls are missing in it */
	int fault; /* of a call before, as of a kernel that runs while the program continues */
	char text[4096];
	size_t log_len, complaints_len;
	char log[FAKE_TEXT_MAX];        /* a line per call */
	char complaints[FAKE_TEXT_MAX]; /* a line per broken rule */
};

/* Take a script (NULL: from the environment) and forget log and complaints. */
void fake_script_set(struct fake_script *s, const char *text);

/* The next value of a key after *at (begin with 0); false when there is none. */
bool fake_script_next(struct fake_script *s, const char *key, size_t *at, char out[FAKE_VALUE_MAX]);
/* The first value of a key. */
bool fake_script_text(struct fake_script *s, const char *key, char out[FAKE_VALUE_MAX]);
double fake_script_number(struct fake_script *s, const char *key, double otherwise);

/* Log a call; the code that "fail=CALL:CODE" or "fail=CALL:CODE@N" (the n-th call) wants, or 0.
 * After "late=CALL:CODE", written likewise, CALL succeeds and every call after it fails. */
int fake_script_enter(struct fake_script *s, const char *call);
void fake_script_complain(struct fake_script *s, const char *fmt, ...) RFL_PRINTF(2, 3);

/* A function of the fake driver in this process; NULL: it is not loaded. */
void *fake_script_driver(const char *name);

/* What the fake GPU did: the fake counters see it. */
struct fake_work {
	double copied_bytes;
	double fma_f32;
	double fma_patched;     /* those in modules loaded since the profiler was initialised */
	double tensor_flops[3]; /* fp16, bf16, tf32 */
};

#endif
