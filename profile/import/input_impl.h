/*
 * input_impl.h - the window that slides over a file: shared by input.c (bytes and lines),
 * input_record.c (CSV) and input_utf16.c (what PowerShell writes).
 */
#ifndef RFL_PROFILE_INPUT_IMPL_H
#define RFL_PROFILE_INPUT_IMPL_H

#include <stdint.h>

#include "profile/import/input.h"

#define RFL_INPUT_PAD 64 /* readable bytes behind the window: whole blocks are looked at */

enum rfl_input_encoding { RFL_INPUT_UTF8, RFL_INPUT_UTF16LE, RFL_INPUT_UTF16BE };

/* Where a field lies, from the beginning of its record. */
struct rfl_input_cut {
	uint32_t at, len, end; /* end: of its delimiter or newline */
	bool undone;           /* doubled quotes were undone: `at` is in the undone text */
};

struct rfl_input {
	char *name;
	int fd; /* -1: from memory, or at its end */
	bool owns_fd;
	const char *text; /* from memory: what was not taken yet */
	size_t text_len;
	enum rfl_input_encoding encoding;
	unsigned char *raw; /* UTF-16 that was not decoded yet */
	size_t raw_at, raw_end;

	char *window; /* cap bytes and RFL_INPUT_PAD */
	size_t cap, end;
	size_t at;   /* of what is handed out next */
	size_t keep; /* of what was handed out last */
	size_t nul;  /* of the first zero byte behind `at`; SIZE_MAX: none */
	bool started, eof;
	bool skipping; /* the line at `at` was refused: drop the rest of it */
	bool torn;
	size_t line, next_line;

	/* The record that lies at keep. */
	struct rfl_span *fields;
	struct rfl_input_cut *cuts;
	size_t nfields, fields_cap, same;
	size_t record_len; /* 0: none, or one whose fields cannot be used again */
	char *undone;
	size_t undone_len, undone_cap;
};

/** Have more bytes at the end of the window, unless in->eof. May move the window; what lies from
 * keep on stays in it, in the worst case from at on. RFL_EFORMAT: a line beyond the maximum. */
enum rfl_rc rfl_input__more(struct rfl_input *in, struct rfl_err *err) RFL_WARN_UNUSED;

/** Before handing out: the first bytes are there, and a refused line is passed. */
enum rfl_rc rfl_input__ready(struct rfl_input *in, struct rfl_err *err) RFL_WARN_UNUSED;

/** RFL_EFORMAT at a place of the window; the line at `at` is given up. */
enum rfl_rc rfl_input__refuse(struct rfl_input *in, size_t place, struct rfl_err *err,
			      const char *fmt, ...) RFL_PRINTF(4, 5);

/** A zero byte before `end`: refused. */
enum rfl_rc rfl_input__check_nul(struct rfl_input *in, size_t end,
				 struct rfl_err *err) RFL_WARN_UNUSED;

/** Go on behind `end`, and lines lines further. */
void rfl_input__pass(struct rfl_input *in, size_t end, size_t lines);

/** Decode what is in raw, whole characters only. @param last  nothing follows
 * @return bytes written, at most room (6 or more) */
size_t rfl_input__decode(struct rfl_input *in, char *out, size_t room, bool last);

#endif
