"""`python -m gitledger`."""

from gitledger.cli.app import main

if __name__ == "__main__":
    main()
