"""Prints, as a script for bash, what an article tells a new user to do."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def main(article: str) -> None:
    for step in steps((ROOT / article).read_text()):
        print(step)


def steps(text: str) -> list[str]:
    """Commands as they are; a block behind a paragraph that names a file is what becomes of that file."""
    found = []
    for paragraph, language, block in re.findall(r"((?:^[^\n]+\n)+)\n```(\w+)\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        if language == "sh":
            found.append(block)
        elif names := re.findall(r"`([\w/]+\.\w+)`", paragraph):
            found.append(f"cat >{names[-1]} <<'END OF FILE'\n{block}END OF FILE\n")
        else:
            sys.exit(f"What is this block for?\n{block}")
    return found


main(sys.argv[1])
