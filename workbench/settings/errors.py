"""Tells user errors (bad input) from bugs."""

from opcode import opmap

from workbench.settings.registry import plugged


def is_complaint(error: Exception) -> bool:
    """Whether the error was raised by a `raise` of this project or of a plugin."""
    trace = error.__traceback__
    if trace is None:
        return False
    while trace.tb_next is not None:
        trace = trace.tb_next
    frame = trace.tb_frame
    module = str(frame.f_globals.get("__name__")).split(".")[0]
    ours = module in ("workbench", "analyses", "app") or module in plugged()
    # What a C function raises, a missing key or torch's own words, ends in our frame too
    said = frame.f_code.co_code[trace.tb_lasti] == opmap["RAISE_VARARGS"]
    return ours and said and isinstance(error, ValueError | RuntimeError | KeyError | OSError)
