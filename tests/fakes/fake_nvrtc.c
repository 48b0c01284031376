/*
 * fake_nvrtc.c - libnvrtc.so.13 for tests: it checks the source of the planned engine's kernels and
 * the options; what it "compiles" is a list of the options, which the fake driver loads as the
 * CPU's twins of the kernels. Steered by FAKE_NVRTC or fake_nvrtc_control(); see README.md.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runner/planned/cuda/arguments.h"
#include "tests/fakes/fake_cuda.h"

#define DECLARE(member, symbol, arguments) RFL_EXPORT int symbol arguments;
RFL_NVRTC_FUNCTIONS(DECLARE)
#undef DECLARE
RFL_EXPORT void fake_nvrtc_control(const char *script);
RFL_EXPORT const char *fake_nvrtc_log(void);
RFL_EXPORT const char *fake_nvrtc_complaints(void);
RFL_EXPORT int fake_nvrtc_open(void);

/* nvrtcResult */
enum {
	OUT_OF_MEMORY = 1,
	INVALID_INPUT = 3,
	INVALID_PROGRAM = 4,
	INVALID_OPTION = 5,
	COMPILATION = 6,
};

struct rfl_nvrtc_program {
	char *source;
	char output[4096]; /* empty: not compiled */
	char log[1024];
};

static struct fake_script script = { .variable = "FAKE_NVRTC" };
static int programs;

#define complain(...) fake_script_complain(&script, __VA_ARGS__)
#define ENTER(program)                                           \
	do {                                                     \
		int code = fake_script_enter(&script, __func__); \
		if (code)                                        \
			return code;                             \
		if (!(program))                                  \
			return INVALID_PROGRAM;                  \
	} while (0)

void fake_nvrtc_control(const char *text)
{
	fake_script_set(&script, text);
	programs = 0;
}

const char *fake_nvrtc_log(void)
{
	return script.log;
}

const char *fake_nvrtc_complaints(void)
{
	return script.complaints;
}

int fake_nvrtc_open(void)
{
	return programs;
}

__attribute__((destructor)) static void at_exit(void)
{
	if (programs)
		fprintf(stderr, "FAKE_NVRTC: LEAK: %d programs\n", programs);
}

int nvrtcCreateProgram(struct rfl_nvrtc_program **program, const char *source, const char *name,
		       int nheaders, const char *const *headers, const char *const *names)
{
	struct rfl_nvrtc_program *p;

	ENTER(program);
	(void)name, (void)headers, (void)names;
	if (!source || nheaders < 0)
		return INVALID_INPUT;
	p = calloc(1, sizeof(*p));
	if (p)
		p->source = strdup(source);
	if (!p || !p->source) {
		free(p);
		return OUT_OF_MEMORY;
	}
	programs++;
	*program = p;
	return 0;
}

int nvrtcDestroyProgram(struct rfl_nvrtc_program **program)
{
	ENTER(program && *program);
	free((*program)->source);
	free(*program);
	*program = NULL;
	programs--;
	return 0;
}

/* The first kernel that the source does not define; NULL: none. */
static const char *missing(const char *source)
{
#define NAME(name) { "rfl_k_" #name " ", "(" #name },
	static const struct {
		const char *argument, *kernel;
	} kernels[] = { RFL_KERNELS(NAME) };
#undef NAME

	for (size_t i = 0; i < RFL_ARRAY_LEN(kernels); i++)
		if (!strstr(source, kernels[i].argument) || !strstr(source, kernels[i].kernel))
			return kernels[i].kernel + 1;
	return NULL;
}

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

int nvrtcCompileProgram(struct rfl_nvrtc_program *program, int noptions, const char *const *options)
{
	static const char architecture[] = "--gpu-architecture=sm_";
	static const char type[] = "-DRFL_KERNEL_TYPE=";
	static const char *const others[] = { "-D",
					      "--define-macro=",
					      "--std=",
					      "--fmad=",
					      "--device-as-default-execution-space",
					      "-default-device",
					      "--generate-line-info",
					      "-lineinfo",
					      "--restrict",
					      "--extra-device-vectorization" };
	int architectures = 0, types = 0;
	const char *lacks;
	size_t len;

	ENTER(program);
	len = (size_t)snprintf(program->output, sizeof(program->output), "%s", FAKE_NVRTC_MARKER);
	for (int i = 0; i < noptions; i++) {
		const char *o = options[i];
		bool known = begins(o, architecture) || begins(o, type);

		architectures += begins(o, architecture);
		types += begins(o, type) && o[sizeof(type) - 1] >= '0' &&
			 o[sizeof(type) - 1] <= '2' && !o[sizeof(type)];
		for (size_t k = 0; k < RFL_ARRAY_LEN(others); k++)
			known = known || begins(o, others[k]);
		if (!known)
			complain("nvrtcCompileProgram: the option %s", o);
		if (!known || len + strlen(o) + 2 > sizeof(program->output) ||
		    (begins(o, architecture) && strtod(o + sizeof(architecture) - 1, NULL) < 75)) {
			program->output[0] = '\0';
			return INVALID_OPTION;
		}
		len += (size_t)snprintf(program->output + len, sizeof(program->output) - len,
					"%s\n", o);
	}
	lacks = missing(program->source);
	if (architectures != 1 || types != 1)
		complain("nvrtcCompileProgram: one architecture and one type are expected");
	if (lacks)
		complain("nvrtcCompileProgram: the source has no kernel rfl_k_%s", lacks);
	if (!lacks && architectures == 1 && types == 1 &&
	    fake_script_number(&script, "broken", 0) == 0)
		return 0;
	program->output[0] = '\0';
	snprintf(program->log, sizeof(program->log),
		 "kernels.cu(1): error: identifier \"broken\" is undefined\n\n"
		 "1 error detected in the compilation of \"kernels.cu\".\n");
	return COMPILATION;
}

static int size_of(const char *text, size_t *size)
{
	*size = strlen(text) + 1;
	return 0;
}

int nvrtcGetCUBINSize(struct rfl_nvrtc_program *program, size_t *size)
{
	ENTER(program);
	return program->output[0] ? size_of(program->output, size) : INVALID_PROGRAM;
}

int nvrtcGetCUBIN(struct rfl_nvrtc_program *program, char *cubin)
{
	ENTER(program);
	if (!program->output[0])
		return INVALID_PROGRAM;
	memcpy(cubin, program->output, strlen(program->output) + 1);
	return 0;
}

int nvrtcGetProgramLogSize(struct rfl_nvrtc_program *program, size_t *size)
{
	ENTER(program);
	return size_of(program->log, size);
}

int nvrtcGetProgramLog(struct rfl_nvrtc_program *program, char *log)
{
	ENTER(program);
	memcpy(log, program->log, strlen(program->log) + 1);
	return 0;
}
