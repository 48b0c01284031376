/* log.c - passes messages to the receiver, under a lock. */
#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define LINE_MAX_BYTES 4096

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static rfl_log_fn receiver;
static void *receiver_ctx;
static atomic_int most_talkative = -1; /* no receiver */

void rfl_log_set(rfl_log_fn fn, void *ctx, enum rfl_log_level max_level)
{
	pthread_mutex_lock(&lock);
	receiver = fn;
	receiver_ctx = ctx;
	atomic_store(&most_talkative, fn ? (int)max_level : -1);
	pthread_mutex_unlock(&lock);
}

void rfl_log(enum rfl_log_level level, const char *fmt, ...)
{
	char text[LINE_MAX_BYTES];
	va_list ap;
	int wanted;

	if ((int)level > atomic_load(&most_talkative))
		return;
	va_start(ap, fmt);
	wanted = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (wanted < 0)
		return;
	if ((size_t)wanted >= sizeof(text))
		memcpy(text + sizeof(text) - 4, "...", 4);
	pthread_mutex_lock(&lock);
	/* Send each line of the message (a vendor message may have several). */
	for (char *line = text, *end; receiver && line; line = end && *end ? end : NULL) {
		end = strchr(line, '\n');
		if (end)
			*end++ = '\0';
		rfl_text_one_line(line);
		if (line[0] != '\0' || !end)
			receiver(level, line, receiver_ctx);
	}
	pthread_mutex_unlock(&lock);
}
