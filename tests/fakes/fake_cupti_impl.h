/*
 * fake_cupti_impl.h - between the files of the fake libcupti: the script, and the layout of the
 * images that a caller carries from one call to the next without looking inside.
 */
#ifndef RFL_TESTS_FAKE_CUPTI_IMPL_H
#define RFL_TESTS_FAKE_CUPTI_IMPL_H

#include <stdint.h>
#include <string.h>

#include "base/compiler.h"
#include "profile/cupti/api.h"
#include "tests/fakes/fake_script.h"

#define DECLARE(member, symbol, arguments) RFL_EXPORT int symbol arguments;
RFL_CUPTI_FUNCTIONS(DECLARE)
#undef DECLARE

extern struct fake_script fake_cupti_script;

/* Log, fail if the script says so; then check the struct. */
#define ENTER()                                                              \
	do {                                                                 \
		int told_ = fake_script_enter(&fake_cupti_script, __func__); \
		if (told_)                                                   \
			return told_;                                        \
	} while (0)
#define ENTER_STRUCT(name)                                                                \
	do {                                                                              \
		ENTER();                                                                  \
		if (p->struct_size == (size_t)rfl_cupti_size_##name && !p->priv)          \
			break;                                                            \
		fake_script_complain(&fake_cupti_script, "%s: struct size %zu", __func__, \
				     p->struct_size);                                     \
		return RFL_CUPTI_INVALID_PARAMETER;                                       \
	} while (0)

/* The size that a call asks for: "huge=CALL" makes it larger than any memory. */
static inline size_t fake_size(const char *call, size_t size)
{
	char huge[FAKE_VALUE_MAX];

	return fake_script_text(&fake_cupti_script, "huge", huge) && strcmp(huge, call) == 0
		       ? SIZE_MAX / 2
		       : size;
}

/* A configuration of our own; a forwarded one has no such head. */
#define FAKE_CONFIG_MAGIC 0x47464346u
struct fake_config {
	uint32_t magic, passes;
	uint64_t metrics; /* a fingerprint */
	bool refused;     /* by the device, although the host has made it */
	char rest[111];
};

/* Counter data: a head, then a range after the other. */
#define FAKE_DATA_MAGIC 0x41544144u
struct fake_range {
	char name[256];
	size_t passes; /* that had it */
	struct fake_work work;
	double wall_s;
};
struct fake_data {
	uint32_t magic;
	size_t max_ranges, n, dropped;
	size_t passes; /* that there are */
	struct fake_range ranges[];
};

/* Passes of a configuration image, ours or a real one; 0: it is no image. */
size_t fake_config_passes(const uint8_t *image, size_t size);
/* Whether it is ours and has a metric that the device refuses. */
bool fake_config_refused(const uint8_t *image, size_t size);

#endif
