"""Which errors are complaints: a wrong input, said in a sentence, and no bug."""

from opcode import opmap


def is_complaint(error: Exception) -> bool:
    """Whether a `raise` in this project's own code made the error."""
    trace = error.__traceback__
    if trace is None:
        return False
    while trace.tb_next is not None:
        trace = trace.tb_next
    frame = trace.tb_frame
    ours = str(frame.f_globals.get("__name__")).split(".")[0] in ("workbench", "analyses")
    # What a C function raises, a missing key or torch's own words, ends in our frame too
    said = frame.f_code.co_code[trace.tb_lasti] == opmap["RAISE_VARARGS"]
    return ours and said and isinstance(error, ValueError | RuntimeError | KeyError | OSError)
