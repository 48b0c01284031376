/*
 * put.c - results on their way to standard output. The reason of the first failed write is kept for
 * the end of the program (check_output() in cli.c), because errno does not last that long.
 */
#include "cli/put.h"

#include <errno.h>

#include "base/text.h"

static void keep_reason(struct rfl_cli *cli)
{
	if (cli->write_errno == 0)
		cli->write_errno = errno;
}

enum rfl_rc rfl_cli_put_as(struct rfl_cli *cli, enum rfl_format format, struct rfl_buf *text,
			   const char *what, struct rfl_err *err)
{
	enum rfl_rc rc = rfl_buf_check(text, what, err);

	if (rc != RFL_OK)
		return rc;
	if (format == RFL_FORMAT_TABLE || format == RFL_FORMAT_MD || cli->terminal)
		rfl_text_mask_from(text, 0);
	errno = 0;
	if (fwrite(rfl_buf_str(text), 1, text->len, cli->out) != text->len)
		keep_reason(cli);
	return RFL_OK;
}

enum rfl_rc rfl_cli_put(struct rfl_cli *cli, struct rfl_buf *text, const char *what,
			struct rfl_err *err)
{
	return rfl_cli_put_as(cli, RFL_FORMAT_TABLE, text, what, err);
}

void rfl_cli_printf(struct rfl_cli *cli, const char *fmt, ...)
{
	struct rfl_buf text;
	va_list ap;

	rfl_buf_init(&text, 0);
	va_start(ap, fmt);
	rfl_buf_vprintf(&text, fmt, ap);
	va_end(ap);
	errno = ENOMEM;
	if (rfl_cli_put(cli, &text, "text", NULL) != RFL_OK)
		keep_reason(cli);
	rfl_buf_fini(&text);
}

enum rfl_rc rfl_cli_put_table(struct rfl_cli *cli, const struct rfl_table *table,
			      enum rfl_format format, struct rfl_err *err)
{
	struct rfl_buf text;
	enum rfl_rc rc;

	rfl_buf_init(&text, 0);
	rc = rfl_table_render(table, format, &text, err);
	if (rc == RFL_OK)
		rc = rfl_cli_put_as(cli, format, &text, "table", err);
	rfl_buf_fini(&text);
	return rc;
}

void rfl_cli_flush(struct rfl_cli *cli)
{
	errno = 0;
	if (fflush(cli->out) != 0)
		keep_reason(cli);
}
