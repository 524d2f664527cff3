"""What stands below a figure's title is whole, also where the figure is narrow."""

import plotly.graph_objects as go

from analyses.kit.style import SUBTITLE, styled, subtitled


def test_a_long_line_is_broken_between_its_parts_and_the_axes_keep_their_height():
    parts = [
        "a-run (recipe another-run)",
        "step 500 (kept in bfloat16)",
        "test_ood",
        "n ≤ 500, seed 0",
    ]
    parts += ["9 loops, trained with 2", "2 edits (touched 2,000, 12 rows)"]
    plain = styled(go.Figure(), "title")
    figure = subtitled(styled(go.Figure(), "title"), " · ".join(parts))
    lines = figure.layout.title.subtitle.text.split("<br>")
    assert len(lines) == 3 and all(len(line) <= SUBTITLE + 2 for line in lines)
    assert " ".join(lines) == " · ".join(parts)
    room = [f.layout.height - f.layout.margin.t - f.layout.margin.b for f in (plain, figure)]
    assert room[0] == room[1]


def test_a_short_line_changes_nothing():
    plain = styled(go.Figure(), "title")
    figure = subtitled(styled(go.Figure(), "title"), "a-run · final weights")
    assert figure.layout.title.subtitle.text == "a-run · final weights"
    assert figure.layout.height == plain.layout.height


def test_a_figure_without_a_height_of_its_own_takes_a_long_subtitle():
    import plotly.express as px

    figure = subtitled(px.line(x=[0, 1], y=[0, 1]), " · ".join(["a long part of it"] * 20))
    assert figure.layout.title.subtitle.text.count("<br>") > 0
    assert figure.layout.height > 450 and figure.layout.margin.t > 100
