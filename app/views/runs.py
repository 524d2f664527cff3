"""View: which runs there are, and how far each has trained."""

from pathlib import Path

import streamlit as st

from app import session
from app.controls import choose
from app.controls.show import attempt, literal, tiles
from app.controls.upload import upload
from workbench.runs import run_folders
from workbench.settings.plain_json import read_text

st.title("Runs")
st.caption("Models trained here or shipped, with their accuracy at the last measurement.")
lines = [session.line(str(path)) for path in run_folders().values()]
splits = list(dict.fromkeys(split for line in lines for split in line["accuracy"]))
share = st.column_config.ProgressColumn(min_value=0, max_value=1, format="%.3f", width=88)
st.dataframe(
    [{key: line[key] for key in line if key != "accuracy"} | line["accuracy"] for line in lines],
    column_order=["run", "family", "task", "parameters", "state", "step", *splits],
    column_config={
        "parameters": st.column_config.NumberColumn(format="localized"),
        "step": st.column_config.NumberColumn(format="localized"),
        **dict.fromkeys(splits, share),
    },
    hide_index=True,
)
for line in lines:
    if "family" not in line:
        st.warning(literal(f"{line['run']} {line['state']}"), icon=":material/info:")
upload()

chosen = choose.run()
st.header(literal(chosen.name))
line = next((line for line in lines if line["run"] == Path(chosen.path).name), {})
if "family" in line:
    loops_or_thoughts = "Loops" if line["thoughts"] is None else "Thoughts"
    tiles(
        {
            "Family": line["family"],
            loops_or_thoughts: line[loops_or_thoughts.lower()],
            "Parameters": f"{line['parameters'] or 0:,}",
            f"Steps, {line['state']}": f"{line['step']:,} of {line['steps']:,}",
        }
    )
    tiles({f"Accuracy, {split}": f"{share:.3f}" for split, share in line["accuracy"].items()})
card = Path(chosen.path, "card.md")
text = attempt(read_text, card) if card.exists() else None
if text is not None:
    with st.container(border=True):
        st.markdown(text.replace("$", r"\$").partition("\n")[2])
elif not card.exists():
    st.info("The card is written when training ends; until then, follow it under Training.")
