"""Counts the results in Autobahn's reports. Fails when a case failed, or when another number of cases ran.

Usage: autobahn-report.py FOLDER COUNT
"""

import collections
import json
import sys
from pathlib import Path

# For the close as for the case. NON-STRICT and INFORMATIONAL cases conform to RFC 6455.
GOOD = {"OK", "NON-STRICT", "INFORMATIONAL"}


def main(folder, expected_count):
    bad = [] if expected_count > 0 else ["no case ran"]
    for role in ["server", "client"]:
        index = json.loads(Path(folder, role, "index.json").read_text())
        if len(index) != 1:
            bad.append(f"{role}: the reports are of {len(index)} programs")
        for agent, cases in index.items():
            if len(cases) != expected_count:
                bad.append(f"{role}: {len(cases)} of {expected_count} cases ran")
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


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
