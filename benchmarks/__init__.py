"""Speed of the workbench, compared with a peer or a bare twin that is timed in the same run."""
