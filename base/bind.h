/*
 * bind.h - a struct as a JSON object. A const table has a row per key with its kind, its member and
 * its limits. It is used to read an object strictly, to write it, and by tests of schemas.
 *
 *     static const struct rfl_member of_model[] = {
 *             { "name", RFL_MEMBER(TEXT, struct model, name), .must = true, .filled = true },
 *             { "batch_sizes", RFL_MEMBERS(INT, struct model, batches, nbatches), .min = 1 },
 *             { "note", RFL_CHECKED(TEXT) },
 *             { .key = NULL },
 *     };
 *
 *     struct rfl_bind b = { .arena = arena, .err = err };
 *     rfl_where_begin(&b.at, path, "");
 *     rfl_bind_read(&b, root, of_model, &model);
 *     return b.rc;
 *
 * Messages name the file, the place in it, what must be there and what is. The first failure is
 * kept: functions called after it do nothing, so that only the end needs a check.
 */
#ifndef RFL_BASE_BIND_H
#define RFL_BASE_BIND_H

#include "base/alloc.h"
#include "base/json.h"

enum rfl_bind_kind {
	RFL_BIND_FLAG,   /**< bool */
	RFL_BIND_INT,    /**< int, int64_t or size_t */
	RFL_BIND_REAL,   /**< double */
	RFL_BIND_TEXT,   /**< const char * */
	RFL_BIND_CHARS,  /**< an array of char; a longer text is cut */
	RFL_BIND_CHOICE, /**< one of `choices`: const char * (the choice), or int (its index) */
	RFL_BIND_OBJECT, /**< a struct by the table `object`; with offset 0, the same struct */
	RFL_BIND_OTHER,  /**< by the functions `read` and `write` */
};

struct rfl_bind;

/** A row of a table. The last row has the key NULL. */
struct rfl_member {
	const char *key;
	enum rfl_bind_kind kind;
	size_t offset, size; /**< of the member; in a list, `size` is that of an item */
	size_t count;        /**< offset of the number of items, a size_t; only in a list */
	bool list;
	bool or_one; /**< a value that is not a list is read as a list of one */
	bool must;   /**< the key is required */
	bool null;   /**< null is allowed: NaN, NULL, an empty list (not an item of a list), or
			  the member remains as it is */
	bool filled; /**< the text, the list and its texts must not be empty */
	/** Limits of a number; no limits if both are 0, no upper limit if only `max` is 0. */
	double min, max;
	double unit; /**< a REAL in the struct is the value in the file times `unit`; 0: 1 */
	const char *const *choices; /**< NULL-terminated */
	const struct rfl_member *object;
	/** Functions for OTHER; with `null`, they are not called for null. */
	void (*read)(struct rfl_bind *b, const json_t *value, void *member);
	json_t *(*write)(const void *member);
	bool (*valid)(const char *text); /**< a further check of a TEXT; needs `what` */
	/** What a value must be, for messages: "a batch size from 1 to 1024"; NULL: by kind and
	 * limits ("an integer of at least 1"). */
	const char *what;
	const char *fix; /**< what to do if it is not: "use a path"; NULL: nothing more */
	/** A value for the message on a missing key: "[16, 32]"; NULL: none. */
	const char *example;
};

/** Where a value goes: the member of a struct; a list with its number of items; nowhere. */
#define RFL_MEMBER(kind_, structure, member)                             \
	.kind = RFL_BIND_##kind_, .offset = offsetof(structure, member), \
	.size = sizeof(((structure *)0)->member)
#define RFL_MEMBERS(kind_, structure, items, number)                                  \
	.list = true, .kind = RFL_BIND_##kind_, .offset = offsetof(structure, items), \
	.size = sizeof(*((structure *)0)->items), .count = offsetof(structure, number)
#define RFL_CHECKED(kind_) .kind = RFL_BIND_##kind_

/** Most items of a list. */
#define RFL_BIND_ITEMS_MAX 1000000

/** A document that is being read. */
struct rfl_bind {
	struct rfl_where at;
	struct rfl_arena *arena; /**< gets texts and lists; NULL: texts are borrowed from the JSON,
				      and the tables have no lists with members */
	void *ctx;               /**< for functions of the caller */
	bool open;               /**< ignore unknown keys */
	struct rfl_err *err;
	enum rfl_rc rc; /**< code of the first failure */
};

/** Read an object. Unknown keys are rejected; members without a key remain as they are. */
void rfl_bind_read(struct rfl_bind *b, const json_t *value, const struct rfl_member *table,
		   void *to);

/** Read the value of a row into its member of a struct. */
void rfl_bind_value(struct rfl_bind *b, const json_t *value, const struct rfl_member *m, void *to);

/** Read a value as rfl_bind_value() does, one level below, if the object has the key. */
void rfl_bind_key(struct rfl_bind *b, const json_t *object, const struct rfl_member *m, void *to);

/** Reject keys that are not in a table, or a value that is not an object. */
void rfl_bind_only(struct rfl_bind *b, const json_t *object, const struct rfl_member *table);

/** Check that a document has this schema, such as "roofline.matrix/1"; if it has not, report what
 * the document is instead of `what` ("a matrix"). */
void rfl_bind_schema(struct rfl_bind *b, const json_t *root, const char *schema, const char *what);

/** Call `item` for each member of an object, or each item of a list, one level below.
 * @param key  of the member; NULL for an item */
void rfl_bind_each(struct rfl_bind *b, const json_t *value,
		   void (*item)(struct rfl_bind *b, const char *key, const json_t *value, void *to),
		   void *to);

/** Fail at this place with "<file>: <place>: <message>". */
void rfl_bind_refuse(struct rfl_bind *b, const char *fmt, ...) RFL_PRINTF(2, 3);

/** Fail with "must be <what>, not <value>". */
void rfl_bind_must(struct rfl_bind *b, const json_t *value, const char *what);

/** What a value must be: `m->what`, or words by kind and limits. @return `out` or a constant */
const char *rfl_bind_what(const struct rfl_member *m, char *out, size_t size);

/** Read a value without a message: for messages between processes of this program.
 * @return false, with the member unchanged, if the value is NULL or not valid */
bool rfl_bind_get(const struct rfl_member *m, const json_t *value, void *to);

/** The value of a member; null for NaN and NULL. New reference. */
json_t *rfl_bind_json(const struct rfl_member *m, const void *from);

/** Add the members of a struct to an object. A member without `must` is omitted if it is NaN,
 * NULL, false, 0, -1 or empty, as a struct is before it is read; what `write` of an OTHER returns
 * is added unless that is NULL. */
void rfl_bind_write(json_t *object, const struct rfl_member *table, const void *from);

#endif
