"""The report measures every run it is given and says how."""


def test_report_has_a_row_for_every_run_in_every_table(make_run, tmp_path):
    import shutil

    from analyses.report import report

    for family in ("transformer", "looped"):
        run = make_run(family, ["training.measure.every=1"])
        shutil.copytree(run.path, tmp_path / f"tiny-{family}")
    (tmp_path / "about.md").write_text("# Runs\n")
    page = report(tmp_path)
    assert page.startswith("# Runs\n")
    assert page.count("| `tiny-transformer` |") == 6  # accuracy, Stage-1, three bridges, making
    assert page.count("`tiny-looped`: ") == 2  # realignment, change
