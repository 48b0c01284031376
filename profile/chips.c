/* chips.c - the table of chips, and the search for a chip by device name. */
#include "profile/chips.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/text.h"

/* The chips of CUPTI 13.0. An unknown device is treated as the first chip of its capability. */
static const struct rfl_chip chips[] = {
	{ "GV100", 70, "volta", "V100, TITAN V, Quadro GV100" },
	{ "GV11B", 72, "xavier", "Xavier" },
	{ "TU102", 75, "turing", "RTX 2080 Ti, TITAN RTX, Quadro RTX 6000, Quadro RTX 8000" },
	{ "TU104", 75, "turing", "T4, RTX 2080, RTX 2070 SUPER, Quadro RTX 5000" },
	{ "TU106", 75, "turing", "RTX 2070, RTX 2060" },
	{ "TU116", 75, "turing-16", "GTX 1660, GTX 1650 SUPER" },
	{ "TU117", 75, "turing-16", "GTX 1650, T400, T600, T1000" },
	{ "GA100", 80, "ampere-100", "A100, A30, A800" },
	{ "GA102", 86, "ampere", "A10, A40, RTX A6000, RTX A5000, RTX 3090, RTX 3080" },
	{ "GA103", 86, "ampere", "RTX 3080 Ti Laptop" },
	{ "GA104", 86, "ampere", "RTX 3070, RTX 3060 Ti, RTX A4000" },
	{ "GA106", 86, "ampere", "RTX 3060, RTX A2000" },
	{ "GA107", 86, "ampere", "A2, A16, RTX 3050" },
	{ "GA10B", 87, "orin", "Orin" },
	{ "GH100", 90, "hopper", "H100, H200, H800, H20, GH200" },
	{ "AD102", 89, "ada", "L40S, L40, RTX 4090, RTX 6000 Ada" },
	{ "AD103", 89, "ada", "RTX 4080, RTX 4070 Ti SUPER" },
	{ "AD104", 89, "ada", "L4, RTX 4070" },
	{ "AD106", 89, "ada", "RTX 4060 Ti" },
	{ "AD107", 89, "ada", "RTX 4060" },
	{ "GB100", 100, "blackwell-100", "B100, B200, GB200" },
	{ "GB102", 100, "blackwell-100", NULL },
	{ "GB110", 103, "blackwell-110", "B300, GB300" },
	{ "GB10B", 110, "thor", "Thor" },
	{ "GB202", 120, "blackwell-200", "RTX 5090, RTX PRO 6000 Blackwell" },
	{ "GB203", 120, "blackwell-200", "RTX 5080, RTX 5070 Ti" },
	{ "GB205", 120, "blackwell-200", "RTX 5070" },
	{ "GB206", 120, "blackwell-200", "RTX 5060" },
	{ "GB207", 120, "blackwell-200", "RTX 5050" },
	{ "GB20B", 121, "spark", "GB10" },
};

const struct rfl_chip *rfl_chip_at(size_t i)
{
	return i < RFL_ARRAY_LEN(chips) ? &chips[i] : NULL;
}

const struct rfl_chip *rfl_chip_find(const char *name)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(chips); i++)
		if (strcasecmp(chips[i].name, name) == 0)
			return &chips[i];
	return NULL;
}

/* Compare `text` with a product of `len` characters. Only letters, ignoring case, and digits
 * count. */
static int same_product(const char *text, const char *product, size_t len)
{
	const char *end = product + len;

	for (;;) {
		while (*text != '\0' && !isalnum((unsigned char)*text))
			text++;
		while (product < end && !isalnum((unsigned char)*product))
			product++;
		if (*text == '\0' || product == end)
			return *text == '\0' && product == end;
		if (tolower((unsigned char)*text++) != tolower((unsigned char)*product++))
			return 0;
	}
}

const struct rfl_chip *rfl_chip_of_product(const char *text)
{
	if (!text[strcspn(text, "0123456789")])
		return NULL; /* without a digit it is ambiguous: "Ti" */
	for (size_t i = 0; i < RFL_ARRAY_LEN(chips); i++)
		for (const char *p = chips[i].products; p && *p != '\0';) {
			if (same_product(text, p, strcspn(p, ",")))
				return &chips[i];
			p += strcspn(p, " ,"); /* the first word may be missing */
			p += strspn(p, " ,");
		}
	return NULL;
}

size_t rfl_chip_suggest(const char *text, struct rfl_buf *out)
{
	RFL_AUTOPTR(arena) arena = rfl_arena_new();
	const char **names = NULL, **name;
	size_t n = 0, found;

	for (const struct rfl_chip *c = chips; c < chips + RFL_ARRAY_LEN(chips); c++) {
		struct rfl_span rest = rfl_span_of(c->products ? c->products : ""), product;

		name = rfl_arena_append(arena, &names, &n);
		*name = c->name;
		while (rfl_span_next_field(&rest, ',', &product)) {
			name = rfl_arena_append(arena, &names, &n);
			*name = rfl_arena_printf(arena, "%.*s", (int)product.len, product.at);
		}
	}
	(void)rfl_arena_append(arena, &names, &n); /* NULL ends it */
	found = rfl_text_suggest(text, names, 4, out);
	return found;
}

/* Whether `device` contains the product as whole words. */
static int has_words(const char *device, const char *product, size_t len)
{
	for (const char *at = device; *at != '\0'; at++) {
		if (at > device && isalnum((unsigned char)at[-1]))
			continue;
		if (strncasecmp(at, product, len) == 0 && !isalnum((unsigned char)at[len]))
			return 1;
	}
	return 0;
}

/* The chip with the longest product in the name of the device. */
const struct rfl_chip *rfl_chip_of_device(const char *device, int capability)
{
	const struct rfl_chip *found = NULL, *first = NULL;
	size_t longest = 0;

	for (const struct rfl_chip *c = chips; c < chips + RFL_ARRAY_LEN(chips); c++) {
		if (capability && c->capability != capability)
			continue;
		if (!first && capability)
			first = c;
		for (const char *p = c->products; device && p && *p != '\0';) {
			const size_t len = strcspn(p, ",");

			if (len > longest && has_words(device, p, len)) {
				longest = len;
				found = c;
			}
			p += len;
			p += strspn(p, ", ");
		}
	}
	return found ? found : first;
}

const struct rfl_chip *rfl_chip_of_text(const char *text)
{
	const struct rfl_chip *chip = rfl_chip_find(text);

	if (!chip)
		chip = rfl_chip_of_device(text, 0);
	return chip ? chip : rfl_chip_of_product(text);
}
