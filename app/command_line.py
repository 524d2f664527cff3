"""The `workbench` command. Each verb is a function, with heavy imports inside the function."""

import argparse
import json
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.tasks import Task

# Streamlit options that keep the page private to this machine. Streamlit reads
# .streamlit/config.toml only from the current folder, which need not be the checkout.
PRIVATE = {
    "server_address": "localhost",
    "server_headless": True,
    "browser_gatherUsageStats": False,
}
CRASHED = 70
EXIT_CODES = (
    "exit codes: 0 done, 1 wrong input (one sentence on stderr), 2 wrong usage, "
    "70 a bug (with its traceback), 130 interrupted"
)
MOMENT = 1.0  # seconds
LONGEST = 1_000  # characters of an error message
WORK = {  # what a verb does that may take a while, shown on stderr
    "runs": "reading the runs",
    "recipes": "reading the recipes",
    "train": "drawing the task and building the model",
    "evaluate": "drawing the task and asking the run",
    "analyse": "drawing the task and looking at the run",
    "data": "drawing the task",
    "app": "starting the page",
}
Verb = Callable[[argparse.Namespace], None]


def runs(args: argparse.Namespace) -> None:
    """List the runs in ./runs and in $WORKBENCH_RUNS, and the shipped runs."""
    from workbench.runs import load_run, run_folders, where_runs_are
    from workbench.runs.overview import state

    found = run_folders()
    if not found:
        print(f"no run; {where_runs_are()}")
    for name, path in found.items():
        try:
            run = load_run(path)
            how = f"{run.recipe.training.steps:,} steps" if run.is_finished else state(run)
            line = f"{run.recipe.model['family']:16} {run.recipe.task['name']:13} {how}"
        except Exception as error:  # one bad folder must not hide the others
            line = f"cannot be read: {error}"
        print(f"{name:34} {line}")


def recipes(args: argparse.Namespace) -> None:
    """List the shipped recipes."""
    from workbench.settings.recipe import load_recipe, recipe_names

    for name in recipe_names():
        print(f"{name:32} {load_recipe(name).about}")


def analyses(args: argparse.Namespace) -> None:
    """List the analyses."""
    from analyses.kit.listing import ANALYSES

    for name in ANALYSES:
        print(f"{name:20} {ANALYSES.about(name)}")


def tasks(args: argparse.Namespace) -> None:
    """List the tasks."""
    from workbench.tasks import TASKS

    for name, cls in TASKS.items():
        sizes = ", ".join(f"{k}={f.default}" for k, f in cls.Config.model_fields.items())
        print(f"{name:12} {(cls.__doc__ or '').splitlines()[0]} {sizes}")


def families(args: argparse.Namespace) -> None:
    """List the model families."""
    from workbench.registries import FAMILIES

    for name in FAMILIES:
        print(f"{name:16} {FAMILIES.about(name)}")


def edits(args: argparse.Namespace) -> None:
    """List the kinds of edits and their fields."""
    from workbench.registries import EDITS

    for name, kind in EDITS.items():
        fields = ", ".join(field for field in kind.model_fields if field != "do")
        print(f"{name:12} {(kind.__doc__ or '').splitlines()[0]} Fields: {fields}")


def train(args: argparse.Namespace) -> None:
    """Train a recipe; measurements and weights are written to --out during training."""
    from workbench.settings.recipe import load_recipe

    recipe = load_recipe(args.recipe, args.set)
    folder = args.out or Path("runs") / recipe.name
    if args.plan:
        from workbench.training.plan import plan

        print(plan(recipe, folder))
        return
    from workbench.training import train as fit

    print(fit(recipe, folder, resume=args.resume))


def evaluate(args: argparse.Namespace) -> None:
    """Measure how often a run's answers are right."""
    from workbench.runs import load_run
    from workbench.runs.evaluation import evaluate as measure
    from workbench.runs.evaluation import in_words

    run = load_run(args.run, _device(args.device))
    found = measure(
        run,
        step=args.step,
        split=args.split,
        loops=args.loops,
        thoughts=args.thoughts,
        edits=_edits(args.edits),
        n=args.n,
        seed=args.seed,
        file=args.file,
    )
    if args.json == "-":
        print(json.dumps(found))
        return
    print(in_words(found, run.task.unit))
    if args.json:
        from workbench.settings.files import write_text

        write_text(Path(args.json), json.dumps(found))
        print(args.json)


def analyse(args: argparse.Namespace) -> None:
    """Run one analysis on a run; write its table, figure and numbers."""
    from analyses import analyse as look
    from workbench.runs import load_run

    options = _settings(args.set)
    for flag in options.keys() & signature(look).parameters.keys():
        raise ValueError(f"--set {flag}: say it as --{flag.removeprefix('n_')}, it is no option")
    found = look(
        args.name,
        load_run(args.run, _device(args.device)),
        step=args.step,
        split=args.split,
        question=args.question,
        n=args.n,
        seed=args.seed,
        loops=args.loops,
        thoughts=args.thoughts,
        edits=_edits(args.edits),
        **options,
    )
    paths = found.write(args.out)
    print(found.summary())
    print(*paths, sep="\n")


def data(args: argparse.Namespace) -> None:
    """Print examples of a task, or of a run's own task, as JSON lines."""
    from workbench.settings.files import write_text

    task = _task(args)
    batch = task.batch(args.split or task.default_split, args.n, args.seed or 0)
    text = "".join(json.dumps(example) + "\n" for example in task.examples(batch))
    if args.out is None:
        print(text, end="")
    else:
        write_text(args.out, text)
        print(args.out)


def _task(args: argparse.Namespace) -> "Task":
    from workbench.runs import load_run, run_folders
    from workbench.settings.plain_json import is_file
    from workbench.tasks import TASKS, build_task

    settings = _settings(args.set)
    is_run = args.task in run_folders() or is_file(Path(args.task, "recipe.yaml"))
    if args.task in TASKS or not is_run:
        return build_task(args.task, args.seed or 0, **settings)
    given = ["--set"] * bool(settings) + ["--seed"] * (args.seed is not None)
    if given:
        raise ValueError(
            f"{args.task} is a run, whose task has its own sizes and seed; leave out "
            f"{' and '.join(given)}"
        )
    return load_run(args.task).task


def app(args: argparse.Namespace) -> None:
    """Open the web page."""
    from streamlit.web import bootstrap

    page = Path(__file__).with_name("streamlit_app.py")
    bootstrap.load_config_options(PRIVATE)
    bootstrap.run(str(page), False, [], PRIVATE)


def _plug(modules: Sequence[str]) -> None:
    """Import plugins, here and in every process that this one starts."""
    from workbench.settings.registry import PLUGINS, plug, plug_environment

    plug_environment()
    present = os.environ.get(PLUGINS, "")
    for module in modules:
        path = Path(module)
        named = str(path.resolve()) if path.suffix == ".py" else module
        plug(named)
        present = os.pathsep.join(filter(None, [present, named]))
    if modules:
        os.environ[PLUGINS] = present


def _settings(changes: Sequence[str]) -> dict[str, Any]:
    """Parse options of the form `k=v`, with values as YAML."""
    from workbench.settings.plain_yaml import parse_yaml

    settings = {}
    for change in changes:
        key, equals, value = change.partition("=")
        if not equals or not key:
            raise ValueError(f"--set {change!r} is not of the form k=v")
        settings[key] = parse_yaml(value, f"--set {change}")
    return settings


def _edits(path: Path | None) -> Sequence[Any]:
    """Read edits from a JSON or YAML file."""
    if path is None:
        return ()
    from workbench.edits import parse_edits
    from workbench.settings.files import read_text
    from workbench.settings.plain_yaml import parse_yaml

    return parse_edits(parse_yaml(read_text(path), str(path)))


def _device(wanted: str | None) -> str:
    from workbench.settings.devices import best_device, check_device

    return best_device() if wanted is None else check_device(wanted)


@contextmanager
def _saying(what: str) -> Iterator[None]:
    """Print to stderr what is being done, if it takes longer than `MOMENT`."""
    timer = threading.Timer(MOMENT, lambda: print(what, file=sys.stderr, flush=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _shortened(sentence: str) -> str:
    """Shorten a message of more than `LONGEST` characters by cutting out its middle."""
    if len(sentence) <= LONGEST:
        return sentence
    return f"{sentence[: LONGEST // 2]} … {sentence[-LONGEST // 2 :]}"


def build_parser() -> argparse.ArgumentParser:
    """Build the command-line parser without importing what the verbs need."""
    parser = argparse.ArgumentParser(
        prog="workbench",
        description="Train looped transformers and take them apart.",
        epilog=EXIT_CODES,
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    parser.add_argument(
        "--plugin",
        action="append",
        default=[],
        metavar="MODULE",
        help="a module or file whose families, tasks, edits and analyses to add",
    )
    for listing in (runs, recipes, analyses, tasks, families, edits):
        _verb(verbs, listing)

    verb = _verb(verbs, train)
    verb.add_argument("recipe", metavar="RECIPE", help="a shipped recipe's name or a YAML file")
    _add_set(verb, "a value of the recipe, a.b=c")
    verb.add_argument("--out", type=Path, help="folder of the run (runs/NAME)")
    verb.add_argument("--resume", action="store_true", help="go on where a killed run stopped")
    verb.add_argument("--plan", action="store_true", help="say what would be done, and stop")

    verb = _verb(verbs, evaluate)
    _add_run(verb)
    verb.add_argument("--n", type=int, help="rows to draw (the whole split)")
    verb.add_argument(
        "--file",
        type=Path,
        help="official questions to ask, of ProsQA for one, in place of a split",
    )
    verb.add_argument("--json", metavar="FILE", help="write one JSON object; - prints it")

    verb = _verb(verbs, analyse)
    verb.add_argument("name", metavar="NAME", help="an analysis; `workbench analyses` lists them")
    _add_run(verb)
    verb.add_argument("--question", help="one question in place of a split")
    verb.add_argument("--n", type=int, help="rows of each split to draw (500)")
    _add_set(verb, "an option of the analysis, k=v")
    verb.add_argument("--out", type=Path, default=Path("results"), help="folder (results)")

    verb = _verb(verbs, data)
    verb.add_argument("task", metavar="TASK", help="a task, or a run for the words that it knows")
    verb.add_argument("--split", help="by default the one that the task is judged on")
    verb.add_argument("--n", type=int, default=10, help="rows to draw (10)")
    verb.add_argument("--seed", type=int, help="of the task and the draw (0)")
    _add_set(verb, "a size of the task, k=v")
    verb.add_argument("--out", type=Path)

    _verb(verbs, app)
    return parser


def _verb(verbs: Any, function: Verb) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = verbs.add_parser(
        function.__name__, help=function.__doc__, description=function.__doc__
    )
    parser.set_defaults(run_verb=function)
    return parser


def _add_set(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--set", action="append", default=[], metavar="k=v", help=what)


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="a run's name or folder")
    parser.add_argument("--step", type=int, help="a saved step (the final weights)")
    parser.add_argument("--split", help="a split of the task")
    parser.add_argument("--seed", type=int, default=0, help="of the draw of rows")
    parser.add_argument("--loops", type=int, help="loops to run (as trained)")
    parser.add_argument("--thoughts", type=int, help="thoughts to run, where a model has them")
    parser.add_argument("--edits", type=Path, metavar="FILE", help="interventions, JSON or YAML")
    parser.add_argument("--device", help="cpu, cuda, mps (the best there is)")


def main(argv: list[str] | None = None) -> int:
    """Run one verb and return one of `EXIT_CODES`."""
    args = build_parser().parse_args(argv)
    try:
        with _saying(f"workbench {args.verb}: {WORK.get(args.verb, 'working')} …"):
            _plug(args.plugin)
            args.run_verb(args)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as `head`, has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        further = "; `--resume` goes on" if args.verb == "train" else ""
        print(f"workbench {args.verb}: stopped{further}", file=sys.stderr)
        return 130
    except Exception as error:
        from workbench.settings.errors import is_complaint

        if not is_complaint(error):
            traceback.print_exc()
            print(f"workbench {args.verb}: this is a bug; please report it", file=sys.stderr)
            return CRASHED
        print(f"workbench {args.verb}: {_shortened(str(error))}", file=sys.stderr)
        return 1
    return 0
