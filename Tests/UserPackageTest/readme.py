"""Prints, as a script for bash, what the README's sections that are named tell a new user to do."""

import re
import sys
from pathlib import Path

README = Path(__file__).resolve().parents[2] / "README.md"


def main(titles: list[str]) -> None:
    for title in titles:
        section = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## )", README.read_text(), re.DOTALL | re.MULTILINE)
        if not section:
            sys.exit(f"The README has no section {title}.")
        for step in steps(section[1]):
            print(step)


def steps(section: str) -> list[str]:
    """Commands as they are; a block behind a paragraph that names a file is what becomes of that file."""
    found = []
    for paragraph, language, block in re.findall(r"((?:^[^\n]+\n)+)\n```(\w+)\n(.*?)^```", section, re.DOTALL | re.MULTILINE):
        if language == "sh":
            found.append(block)
        elif names := re.findall(r"`([\w/]+\.\w+)`", paragraph):
            found.append(f"cat >{names[-1]} <<'END OF FILE'\n{block}END OF FILE\n")
        else:
            sys.exit(f"What is this block for?\n{block}")
    return found


main(sys.argv[1:])
