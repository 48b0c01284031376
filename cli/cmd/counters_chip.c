/*
 * counters_chip.c - from what a user calls a chip to what is known of it.
 */
#include "cli/cmd/counters_chip.h"

#include <stdio.h>
#include <string.h>

#include "cli/places.h"
#include "profile/chips.h"

static enum rfl_rc no_such_chip(const char *text, struct rfl_err *err)
{
	char all[1024] = "";
	const struct rfl_chip *chip;

	for (size_t i = 0, len = 0; (chip = rfl_chip_at(i)) && len < sizeof(all); i++)
		len += (size_t)snprintf(all + len, sizeof(all) - len, " %s", chip->name);
	return rfl_fail(
		err, RFL_ENOTFOUND, 0,
		"no chip or product '%s': 'roofline counters list' prints both; the chips are%s",
		text, all);
}

/* Newer chips than the table knows are asked of CUPTI by their name. */
static void open_host(struct rfl_asked_chip *c)
{
	const struct rfl_cupti_places places = rfl_cli_places();

	if (rfl_cupti_open(&places, &c->lib, &c->why) == RFL_OK)
		(void)!rfl_cupti_host_open(c->lib, c->name, NULL, &c->host, &c->why);
}

enum rfl_rc rfl_asked_chip_init(struct rfl_asked_chip *ret, const char *text, struct rfl_err *err)
{
	const struct rfl_chip *chip = rfl_chip_find(text);

	*ret = (struct rfl_asked_chip){ .f = NULL };
	if (!chip)
		chip = rfl_chip_of_device(text, 0);
	if (!chip)
		chip = rfl_chip_of_product(text);
	snprintf(ret->name, sizeof(ret->name), "%s", chip ? chip->name : text);
	open_host(ret);
	if (!chip && !ret->host)
		return no_such_chip(text, err);
	return chip ? rfl_formulas_new(chip->name, &ret->f, err) : RFL_OK;
}

void rfl_asked_chip_fini(struct rfl_asked_chip *c)
{
	rfl_cupti_host_close(c->host);
	rfl_cupti_close(c->lib);
	rfl_formulas_free(c->f);
}
