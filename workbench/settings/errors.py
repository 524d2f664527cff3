"""Tells user errors (bad input) from bugs."""

from opcode import opmap

from workbench.settings.registry import plugged


def is_complaint(error: Exception) -> bool:
    """Return whether the error came from a `raise` statement of this project or of a plugin."""
    trace = error.__traceback__
    if trace is None:
        return False
    while trace.tb_next is not None:
        trace = trace.tb_next
    frame = trace.tb_frame
    module = str(frame.f_globals.get("__name__")).split(".")[0]
    ours = module in ("workbench", "analyses", "app") or module in plugged()
    # Errors from C functions (a missing key, torch's own errors) also end in our frame
    said = frame.f_code.co_code[trace.tb_lasti] == opmap["RAISE_VARARGS"]
    return ours and said and isinstance(error, ValueError | RuntimeError | KeyError | OSError)
