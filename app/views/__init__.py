"""The views of the web page, one for each question."""
