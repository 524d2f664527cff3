"""Entry point of the web page: `streamlit run app`."""

import streamlit as st

from app.controls import choose
from workbench.words.glossary import GLOSSARY

st.set_page_config(page_title="Latent workbench", layout="wide")
page = st.navigation(
    [
        st.Page("views/runs.py", title="Runs", default=True),
        st.Page(
            "views/question.py",
            title="Question",
            url_path="question",
        ),
        st.Page(
            "views/frontier.py",
            title="Frontier",
            url_path="frontier",
        ),
        st.Page(
            "views/graph.py",
            title="Graph",
            url_path="graph",
        ),
        st.Page(
            "views/thoughts.py",
            title="Thoughts",
            url_path="thoughts",
        ),
        st.Page(
            "views/realignment.py",
            title="Realignment",
            url_path="realignment",
        ),
        st.Page(
            "views/training.py",
            title="Training",
            url_path="training",
        ),
    ]
)
choose.sidebar()
page.run()
st.sidebar.caption(choose.HELP)
with st.sidebar.expander("Glossary"):
    st.markdown("\n\n".join(f"**{word}**: {text}" for word, text in GLOSSARY.items()))
