/* Files: whole, atomic, exclusive, and on disks that are full. */
#include "tests/unit/rfl_test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <dirent.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "tests/unit/log_rig.h"

static void assert_content(const char *path, const char *expected)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf b = { 0 };

	assert_ok(rfl_file_read(path, &b, &err), &err);
	assert_string_equal(rfl_buf_str(&b), expected);
	rfl_buf_fini(&b);
}

static size_t entries(const char *folder)
{
	DIR *dir = opendir(folder);
	size_t n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2; /* . and .. */
}

static void reads_whole_files(void **state)
{
	const char *path = write_file(*state, "a.txt", "text\n");
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf b;

	rfl_buf_init(&b, 8);
	assert_ok(rfl_file_read(path, &b, &err), &err);
	assert_string_equal(rfl_buf_str(&b), "text\n");
	assert_int_equal(rfl_file_read(path, &b, &err), RFL_EOVERFLOW); /* 10 of 8 bytes */
	assert_says(&err, "a.txt");
	rfl_buf_reset(&b);
	rfl_err_clear(&err);
	assert_int_equal(rfl_file_read(*state, &b, &err), RFL_EIO);
	assert_says(&err, "is a directory");
	rfl_err_clear(&err);
	assert_int_equal(rfl_file_read(tmp_path(*state, "none"), &b, &err), RFL_EIO);
	assert_int_equal(err.native, ENOENT);
	rfl_buf_fini(&b);
}

static void replaces_at_once(void **state)
{
	const char *path = write_file(*state, "a.txt", "old and longer");
	struct rfl_err err = RFL_ERR_INIT;
	struct stat st;

	assert_int_equal(chmod(path, 0640), 0);
	assert_ok(rfl_file_write(path, "new", 3, &err), &err);
	assert_content(path, "new");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
	assert_ok(rfl_file_write(tmp_path(*state, "b.txt"), "", 0, &err), &err);
	assert_content(tmp_path(*state, "b.txt"), "");
	assert_int_equal(entries(*state), 2); /* no temporary name is left */
	assert_int_equal(rfl_file_write(*state, "x", 1, &err), RFL_EIO);
	assert_says(&err, "is a directory");
	rfl_err_clear(&err);
	assert_int_equal(rfl_file_write(tmp_path(*state, "no/b.txt"), "x", 1, &err), RFL_EIO);
	assert_says(&err, "no/b.txt");
}

static void a_link_stays_a_link(void **state)
{
	const char *path = write_file(*state, "target.txt", "old");
	const char *name = tmp_path(*state, "link.txt");
	struct rfl_err err = RFL_ERR_INIT;
	struct stat st;

	assert_int_equal(symlink(path, name), 0);
	assert_ok(rfl_file_write(name, "new", 3, &err), &err);
	assert_content(path, "new");
	assert_int_equal(lstat(name, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
}

/* A chain of relative links to a file that does not exist yet. */
static void links_are_followed_to_new_files(void **state)
{
	const char *target = tmp_path(*state, "there/new.txt");
	const char *first = tmp_path(*state, "first"), *loop = tmp_path(*state, "loop");
	struct rfl_err err = RFL_ERR_INIT;
	char *found = NULL;
	struct stat st;

	assert_ok(rfl_file_mkdirs_for(target, &err), &err);
	assert_int_equal(symlink("there/second", first), 0);
	assert_int_equal(symlink("new.txt", tmp_path(*state, "there/second")), 0);
	assert_ok(rfl_file_target(first, &found, &err), &err);
	assert_string_equal(found, target);
	free(found);
	assert_ok(rfl_file_target(target, &found, &err), &err); /* not a link */
	assert_string_equal(found, target);
	free(found);
	found = NULL;
	assert_ok(rfl_file_write(first, "new", 3, &err), &err);
	assert_content(target, "new");
	assert_int_equal(lstat(first, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(symlink("loop", loop), 0);
	assert_int_equal(rfl_file_target(loop, &found, &err), RFL_EIO);
	assert_says(&err, "loop: cannot resolve: Too many levels of symbolic links");
	assert_null(found);
}

static void a_lock_is_tried(void **state)
{
	const char *path = tmp_path(*state, "a.lock");
	struct rfl_err err = RFL_ERR_INIT;
	int fd = -1, other = 0;

	assert_ok(rfl_file_try_lock(path, &fd, &err), &err);
	assert_true(fd >= 0);
	assert_ok(rfl_file_try_lock(path, &other, &err), &err);
	assert_int_equal(other, -1);
	assert_int_equal(unlink(path), 0); /* a new file is another lock */
	assert_ok(rfl_file_try_lock(path, &other, &err), &err);
	assert_true(other >= 0);
	assert_ok(rfl_file_unlock(other, path, &err), &err);
	assert_ok(rfl_file_unlock(fd, path, &err), &err);
	assert_int_equal(rfl_file_try_lock(tmp_path(*state, "no/a.lock"), &fd, &err), RFL_EIO);
}

static void a_full_disk_is_an_error(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct stat st;

	(void)state;
	if (access("/dev/full", W_OK) != 0)
		skip();
	assert_int_equal(rfl_file_write("/dev/full", "x", 1, &err), RFL_EIO);
	assert_int_equal(err.native, ENOSPC);
	assert_says(&err, "/dev/full");
	assert_int_equal(stat("/dev/full", &st), 0);
	assert_true(S_ISCHR(st.st_mode)); /* written to, not replaced */
}

/* What does not fit leaves the old file, and nothing beside it. */
static void what_does_not_fit_changes_nothing(void **state)
{
	const char *path = write_file(*state, "a.txt", "old");
	const char *other = tmp_path(*state, "b.txt");
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		const struct rlimit limit = { .rlim_cur = 1000, .rlim_max = 1000 };
		static const char big[5000];

		signal(SIGXFSZ, SIG_IGN);
		if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
			_exit(2);
		_exit(rfl_file_write(path, big, sizeof(big), NULL) == RFL_EIO &&
				      rfl_file_create(other, big, sizeof(big), NULL) == RFL_EIO
			      ? 0
			      : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_content(path, "old");
	assert_int_equal(entries(*state), 1);
}

static void creates_only_what_is_new(void **state)
{
	const char *path = tmp_path(*state, "a.txt");
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(rfl_file_create(path, "one", 3, &err), &err);
	assert_int_equal(rfl_file_create(path, "two", 3, &err), RFL_EIO);
	assert_int_equal(err.native, EEXIST);
	assert_says(&err, "a.txt");
	assert_content(path, "one");
}

static void makes_folders(void **state)
{
	const char *path = tmp_path(*state, "a/b/c");
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(rfl_file_mkdirs(path, &err), &err);
	assert_ok(rfl_file_mkdirs(path, &err), &err);
	assert_true(rfl_dir_exists(path));
	assert_false(rfl_file_exists(path));
	assert_ok(rfl_file_mkdirs_for(tmp_path(*state, "x/y/z.txt"), &err), &err);
	assert_true(rfl_dir_exists(tmp_path(*state, "x/y")));
	assert_false(rfl_dir_exists(tmp_path(*state, "x/y/z.txt")));
	assert_ok(rfl_file_mkdirs_for("here.txt", &err), &err);
	assert_ok(rfl_file_mkdirs("/", &err), &err);
	assert_ok(rfl_file_mkdirs("", &err), &err);
	write_file(*state, "file", "");
	assert_int_equal(rfl_file_mkdirs(tmp_path(*state, "file/sub"), &err), RFL_EIO);
	assert_says(&err, "/file: not a directory");
	/* The reason is mkdir's, not that of a later call. */
	assert_int_equal(symlink("nowhere", tmp_path(*state, "link")), 0);
	rfl_err_clear(&err);
	assert_int_equal(rfl_file_mkdirs(tmp_path(*state, "link"), &err), RFL_EIO);
	assert_int_equal(err.native, ENOTDIR);
}

static void paths(void **state)
{
	char *path = rfl_path_join("a", "b");

	(void)state;
	assert_string_equal(path, "a/b");
	free(path);
	path = rfl_path_join("a/", "b");
	assert_string_equal(path, "a/b");
	free(path);
	path = rfl_path_join("", "b");
	assert_string_equal(path, "b");
	free(path);
	assert_string_equal(rfl_path_base("a/b.c"), "b.c");
	assert_string_equal(rfl_path_base("b.c"), "b.c");
	assert_string_equal(rfl_path_base("a/"), "");
}

/* Test vectors of the FNV specification (Fowler, Noll, Vo). */
static void hashes(void **state)
{
	char text[17];

	(void)state;
	assert_true(rfl_hash64(0, "", 0) == UINT64_C(0xcbf29ce484222325));
	assert_true(rfl_hash64(0, "a", 1) == UINT64_C(0xaf63dc4c8601ec8c));
	assert_true(rfl_hash64(0, "foobar", 6) == UINT64_C(0x85944171f73967e8));
	assert_true(rfl_hash64(rfl_hash64(0, "foo", 3), "bar", 3) == UINT64_C(0x85944171f73967e8));
	rfl_hash64_text(UINT64_C(0x05944171f73967e8), text);
	assert_string_equal(text, "05944171f73967e8");
}

/* The fingerprint of a file of any size is that of its bytes. */
static void hash_of_a_file(void **state)
{
	struct rfl_buf numbers = { .len = 0 };
	struct rfl_err err = RFL_ERR_INIT;
	char text[17], expected[17];

	for (int i = 0; i < 100000; i++)
		rfl_buf_printf(&numbers, "%d,", i);
	assert_ok(rfl_file_hash(write_file(*state, "a.txt", "foobar"), text, &err), &err);
	assert_string_equal(text, "85944171f73967e8");
	rfl_hash64_text(rfl_hash64(0, numbers.data, numbers.len), expected);
	assert_ok(rfl_file_hash(write_file(*state, "b.txt", numbers.data), text, &err), &err);
	assert_string_equal(text, expected);
	assert_ok(rfl_file_hash(write_file(*state, "empty", ""), text, &err), &err);
	assert_string_equal(text, "cbf29ce484222325");
	assert_int_equal(rfl_file_hash(*state, text, &err), RFL_EIO);
	assert_says(&err, "this is a directory, not a file");
	rfl_buf_fini(&numbers);
}

#define in_tmpdir(f) cmocka_unit_test_setup_teardown(f, tmpdir_make, tmpdir_remove)

/* In a directory that others may write to, a link may point at any file of ours. */
static void links_of_others_are_not_followed(void **state)
{
	const uid_t other = 65534;
	const char *target = write_file(*state, "target", "mine");
	const char *link = tmp_path(*state, "link");
	struct rfl_err err = RFL_ERR_INIT;
	int fd = -1;

	if (geteuid() != 0)
		skip(); /* only root makes links of others */
	assert_int_equal(symlink(target, link), 0);
	assert_int_equal(lchown(link, other, other), 0);
	assert_int_equal(rfl_file_write(link, "x", 1, &err), RFL_EIO);
	assert_says(&err, "link: symbolic links of other users");
	rfl_err_clear(&err);
	assert_int_equal(rfl_file_lock(link, &fd, &err), RFL_EIO);
	assert_says(&err, "other users");
	rfl_err_clear(&err);
	assert_int_equal(rfl_file_check_use(link, RFL_FILE_APPENDED, &err), RFL_EIO);
	assert_says(&err, "other users");
	assert_content(target, "mine");

	assert_int_equal(chown(*state, other, other), 0); /* whose directory it is may do so */
	rfl_err_clear(&err);
	assert_ok(rfl_file_lock(link, &fd, &err), &err);
	assert_ok(rfl_file_append(fd, link, "s", 1, &err), &err);
	assert_ok(rfl_file_unlock(fd, link, &err), &err);
	assert_content(target, "mines");
}

/* Nor are their links to directories, in which files would be created. */
static void folders_behind_links_of_others_are_not_used(void **state)
{
	const char *link = tmp_path(*state, "results"),
		   *below = tmp_path(*state, "results/figures");
	struct rfl_err err = RFL_ERR_INIT;

	if (geteuid() != 0)
		skip();
	assert_int_equal(symlink("/", link), 0);
	assert_ok(rfl_file_mkdirs(link, &err), &err);
	assert_int_equal(lchown(link, 65534, 65534), 0);
	assert_int_equal(rfl_file_mkdirs(link, &err), RFL_EIO);
	assert_says(&err, "results: symbolic links of other users");
	rfl_err_clear(&err);
	assert_int_equal(rfl_file_mkdirs(below, &err), RFL_EIO);
	assert_says(&err, "results: symbolic links of other users");
}

/* A file that was not named by the user, perhaps in a directory like /tmp. */
static void a_found_file_is_ours(void **state)
{
	const char *path = write_file(*state, "found.json", "{}"), *pipe = tmp_path(*state, "pipe");
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf text = { .len = 0 };

	assert_ok(rfl_file_read_found(path, &text, &err), &err);
	assert_string_equal(text.data, "{}");
	assert_int_equal(mkfifo(pipe, 0600), 0);
	assert_int_equal(rfl_file_read_found(pipe, &text, &err), RFL_EIO); /* does not block */
	assert_says(&err, "pipe: not a regular file");
	rfl_err_clear(&err);
	if (geteuid() == 0) {
		assert_int_equal(chown(path, 65534, 65534), 0);
		assert_int_equal(rfl_file_read_found(path, &text, &err), RFL_EIO);
		assert_says(&err, "found.json: belongs to another user");
		assert_int_equal(chown(*state, 65534, 65534), 0); /* who owns the directory may */
		rfl_err_clear(&err);
		assert_ok(rfl_file_read_found(path, &text, &err), &err);
	}
	rfl_buf_fini(&text);
}

static void a_folder_is_listed_in_order(void **state)
{
	static const char *const names[] = { "t/10/x", "t/2/x", "t/b/x", "t/file", "t/.hidden" };
	static const char *const want[] = { "2", "10", "b" };
	struct rfl_arena *arena = rfl_arena_new();
	struct rfl_err err = RFL_ERR_INIT;
	const char **folders = NULL;
	size_t n = 0;

	for (size_t i = 0; i < RFL_ARRAY_LEN(names); i++) {
		assert_ok(rfl_file_mkdirs_for(tmp_path(*state, names[i]), &err), &err);
		write_file(*state, names[i], "");
	}
	assert_ok(rfl_dir_list(tmp_path(*state, "t"), rfl_dir_exists, arena, &folders, &n, &err),
		  &err);
	assert_int_equal(n, RFL_ARRAY_LEN(want));
	for (size_t i = 0; i < n; i++)
		assert_string_equal(rfl_path_base(folders[i]), want[i]);
	assert_ok(rfl_dir_list(tmp_path(*state, "none"), NULL, arena, &folders, &n, &err), &err);
	assert_int_equal(n, 0);
	assert_int_equal(rfl_dir_list(tmp_path(*state, "t/file"), NULL, arena, &folders, &n, &err),
			 RFL_EIO);
	assert_says(&err, "t/file: cannot read: Not a directory");
	rfl_err_clear(&err);
	assert_int_equal(symlink("loop", tmp_path(*state, "t/loop")), 0);
	assert_int_equal(rfl_dir_list(tmp_path(*state, "t"), NULL, arena, &folders, &n, &err),
			 RFL_EIO);
	assert_says(&err, "t/loop: cannot read");
	rfl_arena_free(arena);
}

static void a_folder_that_can_be_made(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(rfl_file_check_use(tmp_path(*state, "a/b//"), RFL_FILE_FOLDER, &err), &err);
	assert_ok(rfl_file_check_use("none/below", RFL_FILE_FOLDER, &err), &err);
	write_file(*state, "file", "");
	assert_int_equal(rfl_file_check_use(tmp_path(*state, "file/b"), RFL_FILE_FOLDER, &err),
			 RFL_EIO);
	assert_says(&err, "file/b: Not a directory");
	rfl_err_clear(&err);
	if (geteuid() != 0) { /* root may write there */
		assert_int_equal(rfl_file_check_use("/proc/a/b", RFL_FILE_FOLDER, &err), RFL_EIO);
		assert_says(&err, "/proc/: cannot create files in this directory");
	}
}

/* One of ours that leads nowhere is not another user's. */
static void a_loop_is_called_one(void **state)
{
	const char *link = tmp_path(*state, "link");
	struct rfl_err err = RFL_ERR_INIT;
	int fd = -1;

	assert_int_equal(symlink("link", link), 0);
	assert_int_equal(rfl_file_lock_shared(link, &fd, &err), RFL_EIO);
	assert_says(&err, "link: Too many levels of symbolic links");
	rfl_err_clear(&err);
	assert_int_equal(rfl_file_lock(link, &fd, &err), RFL_EIO);
	assert_says(&err, "link: cannot open for appending: Too many levels");
}

/* Opened for a lock, it would lose its writer. */
static void a_pipe_is_not_locked(void **state)
{
	const char *pipe = tmp_path(*state, "pipe");
	struct rfl_err err = RFL_ERR_INIT;
	int fd = 0;

	assert_int_equal(mkfifo(pipe, 0600), 0);
	(void)alarm(60); /* without a writer, opening it blocks */
	assert_ok(rfl_file_lock_shared(pipe, &fd, &err), &err);
	(void)alarm(0);
	assert_int_equal(fd, -1);
	assert_ok(rfl_file_unlock(fd, pipe, &err), &err);
}

static pid_t dead_process(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return pid;
}

static void leave(void *state, const char *of, long pid, const char *end, bool long_ago)
{
	const struct timespec when[2] = { { .tv_sec = time(NULL) - 3600 },
					  { .tv_sec = time(NULL) - 3600 } };
	char name[96];

	snprintf(name, sizeof(name), "%s.tmp.%ld.0%s", of, pid, end);
	write_file(state, name, "");
	if (long_ago)
		assert_int_equal(utimensat(AT_FDCWD, tmp_path(state, name), when, 0), 0);
}

static void what_killed_processes_left_in_a_folder_is_swept(void **state)
{
	const long dead = dead_process();
	char name[64];

	leave(*state, "r1.csv", dead, "", true);
	leave(*state, "r2.csv", dead, "", true);
	leave(*state, "young", dead, "", false);
	leave(*state, "mine", (long)getpid(), "", true);
	leave(*state, "user", dead, ".csv", true);
	rfl_dir_sweep(*state);
	snprintf(name, sizeof(name), "r1.csv.tmp.%ld.0", dead);
	assert_false(rfl_file_exists(tmp_path(*state, name)));
	assert_true(rfl_file_is_temporary(tmp_path(*state, name)));
	snprintf(name, sizeof(name), "r2.csv.tmp.%ld.0", dead);
	assert_false(rfl_file_exists(tmp_path(*state, name)));
	snprintf(name, sizeof(name), "young.tmp.%ld.0", dead);
	assert_true(rfl_file_exists(tmp_path(*state, name)));
	snprintf(name, sizeof(name), "mine.tmp.%ld.0", (long)getpid());
	assert_true(rfl_file_exists(tmp_path(*state, name)));
	snprintf(name, sizeof(name), "user.tmp.%ld.0.csv", dead);
	assert_true(rfl_file_exists(tmp_path(*state, name)));
	assert_false(rfl_file_is_temporary(name));
}

static void what_killed_processes_left_is_swept(void **state)
{
	const long dead = dead_process();

	leave(*state, "env.json", dead, "", true);
	assert_int_equal(entries(*state), 1);
	rfl_file_sweep(tmp_path(*state, "env.json"));
	assert_int_equal(entries(*state), 0);

	leave(*state, "env.json", dead, "", false); /* on another machine it may be alive */
	leave(*state, "env.json", getpid(), "", true);
	leave(*state, "env.json", dead, ".mine", true);
	leave(*state, "other", dead, "", true);
	rfl_file_sweep(tmp_path(*state, "env.json"));
	assert_int_equal(entries(*state), 4);
}

/* Listen, and let the holder of the lock continue. */
static void listen_and_release(enum rfl_log_level level, const char *message, void *ctx)
{
	listen_to(level, message, NULL);
	assert_int_equal(write(*(int *)ctx, "x", 1), 1);
}

/* A process that waits for long learns the reason, and gets the lock in the end. */
static void waiting_for_a_lock_is_said(void **state)
{
	const char *path = write_file(*state, "lock", "");
	struct rfl_err err = RFL_ERR_INIT;
	int ready[2], release[2], fd = -1;
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(release), 0);
	rfl_log_set(listen_and_release, &release[1], RFL_LOG_INFO);
	said[0] = '\0';
	pid = fork();
	if (pid == 0) {
		fd = open(path, O_RDONLY);
		if (flock(fd, LOCK_EX) == 0 && write(ready[1], "x", 1) == 1)
			(void)!read(release[0], &byte, 1);
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_ok(rfl_file_lock(path, &fd, &err), &err);
	assert_non_null(strstr(said, "lock: waiting until another process"));
	assert_ok(rfl_file_unlock(fd, path, &err), &err);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	for (int i = 0; i < 2; i++) {
		close(ready[i]);
		close(release[i]);
	}
	rfl_log_set(NULL, NULL, RFL_LOG_INFO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_tmpdir(reads_whole_files),
		in_tmpdir(replaces_at_once),
		in_tmpdir(a_link_stays_a_link),
		in_tmpdir(links_are_followed_to_new_files),
		in_tmpdir(a_lock_is_tried),
		cmocka_unit_test(a_full_disk_is_an_error),
		in_tmpdir(what_does_not_fit_changes_nothing),
		in_tmpdir(creates_only_what_is_new),
		in_tmpdir(makes_folders),
		cmocka_unit_test(paths),
		in_tmpdir(hashes),
		in_tmpdir(hash_of_a_file),
		in_tmpdir(links_of_others_are_not_followed),
		in_tmpdir(folders_behind_links_of_others_are_not_used),
		in_tmpdir(a_found_file_is_ours),
		in_tmpdir(a_folder_is_listed_in_order),
		in_tmpdir(a_folder_that_can_be_made),
		in_tmpdir(a_loop_is_called_one),
		in_tmpdir(a_pipe_is_not_locked),
		in_tmpdir(what_killed_processes_left_is_swept),
		in_tmpdir(what_killed_processes_left_in_a_folder_is_swept),
		in_tmpdir(waiting_for_a_lock_is_said),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
