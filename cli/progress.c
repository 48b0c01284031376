/*
 * progress.c - one line on a terminal that is rewritten in place, for work that takes a while.
 */
#include "cli/cli.h"

#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

#define INTERVAL_NS 100000000 /* ten times a second */
#define TEXT_MAX    512

/* Columns of the terminal; 80 when it does not tell. */
static size_t columns(FILE *f)
{
	struct winsize size;
	int fd = fileno(f);

	if (fd >= 0 && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 1)
		return size.ws_col;
	return 80;
}

void rfl_cli_clear_line(struct rfl_cli *cli)
{
	if (cli->line.width == 0)
		return;
	fprintf(cli->err, "\r%*s\r", (int)cli->line.width, "");
	fflush(cli->err);
	cli->line.width = 0;
}

void rfl_cli_progress(struct rfl_cli *cli, const char *fmt, ...)
{
	char text[TEXT_MAX];
	size_t width, old = cli->line.width;
	int64_t now;
	va_list ap;

	if (!cli->progress)
		return;
	if (!fmt) {
		rfl_cli_clear_line(cli);
		cli->line.at_ns = 0;
		return;
	}
	now = rfl_clock_ns();
	if (cli->line.at_ns != 0 && now - cli->line.at_ns < INTERVAL_NS)
		return;
	cli->line.at_ns = now;
	(void)snprintf(text, sizeof(text), "%s", cli->line.prefix ? cli->line.prefix : "");
	width = strlen(text);
	va_start(ap, fmt);
	vsnprintf(text + width, sizeof(text) - width, fmt, ap);
	va_end(ap);
	width = columns(cli->err) - 1;
	if (strlen(text) > width)
		text[width] = '\0';
	rfl_text_one_line(text);
	cli->line.width = strlen(text);
	/* Blanks rub out what a longer line left behind; a dumb terminal knows no escape codes. */
	fprintf(cli->err, "\r%s%*s", text, old > cli->line.width ? (int)(old - cli->line.width) : 0,
		"");
	fflush(cli->err);
}
