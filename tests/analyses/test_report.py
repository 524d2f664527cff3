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


def test_runs_in_words_are_compared_where_their_questions_are_the_same(make_staged_run, tmp_path):
    import shutil

    from analyses.report import report

    speaks, few = "training.curriculum.method=cot", "task.n_test=15"
    for name, changes in {"b-speaks": (speaks,), "a-thinks": (), "c-elsewhere": (few,)}.items():
        shutil.copytree(make_staged_run(*changes).path, tmp_path / name)
    (tmp_path / "about.md").write_text("# Runs\n")
    page = report(tmp_path)
    # The run that says its steps comes first; one with questions of its own has its own table
    assert "compare b-speaks --set 'beside=[a-thinks]'`, 20 test questions:" in page
    assert "compare c-elsewhere`, 15 test questions:" in page
    assert page.count("| `a-thinks` |") == 2  # its table, making
    assert page.count("- `a-thinks`: ") == page.count("- `c-elsewhere`: ") == 6
