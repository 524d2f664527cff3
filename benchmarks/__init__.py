"""How fast the workbench is, always beside a peer or a bare twin timed in the same run."""
