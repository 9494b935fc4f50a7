"""The committed inputs of fuzzers: a text file with an input a line, in hex, and an optional `# why` behind it.

    python3 Tests/Fuzzers/corpus.py expand TEXT FOLDER    writes each line's input to a file
    python3 Tests/Fuzzers/corpus.py add FOLDER TEXT       appends the inputs that the text does not have yet
"""

import hashlib
import shutil
import sys
from pathlib import Path


def read(text: Path) -> list[bytes]:
    inputs = []
    for number, line in enumerate(text.read_text().splitlines(), start=1):
        digits = line.split("#")[0].strip()
        if not digits:
            continue
        try:
            inputs.append(bytes.fromhex(digits))
        except ValueError as error:
            raise SystemExit(f"{text}:{number}: an input is written in hex, a `#` begins a comment: {error}")
    return inputs


def expand(text: Path, folder: Path) -> None:
    """Fills a new folder with a file for each input."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for data in read(text):
        (folder / hashlib.sha1(data).hexdigest()).write_bytes(data)


def add(folder: Path, text: Path) -> int:
    """Appends the folder's inputs that are new, the short ones first; returns how many that are."""
    known = set(read(text))
    new = {path.read_bytes() for path in folder.iterdir()} - known - {b""}
    with text.open("a") as file:
        for data in sorted(new, key=lambda data: (len(data), data)):
            file.write(data.hex() + "\n")
    return len(new)


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in ("expand", "add"):
        sys.exit(__doc__)
    {"expand": expand, "add": add}[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3]))
