"""`python -m tahoe`: the command `tahoe`, for machines whose PATH lacks the folder of pip's commands."""

from tahoe.cli.main import main

main()
