from __future__ import annotations

from xml.etree import ElementTree as ET

from benchmarks.reporting.flame import flame, stacks, top_lists

RAW = """\
<module> (run.py:1);import_it (lib/x.py:2) 500
main (run.py:3);Worker.execute_from_commandline (mode/worker.py:264);apply (loopstream/fold.py:7) 60
main (run.py:3);Worker.execute_from_commandline (mode/worker.py:264);apply (loopstream/fold.py:9) 20
main (run.py:3);Worker.execute_from_commandline (mode/worker.py:264);poll (aiokafka/client.py:1) 20
"""


def test_only_the_event_loop_counts() -> None:
    assert sum(count for _, count in stacks(RAW)) == 100


def test_lines_of_one_function_are_one_row() -> None:
    lists = list(top_lists(stacks(RAW)))
    assert "| 80.0% | `apply (loopstream/fold.py)` |" in lists
    assert "| 80.0% | loopstream/fold.py |" in lists
    assert "| 20.0% | aiokafka |" in lists


def test_widths_are_shares() -> None:
    graph = ET.fromstring(flame(stacks(RAW)))
    space = {"svg": "http://www.w3.org/2000/svg"}
    widths = [float(rect.attrib["width"]) for rect in graph.findall(".//svg:rect", space)]
    assert widths == [1200.0, 960.0, 240.0]
