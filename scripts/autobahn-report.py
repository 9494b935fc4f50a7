"""Counts what Autobahn's reports say of the cases, and fails when one of them is wrong."""

import collections
import json
import sys
from pathlib import Path

# Of the closing as of the case. What is not strict, or only informs, conforms to RFC 6455.
GOOD = {"OK", "NON-STRICT", "INFORMATIONAL"}


def main(folder):
    bad = []
    for role in ["server", "client"]:
        index = json.loads(Path(folder, role, "index.json").read_text())
        for agent, cases in index.items():
            for key, title in [("behavior", "cases"), ("behaviorClose", "their closing")]:
                counts = collections.Counter(case[key] for case in cases.values())
                listed = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
                print(f"{agent} as {role}: {len(cases)} {title}: {listed}")
            for name, case in sorted(cases.items()):
                if not {case["behavior"], case["behaviorClose"]} <= GOOD:
                    bad.append(f"{role} {name}: {case['behavior']}, closing {case['behaviorClose']}")
    if bad:
        print("\n".join(bad))
    sys.exit(1 if bad else 0)


main(sys.argv[1])
