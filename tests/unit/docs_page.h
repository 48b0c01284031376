/*
 * docs_page.h - a part of a page under docs/, between two marks, that the program's own tables
 * make.
 */
#ifndef RFL_TESTS_DOCS_PAGE_H
#define RFL_TESTS_DOCS_PAGE_H

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "tests/unit/rfl_test.h"

/** What lies between the marks is `part`; with RFL_TEST_UPDATE=1 it is written there. */
static inline void check_page_part(const char *path, const char *from, const char *to,
				   const struct rfl_buf *part)
{
	struct rfl_buf page, wanted;
	struct rfl_err err = RFL_ERR_INIT;
	const char *begin, *end;

	rfl_buf_init(&page, 0);
	rfl_buf_init(&wanted, 0);
	assert_ok(rfl_file_read(path, &page, &err), &err);
	begin = strstr(rfl_buf_str(&page), from);
	end = strstr(rfl_buf_str(&page), to);
	assert_non_null(begin);
	assert_non_null(end);
	begin += strlen(from);
	rfl_buf_append(&wanted, page.data, (size_t)(begin - page.data));
	rfl_buf_append(&wanted, part->data, part->len);
	rfl_buf_puts(&wanted, end);
	if (getenv("RFL_TEST_UPDATE"))
		assert_ok(rfl_file_write(path, wanted.data, wanted.len, &err), &err);
	else
		assert_string_equal(rfl_buf_str(&page), rfl_buf_str(&wanted));
	rfl_buf_fini(&page);
	rfl_buf_fini(&wanted);
}

#endif
