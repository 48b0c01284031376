/*
 * progress.c - one line on a terminal that is rewritten in place, for work that takes a while.
 */
#include "cli/cmd.h"

#include <pthread.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

#define INTERVAL_NS 100000000 /* ten times a second */
#define TEXT_MAX    512

/* Columns of the terminal; 80 when it does not say. */
static size_t columns(FILE *f)
{
	struct winsize size;
	int fd = fileno(f);

	if (fd >= 0 && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 1)
		return size.ws_col;
	return 80;
}

/* Messages come from any thread, while another draws. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void clear(struct rfl_cli *cli)
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
	clear(cli);
	va_start(ap, fmt);
	(void)vfprintf(cli->err, fmt, ap);
	va_end(ap);
	pthread_mutex_unlock(&lock);
}

static void draw(struct rfl_cli *cli, const char *fmt, va_list ap) RFL_PRINTF(2, 0);
static void draw(struct rfl_cli *cli, const char *fmt, va_list ap)
{
	char text[TEXT_MAX];
	const size_t old = cli->line.width, most = columns(cli->err) - 1;
	size_t prefix;

	(void)snprintf(text, sizeof(text), "%s", cli->line.prefix ? cli->line.prefix : "");
	prefix = strlen(text);
	(void)vsnprintf(text + prefix, sizeof(text) - prefix, fmt, ap);
	if (strlen(text) > most)
		text[most] = '\0';
	rfl_text_one_line(text);
	cli->line.width = strlen(text);
	/* Blanks rub out what a longer line left; a dumb terminal knows no escape codes. */
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
		clear(cli);
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
