"""`python -m gitledger`; better `python -P -m gitledger`, which never looks for modules where one stands."""

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]  # the folder one stands in: mostly the repository that is judged

    from gitledger.cli.start import main

    main()
