"""Which errors are complaints: a wrong input, said in a sentence, and no bug."""


def is_complaint(error: Exception) -> bool:
    """Whether this project's own code raised the error."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    raised_in = trace.tb_frame.f_globals.get("__name__", "") if trace else ""
    ours = str(raised_in).split(".")[0] in ("workbench", "analyses")
    return ours and isinstance(error, ValueError | RuntimeError | KeyError | OSError)
