"""Feed one target by coverage: ``python tests/fuzz/run_atheris.py TARGET [options of libFuzzer]`` (pip install atheris).

What it finds belongs into the target's folder of the corpus, under a name that says what it is.
"""

import sys
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parents[1]))
with atheris.instrument_imports(include=["auditor"]):
    from fuzz.targets import fed


def main():
    """Run until something is found, or until the options say so."""
    name, *options = sys.argv[1:]
    folder = Path(__file__).parent / "corpus" / name
    atheris.Setup([sys.argv[0], *options, str(folder)], lambda content: fed(name, content))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
