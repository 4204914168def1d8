"""One file per command: parse, call one workflow, render, exit."""
