"""``python -m lastcall``: the same as the ``lastcall`` command."""

from lastcall.cli import main

if __name__ == "__main__":
    main()
