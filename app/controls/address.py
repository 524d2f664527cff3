"""Choices that are kept in the page's address, so that a link reproduces the view.

Streamlit binds most widgets to the address (`bind=URL`) and leaves out a value that is the widget's
default. A choice whose first value is not the same for everyone, such as run and question, must
always be in the address: call `pull` before its widget and `push` after it.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import streamlit as st

URL: Any = "query-params"


def pull(key: str, first: Any, words: Mapping[str, Any] | None = None) -> None:
    """Set a choice's first value: the one in the address, or else `first`.

    `words` maps the words that the address may hold to their values. Without it, any word is
    accepted.
    """
    if key not in st.session_state:
        asked = st.query_params.get(key, first)
        st.session_state[key] = asked if words is None else words.get(asked, first)


def push(key: str) -> None:
    """Write a choice into the address."""
    st.query_params[key] = st.session_state[key]


def keep(key: str, options: Iterable[Any]) -> None:
    """Delete a choice that is no longer among the options; call this before its widget."""
    if st.session_state.get(key) not in [None, *options]:
        del st.session_state[key]
