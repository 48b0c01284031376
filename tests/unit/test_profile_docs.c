/* docs/reference/counters.md, docs/reference/columns.md and docs/reference/chips.md: what the program's own tables say.
 * RFL_TEST_UPDATE=1 writes them. */
#include "tests/unit/docs_page.h"
#include "tests/unit/rfl_test.h"

#include <string.h>

#include "report/captures.h"
#include "profile/capture.h"
#include "profile/chips.h"
#include "profile/formula.h"

#define DOCS RFL_TEST_DATA "/../../docs/"

/* A cell of a table, in which a bar would end it. */
static void put_cell(struct rfl_buf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '|')
			rfl_buf_putc(out, '\\');
		rfl_buf_putc(out, *text);
	}
}

static void the_quantities_are_those_of_the_list(void **state)
{
	struct rfl_buf part;

	(void)state;
	rfl_buf_init(&part, 0);
	rfl_buf_puts(&part, "\n| quantity | unit | is |\n|---|---|---|\n");
	for (int q = 0; q < RFL_QUANTITY_COUNT; q++) {
		const struct rfl_quantity_info *info = rfl_quantity_info((enum rfl_quantity)q);

		rfl_buf_printf(&part, "| `%s` | %s | %s |\n", info->name, info->unit,
			       info->meaning);
	}
	check_page_part(DOCS "reference/counters.md", "<!-- quantities: tests/unit/test_profile_docs.c -->\n",
			"<!-- quantities end -->", &part);
	rfl_buf_fini(&part);
}

static void the_columns_are_those_of_the_list(void **state)
{
	struct rfl_buf part;

	(void)state;
	rfl_buf_init(&part, 0);
	rfl_buf_puts(&part, "\n| column | meaning |\n|---|---|\n");
#define ROW(kind, name, meaning) rfl_buf_printf(&part, "| `%s` | %s |\n", #name, meaning);
	RFL_COUNTER_COLUMNS(ROW)
#undef ROW
	check_page_part(DOCS "reference/columns.md",
			"<!-- counters -->\n",
			"<!-- end of counters -->", &part);
	rfl_buf_fini(&part);
}

static void put_family(const struct rfl_formulas *f, struct rfl_buf *out)
{
	const struct rfl_chip *chip;
	const char *sep = "Chips: ";

	rfl_buf_printf(out, "\n### %s\n\n", f->family);
	for (size_t i = 0; (chip = rfl_chip_at(i)); i++)
		if (strcmp(chip->family, f->family) == 0) {
			rfl_buf_printf(out, "%s%s", sep, chip->name);
			sep = ", ";
		}
	rfl_buf_puts(out, "\n\n| quantity | first way, or why there is none | others |\n"
			  "|---|---|---:|\n");
	for (int q = 0; q < RFL_QUANTITY_COUNT; q++) {
		enum rfl_quantity id = (enum rfl_quantity)q;
		size_t ways = f->quantities[id].nways;
		struct rfl_buf text;

		if (ways == 0 && !f->quantities[id].impossible)
			continue;
		rfl_buf_init(&text, 0);
		if (ways > 0)
			rfl_formula_text(f, id, 0, &text);
		rfl_buf_printf(out, "| `%s` | ", rfl_quantity_info(id)->name);
		put_cell(out, ways > 0 ? rfl_buf_str(&text) : f->quantities[id].impossible);
		if (ways > 1)
			rfl_buf_printf(out, " | %zu |\n", ways - 1);
		else
			rfl_buf_puts(out, " | |\n");
		rfl_buf_fini(&text);
	}
}

/* Of GPUs with a chip; other families read what one program prints. */
static void the_families_are_those_that_were_compiled_in(void **state)
{
	struct rfl_buf part;
	const char *family;

	(void)state;
	rfl_buf_init(&part, 0);
	for (size_t i = 0; (family = rfl_formula_families[i].name); i++) {
		struct rfl_formulas *f = NULL;
		struct rfl_err err = RFL_ERR_INIT;
		const char *command;

		assert_ok(rfl_formulas_new(family, &f, &err), &err);
		command = f->command;
		if (command && strcmp(command, "ncu --metrics") == 0 && strcmp(family, "any") != 0)
			put_family(f, &part);
		rfl_formulas_free(f);
	}
	rfl_buf_putc(&part, '\n');
	check_page_part(DOCS "reference/chips.md",
			"<!-- families: tests/unit/test_profile_docs.c -->\n",
			"<!-- families end -->", &part);
	rfl_buf_fini(&part);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_quantities_are_those_of_the_list),
		cmocka_unit_test(the_columns_are_those_of_the_list),
		cmocka_unit_test(the_families_are_those_that_were_compiled_in),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
