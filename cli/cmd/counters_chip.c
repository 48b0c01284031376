/*
 * counters_chip.c - from what a user calls a chip to what is known of it.
 */
#include "cli/cmd/counters_chip.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/places.h"
#include "profile/chips.h"

static enum rfl_rc no_such_chip(const char *text, struct rfl_err *err)
{
	const struct rfl_chip *chip;
	struct rfl_buf all;
	enum rfl_rc rc;

	rfl_buf_init(&all, RFL_ERR_MSG_MAX / 2);
	for (size_t i = 0; (chip = rfl_chip_at(i)); i++)
		rfl_buf_printf(&all, "%s%s", i ? " " : "", chip->name);
	rc = rfl_fail(
		err, RFL_ENOTFOUND, 0,
		"no chip or product '%s': 'roofline counters list' prints both; the chips are %s",
		text, rfl_buf_str(&all));
	rfl_buf_fini(&all);
	return rc;
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
	c->host = NULL;
	c->lib = NULL;
	c->f = NULL;
}
