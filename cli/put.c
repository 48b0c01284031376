/* put.c - results on standard output, messages and the progress line on standard error. */
#include "cli/cmd.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

#define INTERVAL_NS 100000000 /* ten times a second */
#define TEXT_MAX    512

/* ---- results ---- */

/* Keep the errno of the first failed write for rfl_cli_main(). */
static void keep_reason(struct rfl_cli *cli)
{
	if (cli->write_errno == 0)
		cli->write_errno = errno;
}

static void put_bytes(struct rfl_cli *cli, const struct rfl_buf *text)
{
	errno = 0;
	if (fwrite(rfl_buf_str(text), 1, text->len, cli->out) != text->len)
		keep_reason(cli);
}

enum rfl_rc rfl_cli_put_as(struct rfl_cli *cli, enum rfl_format format, struct rfl_buf *text,
			   const char *what, struct rfl_err *err)
{
	if (rfl_buf_check(text, what, err))
		return RFL_EOVERFLOW;
	if (rfl_format_for_people(format) || cli->terminal)
		rfl_text_mask_from(text, 0);
	put_bytes(cli, text);
	return RFL_OK;
}

enum rfl_rc rfl_cli_put(struct rfl_cli *cli, struct rfl_buf *text, const char *what,
			struct rfl_err *err)
{
	return rfl_cli_put_as(cli, RFL_FORMAT_TABLE, text, what, err);
}

enum rfl_rc rfl_cli_put_colored(struct rfl_cli *cli, const struct rfl_buf *text, const char *what,
				struct rfl_err *err)
{
	RFL_AUTO(buf) masked = { .max = text->max };

	if (rfl_buf_check(text, what, err))
		return RFL_EOVERFLOW;
	rfl_buf_append(&masked, text->data, text->len);
	rfl_text_mask_from(&masked, 0);
	/* each byte of a code became one '?' or is unchanged, unless other bytes were replaced
	 */
	for (size_t i = 0; i + 2 < text->len && masked.len == text->len; i++)
		if (text->data[i] == '\033' && text->data[i + 1] == '[') {
			size_t end = i + 2;

			while (end < text->len && strchr("0123456789;", text->data[end]))
				end++;
			if (end < text->len && text->data[end] == 'm')
				masked.data[i] = '\033';
		}
	put_bytes(cli, &masked);
	return RFL_OK;
}

void rfl_cli_printf(struct rfl_cli *cli, const char *fmt, ...)
{
	RFL_AUTO(buf) text = { .len = 0 };
	va_list ap;

	va_start(ap, fmt);
	rfl_buf_vprintf(&text, fmt, ap);
	va_end(ap);
	rfl_text_mask_from(&text, 0);
	put_bytes(cli, &text);
}

enum rfl_rc rfl_cli_deliver(struct rfl_cli *cli, const char *path, enum rfl_format format,
			    struct rfl_buf *text, const char *what, struct rfl_err *err)
{
	if (!path)
		return rfl_cli_put_as(cli, format, text, what, err);
	if (rfl_buf_check(text, what, err))
		return RFL_EOVERFLOW;
	return rfl_file_write(path, rfl_buf_str(text), text->len, err);
}

enum rfl_rc rfl_cli_put_json(struct rfl_cli *cli, const json_t *value, const char *what,
			     struct rfl_err *err)
{
	RFL_AUTO(buf) text = { .len = 0 };

	rfl_json_write(&text, value);
	rfl_buf_putc(&text, '\n');
	return rfl_cli_put_as(cli, RFL_FORMAT_JSON, &text, what, err);
}

enum rfl_rc rfl_cli_put_table(struct rfl_cli *cli, struct rfl_table *take_table,
			      enum rfl_format format, struct rfl_err *err)
{
	RFL_AUTO(buf) text = { .len = 0 };

	rfl_table_finish(take_table, format, &text);
	return rfl_cli_put_as(cli, format, &text, "table", err);
}

void rfl_cli_flush(struct rfl_cli *cli)
{
	errno = 0;
	if (fflush(cli->out) != 0)
		keep_reason(cli);
}

/* ---- messages and the progress line ---- */

/* Serialises messages and progress from different threads. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void clear_line(struct rfl_cli *cli)
{
	if (cli->line.width == 0)
		return;
	fprintf(cli->err, "\r%*s\r", (int)cli->line.width, "");
	cli->line.width = 0;
}

void rfl_cli_say(struct rfl_cli *cli, const char *fmt, ...)
{
	va_list ap;

	pthread_mutex_lock(&lock);
	clear_line(cli);
	va_start(ap, fmt);
	(void)vfprintf(cli->err, fmt, ap);
	va_end(ap);
	pthread_mutex_unlock(&lock);
}

static void draw(struct rfl_cli *cli, const char *fmt, va_list ap) RFL_VPRINTF(2);
static void draw(struct rfl_cli *cli, const char *fmt, va_list ap)
{
	char text[TEXT_MAX];
	const size_t old = cli->line.width;
	size_t prefix, columns = 80; /* the default if the terminal does not report its width */
	struct winsize size;

	if (ioctl(fileno(cli->err), TIOCGWINSZ, &size) == 0 && size.ws_col > 1)
		columns = size.ws_col;
	(void)snprintf(text, sizeof(text), "%s", cli->line.prefix ? cli->line.prefix : "");
	prefix = strlen(text);
	(void)vsnprintf(text + prefix, sizeof(text) - prefix, fmt, ap);
	if (strlen(text) >= columns)
		text[columns - 1] = '\0';
	rfl_text_one_line(text);
	cli->line.width = strlen(text);
	/* Blanks erase the rest of a longer line: not all terminals have escape codes. */
	fprintf(cli->err, "\r%s%*s", text, old > cli->line.width ? (int)(old - cli->line.width) : 0,
		"");
	fflush(cli->err);
}

void rfl_cli_progress(struct rfl_cli *cli, const char *fmt, ...)
{
	int64_t now;
	va_list ap;

	if (!cli->progress)
		return;
	pthread_mutex_lock(&lock);
	now = rfl_clock_ns();
	if (!fmt) {
		clear_line(cli);
		fflush(cli->err);
		cli->line.at_ns = 0;
	} else if (cli->line.at_ns == 0 || now - cli->line.at_ns >= INTERVAL_NS) {
		cli->line.at_ns = now;
		va_start(ap, fmt);
		draw(cli, fmt, ap);
		va_end(ap);
	}
	pthread_mutex_unlock(&lock);
}
