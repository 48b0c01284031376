/*
 * child.c - a measurement as a process of its own: a configuration comes in, events go out, one
 * line of JSON each.
 */
#include "runner/run/parts.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/text.h"

#define MAX_PLUGIN_DIRS 64
#define CONFIG_MAX      ((size_t)1 << 20)

static enum rfl_rc read_config(int fd, struct rfl_buf *text, struct rfl_err *err)
{
	char block[4096];
	ssize_t n;

	while ((n = read(fd, block, sizeof(block))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return rfl_fail(err, RFL_EIO, errno, "configuration: %s", strerror(errno));
		rfl_buf_append(text, block, (size_t)n);
	}
	return rfl_buf_check(text, "configuration", err);
}

/* A line to the parent. When it cannot be written there is nobody left to tell. */
/* A parent whose terminal is stopped does not read; its progress must not hold up a step. */
static bool would_wait(const json_t *event, int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	return rfl_text_same(json_string_value(json_object_get(event, "event")), "progress") &&
	       poll(&p, 1, 0) == 0;
}

static void emit_line(json_t *take_event, void *ctx)
{
	int fd = *(const int *)ctx;
	char *line = would_wait(take_event, fd) ? NULL : json_dumps(take_event, JSON_COMPACT);
	size_t len = line ? strlen(line) : 0, sent = 0;

	json_decref(take_event);
	if (!line)
		return;
	line[len] = '\n'; /* in place of the NUL; written with its length */
	while (sent < len + 1) {
		ssize_t n = write(fd, line + sent, len + 1 - sent);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			break;
		sent += (size_t)n;
	}
	free(line);
}

enum rfl_rc rfl_run_child(int config_fd, int report_fd, rfl_run_source_fn source_for,
			  struct rfl_err *err)
{
	const char *dirs[MAX_PLUGIN_DIRS + 1];
	struct rfl_err failure = RFL_ERR_INIT;
	struct rfl_run_config config;
	struct rfl_buf text;
	json_t *json = NULL, *event;
	enum rfl_rc rc;

	rfl_buf_init(&text, CONFIG_MAX);
	rc = read_config(config_fd, &text, &failure);
	if (rc == RFL_OK)
		rc = rfl_json_loads(rfl_buf_str(&text), text.len, "configuration", &json, &failure);
	if (rc == RFL_OK)
		rc = rfl_run__config_from_json(json, dirs, RFL_ARRAY_LEN(dirs), &config, &failure);
	if (rc == RFL_OK) {
		rc = rfl_run__measure(&config, source_for, emit_line, &report_fd, err);
	} else {
		event = rfl_run__failed_event(&failure);
		if (event)
			emit_line(event, &report_fd);
		rfl_fail(err, rc, failure.native, "%s", failure.msg);
	}
	json_decref(json);
	rfl_buf_fini(&text);
	return rc;
}
