"""The command line: lists the benchmarks, or runs one."""

from __future__ import annotations

import argparse
import ast
import importlib
import pkgutil
import signal
import sys
from pathlib import Path

from . import benchmarks
from .harness import Report, Settings, Unusable


def names() -> dict[str, str]:
    """Each benchmark with the first line of its documentation."""
    found = {}
    for module in pkgutil.iter_modules(benchmarks.__path__):
        if not module.name.startswith("_"):
            # Not imported: each needs the packages of its own environment only.
            source = Path(module.module_finder.path, f"{module.name}.py").read_text()
            found[module.name] = (ast.get_docstring(ast.parse(source)) or "").splitlines()[0]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="bench/run", description="Runs a benchmark; without a name it lists them."
    )
    parser.add_argument("name", nargs="?", help="which benchmark")
    parser.add_argument("--quick", action="store_true", help="small data, about a minute")
    parser.add_argument("--only", metavar="TEXT", help="only rows whose name contains this text")
    parser.add_argument("--seed", type=int, default=1, help="seed of all data (default 1)")
    arguments = parser.parse_args()
    known = names()
    if arguments.name is None:
        for name, line in known.items():
            print(f"{name:<12}{line}")
        return 0
    if arguments.name not in known:
        print(
            f"bench/run: there is no benchmark {arguments.name!r}; there are {', '.join(known)}.",
            file=sys.stderr,
        )
        return 2
    settings = Settings(
        quick=arguments.quick, only=arguments.only, seed=arguments.seed
    )
    # A run that is stopped removes its data and ends its workers like one that fails.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    report = Report(arguments.name, settings)
    module = importlib.import_module(f"{benchmarks.__name__}.{arguments.name}")
    try:
        module.run(settings, report)
    except Unusable as reason:
        print(f"bench/run: {reason}", file=sys.stderr)
        return 2
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
