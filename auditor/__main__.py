"""``python -m auditor`` is the same as the ``auditor`` command."""

from auditor.cli.app import main

if __name__ == "__main__":
    main()
