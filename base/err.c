/* err.c - the error record. */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* End a truncated message with "..." and replace control characters. */
static void finish(struct rfl_err *err, int wanted)
{
	if (wanted >= RFL_ERR_MSG_MAX)
		memcpy(err->msg + RFL_ERR_MSG_MAX - 4, "...", 4);
	err->msg[rfl_text_mask(err->msg, strlen(err->msg), err->rc == RFL_EMISSING)] = '\0';
}

enum rfl_rc rfl_fail(struct rfl_err *err, enum rfl_rc rc, int native, const char *fmt, ...)
{
	va_list ap;
	int wanted;

	if (!err || err->rc != RFL_OK)
		return rc;
	err->rc = rc;
	err->native = native;
	va_start(ap, fmt);
	wanted = vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	finish(err, wanted);
	return rc;
}

enum rfl_rc rfl_fail_errno(struct rfl_err *err, const char *fmt, ...)
{
	const int code = errno;
	char text[RFL_ERR_MSG_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return rfl_fail(err, code == ENOMEM ? RFL_ENOMEM : RFL_EIO, code, "%s: %s", text,
			strerror(code));
}

enum rfl_rc rfl_err_pass(struct rfl_err *err, const struct rfl_err *cause)
{
	return rfl_fail(err, cause->rc, cause->native, "%s", cause->msg);
}

void rfl_err_prefix(struct rfl_err *err, const char *fmt, ...)
{
	char old[RFL_ERR_MSG_MAX];
	va_list ap;
	int len, more;

	if (!err || err->rc == RFL_OK)
		return;
	memcpy(old, err->msg, sizeof(old));
	va_start(ap, fmt);
	len = vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	if (len < 0 || len >= RFL_ERR_MSG_MAX) { /* the prefix alone is too long: keep the cause */
		memcpy(err->msg, old, sizeof(old));
		return;
	}
	more = snprintf(err->msg + len, sizeof(err->msg) - (size_t)len, ": %s", old);
	finish(err, len + more);
}

void rfl_err_clear(struct rfl_err *err)
{
	if (err)
		*err = (struct rfl_err)RFL_ERR_INIT;
}

const char *rfl_rc_text(enum rfl_rc rc)
{
	static const char *const texts[] = {
		[-RFL_OK] = "ok",
		[-RFL_EFAILED] = "failed",
		[-RFL_EINVAL] = "invalid value",
		[-RFL_EFORMAT] = "wrong format",
		[-RFL_EIO] = "input/output error",
		[-RFL_ENOMEM] = "out of host memory",
		[-RFL_ENOTFOUND] = "no such name",
		[-RFL_EMISSING] = "a required value is missing",
		[-RFL_EUNAVAILABLE] = "not available here",
		[-RFL_EUNSUPPORTED] = "not supported",
		[-RFL_EOVERFLOW] = "too large",
		[-RFL_EDEVMEM] = "out of device memory",
		[-RFL_ETIMEOUT] = "timed out",
		[-RFL_EINTR] = "interrupted",
		[-RFL_EUSAGE] = "wrong usage",
	};

	return rc <= 0 && -rc < (int)RFL_ARRAY_LEN(texts) ? texts[-rc] : "unknown code";
}
