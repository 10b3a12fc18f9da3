#!/usr/bin/env python3
"""Tests the tester: plants includes in a small tree and looks at what layers.py says."""
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.dont_write_bytecode = True
import layers  # noqa: E402


class Planted(unittest.TestCase):
    def said(self, **files):
        """What is said of a tree with these files; src__ops__a_h='...' is src/ops/a.h."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                head, _, suffix = name.rpartition("_")
                path = Path(folder, head.replace("__", "/") + "." + suffix)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return list(layers.complaints(Path(folder)))

    def test_downward_and_own_and_public_and_system_includes_are_silent(self):
        self.assertEqual(
            self.said(
                src__base__a_h="#include <vector>\n#include <sys/mman.h>\n",
                src__graph__b_h='#include "base/a.h"\n#include "c.h"\n#include <millpond/shape.h>\n#include <fmt/format.h>\n',
                src__graph__c_h="#pragma once\n",
                src__cli__main_cc='#include "train/fit.h"\n#include "probe/ring.h"\n',
                include__millpond__shape_h="#include <millpond/bytes.h>\n",
                include__millpond__bytes_h="",
            ),
            [],
        )

    def test_an_upward_include_is_named_with_file_line_and_reason(self):
        self.assertEqual(
            self.said(src__base__a_h='\n#include "train/fit.h"\n', src__train__fit_h=""),
            ['src/base/a.h:2: includes "train/fit.h": train is above base'],
        )

    def test_an_upward_include_counts_before_the_other_file_exists(self):
        self.assertEqual(len(self.said(src__ops__a_cc='# include "passes/fuse.h"\n')), 1)

    def test_an_upward_include_in_angle_brackets_or_through_dots_counts(self):
        self.assertEqual(len(self.said(src__ops__a_cc="#include <passes/fuse.h>\n", src__passes__fuse_h="")), 1)
        self.assertEqual(len(self.said(src__ops__a_cc='#include "../passes/fuse.h"\n', src__passes__fuse_h="")), 1)

    def test_neighbours_on_one_level_do_not_include_each_other(self):
        for a, b in [("ledger", "plan"), ("nn", "io"), ("io", "nn"), ("runfile", "events")]:
            said = self.said(**{f"src__{a}__x_cc": f'#include "{b}/y.h"\n', f"src__{b}__y_h": ""})
            self.assertEqual(said, [f'src/{a}/x.cc:1: includes "{b}/y.h": {b} is not below {a}'])

    def test_a_backend_may_include_backend_but_not_another_backend(self):
        kernel = dict(src__backend__kernel_h="", src__backend__reference__x_h="")
        self.assertEqual(self.said(src__backend__cpu__x_cc='#include "backend/kernel.h"\n', **kernel), [])
        self.assertEqual(len(self.said(src__backend__cpu__x_cc='#include "backend/reference/x.h"\n', **kernel)), 1)

    def test_backends_of_the_host_share_host_and_nobody_above_sees_one_backend(self):
        host = dict(src__backend__host__kernel_h="", src__backend__cpu__x_h="")
        self.assertEqual(self.said(src__backend__cpu__x_cc='#include "backend/host/kernel.h"\n', **host), [])
        for includer in ("src__runtime__a_cc", "src__train__a_cc", "src__backend__a_cc"):
            self.assertEqual(len(self.said(**{includer: '#include "backend/cpu/x.h"\n'}, **host)), 1)
        self.assertEqual(len(self.said(src__train__a_cc='#include "backend/host/kernel.h"\n', **host)), 1)

    def test_probe_includes_nobody_and_only_watch_and_the_top_include_probe(self):
        self.assertEqual(len(self.said(src__probe__a_cc='#include "base/b.h"\n', src__base__b_h="")), 1)
        self.assertEqual(len(self.said(src__train__a_cc='#include "probe/ring.h"\n', src__probe__ring_h="")), 1)
        self.assertEqual(self.said(src__watch__a_cc='#include "probe/ring.h"\n', src__probe__ring_h=""), [])

    def test_engine_and_doctor_do_not_know_each_other(self):
        self.assertEqual(len(self.said(src__report__a_cc='#include "train/fit.h"\n', src__train__fit_h="")), 1)
        self.assertEqual(len(self.said(src__verdict__a_cc='#include "watch/w.h"\n', src__watch__w_h="")), 1)
        self.assertEqual(len(self.said(src__train__a_cc='#include "report/r.h"\n', src__report__r_h="")), 1)

    def test_a_public_header_includes_nothing_from_src(self):
        self.assertEqual(
            self.said(include__millpond__a_h='#include "base/b.h"\n', src__base__b_h=""),
            ['include/millpond/a.h:1: includes "base/b.h": a public header includes nothing from src'],
        )

    def test_a_folder_without_a_place_is_named(self):
        self.assertIn("has no place", self.said(src__misc__a_cc='#include "base/b.h"\n', src__base__b_h="")[0])


if __name__ == "__main__":
    unittest.main(verbosity=1)
