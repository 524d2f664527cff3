"""Choices that stand in the page's address, so that a link reproduces the view.

Most widgets are bound to the address by Streamlit (`bind=URL`), which leaves out a value that is
the widget's default. A choice whose first value is not the same for everyone, as run and question,
must always stand there: `pull` before its widget, `push` after it.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import streamlit as st

URL: Any = "query-params"


def pull(key: str, first: Any, words: Mapping[str, Any] | None = None) -> None:
    """Give a choice its first value: the address's, or else `first`.

    `words` are those that the address may hold, with what each means; without them, any word does.
    """
    if key not in st.session_state:
        asked = st.query_params.get(key, first)
        st.session_state[key] = asked if words is None else words.get(asked, first)


def push(key: str) -> None:
    """Write a choice into the address."""
    st.query_params[key] = st.session_state[key]


def keep(key: str, options: Iterable[Any]) -> None:
    """Before a widget: forget a choice that is no longer on offer."""
    if st.session_state.get(key) not in [None, *options]:
        del st.session_state[key]
