/*
 * fake_cuda.h - what the files of the fake driver share, and what it offers to other fakes, which
 * find it with fake_script_driver().
 */
#ifndef RFL_TESTS_FAKE_CUDA_H
#define RFL_TESTS_FAKE_CUDA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "runner/planned/cuda/cudnn.h"
#include "tests/fakes/fake_script.h"

#define DECLARE(member, symbol, arguments) RFL_EXPORT int symbol arguments;
RFL_CUDA_FUNCTIONS(DECLARE)
RFL_QUEUE_FUNCTIONS(DECLARE)
#undef DECLARE

/* Results without a row in machine/cuda.h. */
enum {
	FAKE_CUDA_INVALID_HANDLE = 400,
	FAKE_CUDA_NOT_READY = 600,
	FAKE_CUDA_CAPTURE_UNSUPPORTED = 900,
	FAKE_CUDA_CAPTURE_INVALIDATED = 901,
	FAKE_CUDA_CAPTURE_UNMATCHED = 903,
	FAKE_CUDA_CAPTURE_ISOLATION = 905,
	FAKE_CUDA_CAPTURE_IMPLICIT = 906,
	FAKE_CUDA_CAPTURE_WRONG_THREAD = 908,
};

/* The output of the fake NVRTC begins with it; the options follow, one a line. */
#define FAKE_NVRTC_MARKER "// compiled by the fake NVRTC\n"

extern struct fake_script fake_cuda_script;

/* Log a call that needs the context; what it must return at once, or 0. */
int fake_cuda_enter(const char *call);
double fake_cuda_clock(void);
extern int fake_cuda_pinned; /* allocations of host memory */

/* ---- exported ---- */

/* Queue work on a stream, or record it while the stream is captured; `argument` is copied. */
RFL_EXPORT int fake_cuda_submit(struct rfl_cuda_stream *stream, void (*run)(const void *argument),
				const void *argument, size_t bytes);
/* Take time of the GPU: an amount of one kind of work. */
RFL_EXPORT void fake_cuda_spend(const char *what, double amount, double usual);
/* Does one allocation hold all of it? */
RFL_EXPORT bool fake_cuda_owns(uint64_t address, size_t size);
/* Is a device's context current? */
RFL_EXPORT bool fake_cuda_current(void);

/* ---- fake_cuda_queue.c ---- */

/* A call that captures do not allow on their thread: the code to return, or 0. */
int fake_cuda_forbidden(const char *call);
/* What the default stream waits for; a code if there is a capture that it must not wait for. */
int fake_cuda_settle(const char *call);
/* Finish the work of all streams. */
void fake_cuda_drain(void);
/* What is left open. */
struct fake_cuda_open {
	int events, streams, graphs, execs;
};
struct fake_cuda_open fake_cuda_queue_open(void);
void fake_cuda_queue_reset(void);

/* ---- fake_cuda_twins.c: modules of the fake NVRTC ---- */

struct fake_cuda_twins;
int fake_cuda_twins_load(const char *image, int capability, struct fake_cuda_twins **ret);
void fake_cuda_twins_free(struct fake_cuda_twins *twins);
int fake_cuda_twins_find(struct fake_cuda_twins *twins, const char *name,
			 struct rfl_cuda_function **ret);
/* Is it a function of such a module? */
bool fake_cuda_twins_own(const struct rfl_cuda_function *function);
int fake_cuda_twins_launch(struct rfl_cuda_function *function, const unsigned grid[3],
			   const unsigned block[3], unsigned shared_bytes,
			   struct rfl_cuda_stream *stream, void **arguments, void **extra);

#endif
