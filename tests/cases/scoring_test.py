#!/usr/bin/env python3
"""The scoring: made-up answers beside made-up truths, and what is right about them."""
import unittest

import figures
import truths


def leak(**more):
    return dict({"id": 0, "holder": {"kind": "list", "names": ["pebbles"], "native": False}, "item": "bytes", "first_round": 0, "stop_round": 40, "bytes_per_round": 1_000_000, "bytes_per_call": 100_000, "calls_per_round": 10, "total_bytes": 40_000_000,
                 "blame": [{"file": "a.py", "line": 7}], "born": [{"file": "a.py", "line": 6}], "cause": "C14", "space": "host", "rank": None, "still": True, "late": False}, **more)


def truth(*leaks, **more):
    return dict({"name": "a", "format": "generated", "kind": "leak" if leaks else "flat", "accepted": ["leak"] if leaks else ["flat", "reserve"], "without_leaks": {"kind": "flat", "accepted": ["flat", "reserve"]}, "leaks": list(leaks), "rounds": 40,
                 "steps_per_round": 10, "rhythm": "epochs", "rounds_per_mark": 1, "seconds_per_round": None, "process": "main", "workers": 1, "python": "3.12", "version": "3.12", "framework": "plain", "noise": []}, **more)


def finding(**more):
    return dict({"verdict": "leak", "sets_verdict": True, "blame": {"file": "/x/a.py", "line": 7}, "born_at": {"file": "/x/a.py", "line": 6}, "holder": "list pebbles", "chain": [], "cause": "C14", "unit": "epoch", "bytes_per_unit": 1_050_000.0,
                 "bytes_per_unit_range": [990_000.0, 1_100_000.0], "process": 1}, **more)


def answer(verdict, *findings, **more):
    return dict({"verdict": verdict, "findings": list(findings), "peak_rss": 60_000_000, "last_round_rss": 60_000_000, "processes": [{"process": 1, "pid": 10, "parent": 1, "start": 0.0}, {"process": 2, "pid": 11, "parent": 10, "start": 0.5}],
                 "account": {"growth": 30e6, "parts": [{"kind": "referenced", "name": "pebbles", "bytes": 28e6}, {"kind": "not explained", "name": "not explained", "bytes": 2e6}]}}, **more)


def row(told, said, run=None):
    return figures.score(told, said, run or {})


class ScoringTest(unittest.TestCase):
    def test_a_leak_told_with_line_holder_cause_process_and_rate_is_right_in_all(self):
        one = row(truth(leak()), answer("leak", finding()))
        self.assertTrue(one["right"] and one["big"] and not one["false_alarm"])
        told = one["leaks"][0]
        self.assertTrue(all(told[name] for name in ("told", "listed", "line", "leading_line", "born", "holder", "cause", "process", "covered")), told)
        self.assertAlmostEqual(told["ratio"], 1.05)

    def test_unsure_on_a_leak_is_a_miss_unless_it_began_in_the_last_five_rounds(self):
        self.assertFalse(row(truth(leak()), answer("unsure"))["right"])
        self.assertTrue(row(truth(leak(late=True, first_round=36)), answer("unsure"))["right"])

    def test_leak_on_a_program_without_one_is_a_false_alarm(self):
        one = row(truth(), answer("leak", finding()))
        self.assertTrue(one["false_alarm"] and not one["right"])

    def test_a_small_leak_need_not_set_the_verdict_but_must_be_listed_with_its_line(self):
        small = leak(total_bytes=2_000_000, bytes_per_round=50_000)
        listed = row(truth(small), answer("flat", finding(sets_verdict=False)))
        self.assertTrue(listed["right"] and not listed["big"] and listed["leaks"][0]["listed"])
        self.assertEqual(listed["leaks"][0]["size"], "small")
        self.assertFalse(row(truth(small), answer("flat"))["leaks"][0]["listed"])
        self.assertEqual(row(truth(leak(total_bytes=40_000_000)), answer("flat", peak_rss=5_000_000_000))["leaks"][0]["size"], "small")

    def test_no_answer_is_wrong_and_counts_as_a_missed_leak(self):
        one = row(truth(leak()), None, {"problem": "ended with 1"})
        figures_ = figures.summary([one])
        self.assertEqual(figures_["big leaks told as leak"]["good"], 0)
        self.assertEqual(figures_["no answer"]["good"], 1)

    def test_each_of_two_leaks_is_scored_by_the_finding_that_blames_its_line(self):
        other = leak(id=1, blame=[{"file": "b.py", "line": 3}], bytes_per_round=4_000_000, holder={"kind": "dict", "names": ["reeds"], "native": False})
        one = row(truth(leak(), other), answer("leak", finding(), finding(blame={"file": "b.py", "line": 3}, holder="dict reeds", bytes_per_unit=4_000_000.0, sets_verdict=False)))
        self.assertEqual([round(told["ratio"], 2) for told in one["leaks"]], [1.05, 1.0])
        self.assertTrue(all(told["holder"] for told in one["leaks"]))
        missed = row(truth(leak(), other), answer("leak", finding()))
        self.assertEqual([told["listed"] for told in missed["leaks"]], [True, False])

    def test_rates_are_compared_in_the_unit_they_are_told_in(self):
        for unit, rate in (("epoch", 1e6), ("call", 1e5), ("batch", 1e5), ("second", 2e6), ("line", 1e6)):
            told = row(truth(leak()), answer("leak", finding(unit=unit, bytes_per_unit=rate)), {"seconds_per_round": 0.5})["leaks"][0]
            self.assertAlmostEqual(told["ratio"], 1.0, msg=unit)
        self.assertAlmostEqual(row(truth(leak()), answer("leak", finding(unit="call", bytes_per_unit=1e6)))["leaks"][0]["ratio"], 10.0)

    def test_the_process_is_the_one_that_keeps_it(self):
        self.assertFalse(row(truth(leak()), answer("leak", finding(process=2)))["leaks"][0]["process"])
        self.assertTrue(row(truth(leak(), process="fork"), answer("leak", finding(process=2)))["leaks"][0]["process"])
        ranks = [{"process": 1, "pid": 10, "parent": 1, "start": 0.0}] + [{"process": 2 + k, "pid": 20 + k, "parent": 10, "start": 1.0 + k} for k in range(4)]
        for rank in range(4):
            said = answer("leak", finding(process=4), processes=ranks)
            self.assertEqual(row(truth(leak(rank=rank), process="ranks"), said)["leaks"][0]["process"], rank == 2)

    def test_native_memory_has_no_holder_and_a_wrong_name_is_wrong(self):
        native = leak(holder={"kind": "native block", "names": ["native"], "native": True})
        self.assertTrue(row(truth(native), answer("leak", finding(holder=None)))["leaks"][0]["holder"])
        self.assertFalse(row(truth(leak()), answer("leak", finding(holder="list others")))["leaks"][0]["holder"])
        self.assertTrue(row(truth(leak()), answer("leak", finding(holder=None, chain=["list of 3", "attribute pebbles of Shore"])))["leaks"][0]["holder"])

    def test_wilsons_interval_of_nine_of_ten(self):
        one = figures.wilson(9, 10)
        self.assertAlmostEqual(one["low"], 0.5958, places=3)
        self.assertAlmostEqual(one["high"], 0.9821, places=3)
        self.assertIsNone(figures.wilson(0, 0))

    def test_the_account_is_held_against_the_growth(self):
        self.assertTrue(figures.summary([row(truth(leak()), answer("leak", finding()))])["account adds up within 5 %"]["good"])
        bad = answer("leak", finding(), account={"growth": 30e6, "parts": [{"kind": "referenced", "name": "x", "bytes": 10e6}]})
        self.assertEqual(figures.summary([row(truth(leak()), bad)])["account adds up within 5 %"]["good"], 0)

    def test_measured_truths_and_those_of_threads_are_read_into_the_same_form(self):
        measured = truths.of_measured({"name": "m", "verdict": "leak", "also_accept": [], "packages": [], "unit": "call", "units_per_mark": 40, "bytes_per_unit": 5000, "cause": "C14", "blame": {"file": "m.py", "line": 3}, "rhythm": "per call"})
        one = row(dict(measured, name="m"), answer("leak", finding(blame={"file": "/y/m.py", "line": 3}, unit="epoch", bytes_per_unit=200_000.0)))
        self.assertTrue(one["right"] and one["leaks"][0]["line"])
        self.assertAlmostEqual(one["leaks"][0]["ratio"], 1.0)
        thread = truths.of_thread({"name": "t", "environment": "peers", "leak": False, "kind": "cache", "also": ["reserve"], "rounds": 20, "bytes_per_round": 0, "library": "pandas"})
        self.assertTrue(row(dict(thread, name="t"), answer("reserve"))["right"])

    def test_the_holder_of_a_thread_is_known_by_the_names_in_its_sentence(self):
        self.assertEqual(truths.names_in("LATENCY._metrics and the list rows (dicts of a client)", "LATENCY = 1\nfor row in rows: pass"), ["LATENCY", "_metrics", "rows"])
        self.assertIsNone(truths.names_in("the allocator", "import os"))

    def test_the_text_has_the_matrix_the_bars_and_the_classes(self):
        said = figures.text(figures.all_figures([row(truth(leak()), answer("leak", finding())), row(truth(), answer("leak", finding()))]))
        for part in ("truth \\ found", "false alarms", "MISSED", "process main"):
            self.assertIn(part, said)


if __name__ == "__main__":
    unittest.main()
