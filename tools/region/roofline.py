"""Mark the regions of a program for `roofline profile`; outside of it, nothing happens.

    import roofline
    with roofline.region("train", flops=2 * m * n * k):
        step()
"""
import contextlib
import os
import socket

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
