"""Mark the regions of a program for `roofline profile`; outside of it, nothing happens.

    import roofline
    with roofline.region("train", flops=2 * m * n * k):
        step()

complexity() and points() run these commands and return their JSON; `python -m roofline` is the program.

    roofline.complexity("resnet50", train=True, batch_sizes=[8, 32])["models"]
    roofline.points(env="cpu")[0]["bound"]
"""
import contextlib
import json
import os
import socket
import subprocess
import sys

_control = None
_owner = None


def _send(mark):
    global _control, _owner
    try:
        if _owner != os.getpid():  # a child after fork() connects itself
            _owner = os.getpid()
            _control = None
            name = os.environ.get("ROOFLINE_CONTROL")
            if name:
                _control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                _control.connect("\0" + name)
        if _control:
            _control.send(mark.encode())
            if not _control.recv(8):
                _control = None
    except OSError:
        _control = None


def begin(name):
    _send("begin\t" + name[:64])


def end(name, flops=None, bytes=None):
    known = ["-" if n is None else repr(float(n)) for n in (flops, bytes)]
    _send("\t".join(["end", name[:64]] + known))


@contextlib.contextmanager
def region(name, flops=None, bytes=None):
    begin(name)
    try:
        yield
    finally:
        end(name, flops, bytes)


def _program():
    """The program that pip installed with this module, or the one on the PATH."""
    import importlib.metadata  # takes longer than a region's script should wait

    try:
        for file in importlib.metadata.files("roofline") or ():
            if file.parts[-2:] == ("bin", "roofline"):
                return str(file.locate())
    except importlib.metadata.PackageNotFoundError:
        pass
    return "roofline"


def _json(command, options):
    words = [_program(), "-q", command, "--format", "json"]
    for name, value in options.items():
        if value is not None and value is not False:
            words.append("--" + name.replace("_", "-"))
            if value is not True:
                words += [str(v) for v in (value if isinstance(value, (list, tuple)) else [value])]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return json.loads(done.stdout)


def complexity(*models, **options):
    """`roofline complexity --models MODELS`; image_size=64 is the option --image-size 64."""
    return _json("complexity", dict({"models": models} if models else {}, **options))


def points(**options):
    """`roofline points` in the current directory."""
    return _json("points", options)


if __name__ == "__main__":
    os.execvp(_program(), ["roofline"] + sys.argv[1:])
