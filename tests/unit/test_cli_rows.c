/* The table of commands: what every row must have. */
#include <stdlib.h>
#include <string.h>
#include <wordexp.h>

#include "cli/inventory.h"
#include "cli/opt/opt.h"
#include "rfl_test.h"

static bool ends_in_stop(const char *text)
{
	return text[0] != '\0' && text[strlen(text) - 1] == '.';
}

static void names_are_unique(void **state)
{
	(void)state;
	for (size_t i = 0; rfl_cmd_at(i); i++) {
		assert_non_null(rfl_cmd_at(i)->name);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(rfl_cmd_at(i)->name, rfl_cmd_at(k)->name);
	}
}

static void commands_are_complete(void **state)
{
	(void)state;
	for (size_t i = 0; rfl_cmd_at(i); i++) {
		const struct rfl_cmd *cmd = rfl_cmd_at(i);

		print_message("roofline %s\n", cmd->name);
		assert_non_null(cmd->run);
		assert_non_null(cmd->summary);
		assert_false(ends_in_stop(cmd->summary));
		assert_true(!cmd->operands || cmd->args_size >= sizeof(struct rfl_opt_list));
	}
}

static void check_row(const struct rfl_cmd *cmd, const struct rfl_opt *row)
{
	bool choice = row->kind == RFL_OPT_CHOICE;

	print_message("roofline %s --%s\n", cmd->name, row->name);
	assert_non_null(row->help);
	assert_false(ends_in_stop(row->help));
	assert_true(row->offset < cmd->args_size);
	assert_true(!cmd->operands || row->offset >= sizeof(struct rfl_opt_list));
	assert_true((row->kind == RFL_OPT_FLAG) == !row->meta);
	assert_true(!choice || row->choices);
	assert_true(!row->negatable || row->kind == RFL_OPT_FLAG);
	assert_true(!row->required || !row->def);
	assert_true(!row->project || !row->def);
	assert_true(!row->found || rfl_project_usual(row->project));
	assert_true(row->project || strcmp(row->name, "log-dir") != 0);
	if (row->kind == RFL_OPT_FLAG && row->def)
		assert_string_equal(row->def, "on");
	for (const struct rfl_opt *g = rfl_opt_global_rows; g->name; g++) {
		assert_string_not_equal(row->name, g->name);
		assert_true(!row->letter || row->letter != g->letter);
	}
	for (const struct rfl_opt *other = cmd->opts; other < row; other++) {
		assert_string_not_equal(row->name, other->name);
		assert_true(!row->letter || row->letter != other->letter);
	}
}

static void options_are_complete(void **state)
{
	(void)state;
	for (size_t i = 0; rfl_cmd_at(i); i++)
		for (const struct rfl_opt *row = rfl_cmd_at(i)->opts; row && row->name; row++)
			check_row(rfl_cmd_at(i), row);
}

static void defaults_pass_their_own_checks(void **state)
{
	(void)state;
	for (size_t i = 0; rfl_cmd_at(i); i++) {
		const struct rfl_cmd *cmd = rfl_cmd_at(i);
		struct rfl_err err = RFL_ERR_INIT;
		void *args = calloc(1, cmd->args_size + 1);

		assert_non_null(args);
		for (const struct rfl_opt *row = cmd->opts; row && row->name; row++)
			assert_ok(rfl_opt_set_default(row, args, &err), &err);
		rfl_opt_free(cmd, args);
		free(args);
	}
}

/* Check the number of options on the short help page, and of examples. */
static void short_pages_are_short(void **state)
{
	(void)state;
	for (size_t i = 0; rfl_cmd_at(i) && !rfl_cmd_at(i)->hidden; i++) {
		const struct rfl_cmd *cmd = rfl_cmd_at(i);
		size_t n = 0, often = 0, examples = 0;

		print_message("roofline %s\n", cmd->name);
		for (const struct rfl_opt *row = cmd->opts; row && row->name; row++) {
			n += !row->hidden;
			often += row->often || row->required;
		}
		for (const char *c = cmd->example; c; c = strchr(c + 1, '\n'))
			examples++;
		assert_true(n <= 10 || (often >= 8 && often <= 12));
		assert_true(n == 0 || (examples >= 1 && examples <= 4));
	}
}

/* Every example is a valid command line of its command. Parts for other programs are skipped. */
static void examples_are_valid(void **state)
{
	(void)state;
	for (size_t i = 0; rfl_cmd_at(i); i++) {
		const struct rfl_cmd *cmd = rfl_cmd_at(i);
		const size_t nwords = strchr(cmd->name, ' ') ? 2 : 1;

		for (const char *at = cmd->example; at && *at; at += strspn(at, "\n")) {
			char *line = strndup(at, strcspn(at, "\n"));
			struct rfl_err err = RFL_ERR_INIT;
			wordexp_t words;
			void *args = calloc(1, cmd->args_size + 1);

			assert_non_null(line);
			assert_non_null(args);
			print_message("%s\n", line);
			at += strlen(line);
			line[strcspn(line, "|")] = '\0';
			if (strncmp(line, "roofline ", strlen("roofline ")) == 0) {
				assert_memory_equal(line + strlen("roofline "), cmd->name,
						    strlen(cmd->name));
				assert_int_equal(wordexp(line, &words, WRDE_NOCMD), 0);
				assert_ok(rfl_opt_parse(cmd, (int)(words.we_wordc - nwords),
							words.we_wordv + nwords, args, NULL, &err),
					  &err);
				rfl_opt_free(cmd, args);
				wordfree(&words);
			}
			free(args);
			free(line);
		}
	}
}

/* `--name` or `--name META` stands between the heading of its command and the next one. */
static bool has_option(const char *section, const char *name)
{
	const char *end = strstr(section + 1, "\n## ");
	size_t len = end ? (size_t)(end - section) : strlen(section);
	char option[128];

	snprintf(option, sizeof(option), "`--%s", name);
	for (const char *at = section; (at = strstr(at, option)) && at < section + len; at++)
		if (strchr("` ", at[strlen(option)]))
			return true;
	return false;
}

/* Every option of every command that is not hidden is on the page for docs/, in its section. */
static void the_page_has_every_option(void **state)
{
	struct rfl_buf page;

	(void)state;
	rfl_buf_init(&page, 0);
	rfl_help_markdown(&page);
	for (size_t i = 0; rfl_cmd_at(i); i++) {
		const struct rfl_cmd *cmd = rfl_cmd_at(i);
		const char *section;
		char heading[128];

		snprintf(heading, sizeof(heading), "\n## roofline %s\n", cmd->name);
		section = strstr(rfl_buf_str(&page), heading);
		assert_int_equal(section != NULL, !cmd->hidden);
		for (const struct rfl_opt *row = cmd->opts; section && row && row->name; row++)
			assert_int_equal(has_option(section, row->name), !row->hidden);
	}
	rfl_buf_fini(&page);
}

/* The items of a registry, and how many of them work. */
static size_t rows_of(const struct rfl_inventory *inv, const char *registry, size_t *usable)
{
	size_t n = 0;

	*usable = 0;
	for (size_t i = 0; i < inv->n; i++) {
		if (strcmp(inv->items[i].registry, registry) != 0)
			continue;
		n++;
		*usable += inv->items[i].state != RFL_ITEM_NO;
	}
	return n;
}

static void the_inventory_has_every_registry(void **state)
{
	static const char *const no_dirs[] = { NULL };
	struct rfl_arena *arena = rfl_arena_new();
	struct rfl_cli cli = { .data_dir = "/nonexistent", .plugin_dirs = no_dirs, .arena = arena };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_inventory inv;
	size_t usable;

	(void)state;
	assert_ok(rfl_inventory_new(&cli, NULL, 0, &inv, &err), &err);
	for (size_t r = 0; rfl_registry_names[r]; r++)
		assert_true(rows_of(&inv, rfl_registry_names[r], &usable) > 0);
	for (size_t i = 0; i < inv.n; i++) {
		assert_non_null(inv.items[i].name);
		assert_non_null(rfl_item_finding(&inv.items[i], inv.arena)
					? rfl_item_finding(&inv.items[i], inv.arena)
					: inv.items[i].summary);
		assert_int_equal(inv.items[i].state == RFL_ITEM_OK, !inv.items[i].reason);
	}
	(void)rows_of(&inv, "engines", &usable);
	assert_int_equal(usable, 0); /* there are no directories */
	assert_true(rows_of(&inv, "models", &usable) > 90);
	assert_true(usable > 0);
	rfl_arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_unique),
		cmocka_unit_test(commands_are_complete),
		cmocka_unit_test(options_are_complete),
		cmocka_unit_test(defaults_pass_their_own_checks),
		cmocka_unit_test(short_pages_are_short),
		cmocka_unit_test(examples_are_valid),
		cmocka_unit_test(the_page_has_every_option),
		cmocka_unit_test(the_inventory_has_every_registry),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
