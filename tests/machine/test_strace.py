"""What a trace says is read as it was written, whatever names files have, and not believed where it breaks off."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitledger.machine.strace import TraceFault, read_trace

END = "1 +++ exited with 0 +++\n"


def events(text: str, end: str = END, folder: str = "/r"):
    return list(read_trace((text + end).encode("utf-8", "surrogateescape").splitlines(keepends=True), folder))


def told(text: str, end: str = END) -> list[tuple[str, tuple[str, ...], str | None]]:
    return [(event.kind, event.names, event.real) for event in events(text, end)]


def test_an_open_file_has_its_given_name_and_the_kernels():
    (event,) = events('1 openat(AT_FDCWD</r/sub>, "../link", O_RDONLY|O_CLOEXEC) = 3</r/data.txt>\n')
    assert (event.names, event.real, event.reads, event.empties) == (
        ("/r/sub/../link",),
        "/r/data.txt",
        True,
        False,
    )
    (event,) = events('1 openat(4</r/sub>, "x", O_RDONLY) = 5</r/sub/x>(deleted)\n')
    assert (event.names, event.real) == (("/r/sub/x",), "/r/sub/x")
    (event,) = events('1 openat2(4</r>, "x", {flags=O_RDONLY, resolve=RESOLVE_BENEATH}, 24) = 5</r/x>\n')
    assert (event.names, event.reads) == (("/r/x",), True)


@pytest.mark.parametrize(
    ("flags", "reads", "empties"),
    [
        ("O_RDONLY", True, False),
        ("O_RDWR|O_CREAT, 0666", True, False),
        ("O_RDWR|O_CREAT|O_TRUNC, 0666", True, True),
        ("O_RDWR|O_CREAT|O_EXCL, 0600", True, True),
        ("O_WRONLY|O_CREAT|O_APPEND, 0666", False, False),
        ("O_RDONLY|O_PATH", False, False),
    ],
)
def test_flags_tell_what_becomes_of_the_content(flags, reads, empties):
    (event,) = events(f'1 open("x", {flags}) = 3</r/x>\n')
    assert (event.reads, event.empties) == (reads, empties)


def test_creat_empties():
    (event,) = events('1 creat("x", 0666) = 3</r/x>\n')
    assert (event.reads, event.empties) == (False, True)


def test_what_failed_or_was_cut_off_by_a_kill_is_nothing():
    text = (
        '1 openat(AT_FDCWD</r>, "x", O_RDONLY) = -1 ENOENT (No such file or directory)\n'
        '1 execve("./x", [...], 0x7ffd /* 2 vars */) = -1 ENOEXEC (Exec format error)\n'
        "1 openat(AT_FDCWD</r>, NULL, O_RDONLY) = -1 EFAULT (Bad address)\n"
        '1 openat(AT_FDCWD</r>, "x", O_RDONLY) = ? ERESTARTSYS (To be restarted if SA_RESTART is set)\n'
        '1 openat(AT_FDCWD</r>, "x", O_RDONLY <unfinished ...>\n'
        "1 <... openat resumed> <unfinished ...>) = ?\n"
    )
    assert told(text, "1 +++ killed by SIGKILL (core dumped) +++\n") == []


def test_halves_of_calls_are_put_together():
    text = (
        '1 vfork( <unfinished ...>\n2 execve("./tool", [...], 0x7ffd /* 2 vars */ <unfinished ...>\n'
        "1 <... vfork resumed>)              = 2\n2 <... execve resumed>)             = 0\n"
        "2 +++ exited with 0 +++\n"
    )
    assert told(text) == [("exec", ("/r/./tool",), None)]


def test_relative_names_follow_the_folder_of_their_process():
    text = (
        '1 chdir("sub")  = 0\n1 fork() = 2\n1 fchdir(3</else>) = 0\n'
        '2 execve("./a", [...], 0x1 /* 1 var */) = 0\n1 execve("./b", [...], 0x1 /* 1 var */) = 0\n'
        "2 +++ exited with 0 +++\n"
    )
    assert [names for _, names, _ in told(text)] == [("/r/sub/./a",), ("/else/./b",)]


def test_threads_share_their_folder_and_forks_do_not():
    text = (
        "1 clone3({flags=CLONE_VM|CLONE_FS|CLONE_THREAD, exit_signal=0} => {parent_tid=[2]}, 88) = 2\n"
        '2 chdir("/a") = 0\n1 open("x", O_RDONLY) = 3</a/x>\n2 +++ exited with 0 +++\n'
        '1 clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD, child_tidptr=0x7) = 3\n3 chdir("/b") = 0\n'
        '3 +++ exited with 0 +++\n1 open("y", O_RDONLY) = 3</a/y>\n'
    )
    assert [names for _, names, _ in told(text)] == [("/a/x",), ("/a/y",)]


def test_a_child_that_speaks_first_may_be_of_any_parent_that_forks():
    text = (
        "1 fork() = 2\n" + '2 chdir("/a") = 0\n'
        "1 vfork( <unfinished ...>\n2 vfork( <unfinished ...>\n"
        '3 execve("./x", [...], 0x1 /* 1 var */) = 0\n3 +++ exited with 0 +++\n'
        "2 <... vfork resumed>) = 3\n1 <... vfork resumed>) = 4\n"
        "4 +++ exited with 0 +++\n2 +++ exited with 0 +++\n"
    )
    assert told(text) == [("exec", ("/a/./x", "/r/./x"), None)]


def test_the_kernels_word_for_the_folder_counts():
    text = '1 openat(AT_FDCWD</new>, "x", O_RDONLY) = 3</new/x>\n1 execve("y", [...], 0x1 /* 1 var */) = 0\n'
    assert told(text)[1] == ("exec", ("/new/y",), None)


def test_a_thread_that_executes_takes_its_processs_name():
    text = (
        "1 clone(child_stack=0x1, flags=CLONE_VM|CLONE_FS|CLONE_THREAD) = 2\n"
        '2 execve("./x", [...], 0x1 /* 1 var */ <pid changed to 1 ...>\n'
        "1 +++ superseded by execve in pid 2 +++\n1 <... execve resumed>) = -1 (errno 18446744073709551359)\n"
        '1 execve("./y", [...], 0x1 /* 1 var */ <unfinished ...>\n1 <... execve resumed>) = 0\n'
    )
    assert [names for _, names, _ in told(text)] == [("/r/./x",), ("/r/./y",)]


def test_renames_and_links_have_two_names():
    text = (
        '1 rename("a", "b") = 0\n1 renameat2(AT_FDCWD</r>, "a", 5</q>, "b", RENAME_EXCHANGE) = 0\n'
        '1 linkat(5</q>, "a", AT_FDCWD</r>, "b", 0) = 0\n1 unlinkat(5</q>, "a", 0) = 0\n'
        '1 execve("c", [...], 0x1 /* 1 var */) = 0\n'
    )
    found = [(event.kind, event.names, event.others, event.swaps) for event in events(text)]
    assert found == [
        ("rename", ("/r/a",), ("/r/b",), False),
        ("rename", ("/r/a",), ("/q/b",), True),
        ("link", ("/q/a",), ("/r/b",), False),
        ("unlink", ("/q/a",), (), False),
        ("exec", ("/r/c",), (), False),  # a second name's folder is no process's folder
    ]


@pytest.mark.parametrize(
    "name",
    [
        r"a) = -1 ENOENT (No such file or directory",
        r"q) = ? y",
        r"q) = 3",
        r"a \74unfinished ...\76",
        r"a\74b\76 c\n1 +++ exited with 0 +++",
    ],
)
def test_no_name_looks_like_the_end_of_a_call(name):
    quoted = name.replace(r"\74", "<").replace(r"\76", ">")
    plain = quoted.replace(r"\n", "\n")
    assert told(f'1 openat(AT_FDCWD</r>, "{quoted}", O_RDONLY) = 3</r/{name}>\n') == [
        ("open", (f"/r/{plain}",), f"/r/{plain}")
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('1 openat(AT_FDCWD</r>, "x", O_RDO', "breaks off"),
        ("1 open(x) = 3</r/x>\n", "can't be read"),
        ("strace: out of memory\n", "no line of strace"),
        ('1 open("\\q", O_RDONLY) = 3</r/q>\n', "escape"),
        ('1 open("\\777", O_RDONLY) = 3</r/q>\n', "escape"),
        ("1 <... open resumed>) = 3</r/q>\n", "did not begin"),
        ("1 umount() = 0\n", "not asked for"),
        ('1 fork() = 2\n9 execve("./x", [...], 0x1 /* 1 var */) = 0\n', "folder of a process is not known"),
        ("1 +++ superseded by execve in pid 7 +++\n", "nobody executed"),
        ('1 chdir("' + "x" * 20_000 + '") = 0\n', "not known"),
        ('1 chdir("' + "x" * 70_000 + '") = 0\n', "no line of strace"),
    ],
)
def test_a_trace_that_strace_does_not_write_is_none(text, why):
    with pytest.raises(TraceFault, match=why):
        events(text, "")


@pytest.mark.parametrize(
    "text",
    ["", '1 open("x", O_RDONLY) = 3</r/x>\n', '1 fork() = 2\n2 chdir("/") = 0\n1 +++ exited with 0 +++\n'],
)
def test_a_trace_without_the_end_of_every_process_is_cut(text):
    with pytest.raises(TraceFault, match=r"breaks off|empty"):
        events(text, "")


@pytest.mark.parametrize(
    "call", ['chroot("/x")', 'mount("a", "/b", NULL, MS_BIND, NULL)', "io_uring_setup(8, {...})"]
)
def test_what_a_trace_can_not_see_is_no_part_of_it(call):
    assert events(f"1 {call} = -1 EPERM (Operation not permitted)\n") == []
    with pytest.raises(TraceFault, match="can't see what it opens"):
        events(f"1 {call} = 0\n")


def quoted(data: bytes, extra: bytes) -> str:
    """Write bytes as strace does: letters, then octal as short as what follows allows."""
    letters = {10: "\\n", 9: "\\t", 13: "\\r", 11: "\\v", 12: "\\f", 34: '\\"', 92: "\\\\"}
    out = []
    for at, byte in enumerate(data):
        if byte in letters and not (byte == 34 and extra):
            out.append(letters[byte])
        elif 32 <= byte < 127 and byte not in extra:
            out.append(chr(byte))
        else:
            follows = data[at + 1 : at + 2].isdigit()
            out.append(f"\\{byte:03o}" if follows else f"\\{byte:o}")
    return "".join(out)


@given(st.binary(max_size=60).filter(lambda data: b"\0" not in data and b"/" not in data and data))
def test_every_name_comes_back(name):
    text = f'1 openat(AT_FDCWD</r>, "{quoted(name, b"")}", O_RDONLY) = 3</r/{quoted(name, b"<>")}>\n'
    plain = name.decode("utf-8", "surrogateescape")
    assert told(text) == [("open", (f"/r/{plain}",), f"/r/{plain}")]


WORDS = st.sampled_from(
    [
        *(
            "1 ",
            "2 ",
            "3 ",
            "fork(",
            "vfork(",
            "open(",
            "openat(",
            "execve(",
            ") = ",
            "0",
            "2",
            "-1 ENOENT (No)",
            "\n",
        ),
        *("<unfinished ...>", "<... fork resumed>", "<... open resumed>", '"x"', ", ", "AT_FDCWD</r>", "3</r/x>"),
        *("+++ exited with 0 +++", "+++ superseded by execve in pid 2 +++", "O_RDONLY", "\\", "?", "chdir("),
    ]
)


@given(st.lists(WORDS, max_size=40).map("".join))
def test_anything_is_read_or_refused(text):
    with suppress(TraceFault):
        events(text, "")


@given(st.binary(max_size=300))
def test_bytes_that_are_no_trace_are_refused(data):
    with pytest.raises(TraceFault):
        list(read_trace(data.splitlines(keepends=True), "/r"))
