"""`python -m tahoe.cli`: the console script, if it is not on the PATH."""

from tahoe.cli.main import main

main()
