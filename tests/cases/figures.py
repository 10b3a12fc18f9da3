"""What the doctor said, held against the truth: rows of right and wrong, and the figures made of them. Nothing here runs or reads anything."""
import math
import os
import re

MB = 1e6
ORDER = ("leak", "fragmentation", "retention", "cache", "reserve", "flat", "unsure", "none")
ROUND_UNITS_OF_LINES = ("line",)
STEP_UNITS = ("batch", "step")


def wilson(good, count):
    """A share with its 95 % interval after Wilson."""
    if not count:
        return None
    z = 1.959964
    share = good / count
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count)) / (1 + z * z / count)
    return {"good": good, "of": count, "share": share, "low": max(0.0, middle - half), "high": min(1.0, middle + half)}


def same_line(found, lines):
    """Whether a file and a line are among those of the truth; files by name, for programs lie in a folder of their own."""
    return bool(found) and any(os.path.basename(found.get("file") or "") == os.path.basename(line["file"]) and found.get("line") == line["line"] for line in lines)


def leading(answer):
    """The finding that sets the verdict."""
    findings = answer.get("findings") or []
    return next((finding for finding in findings if finding.get("sets_verdict")), findings[0] if findings else {})


def size_of(leak, resident):
    """big: it must set the verdict; small: it must be listed; tiny: told without a bar."""
    if leak["total_bytes"] is None or leak["total_bytes"] > max(0.01 * resident, 5 * MB):
        return "big"
    return "small" if leak["total_bytes"] >= MB else "tiny"


def expected_rates(unit, leak, truth, run):
    """What is right to say for each unit of that name; several where a program's rounds can be counted in more than one way."""
    if truth["format"] == "measured":
        rates = leak["rates"]
        if unit == "call":
            return rates["call"] + rates["mark"] * (leak["unit"] == "call")
        return rates["unit"] if unit == leak["unit"] else rates["mark"] if unit in ("epoch", "line", "fit", "model", "compile", "run") else rates["mark"] + rates["unit"]
    each = leak["bytes_per_round"]
    lines = each * (truth.get("rounds_per_mark") or 1)
    if unit == "second":
        seconds = truth.get("seconds_per_round") or run.get("seconds_per_round")
        found = [each / seconds] if seconds else []
    elif unit == "call":
        found = [leak["bytes_per_call"]] if leak.get("bytes_per_call") else [each]
    elif unit in STEP_UNITS:
        found = [each / truth["steps_per_round"], each, *([leak["bytes_per_call"]] if leak.get("bytes_per_call") else [])]
    elif unit in ROUND_UNITS_OF_LINES:
        found = [lines, each]
    else:
        found = [each, lines]
    return found + [rate / truth["workers"] for rate in found] * (truth["workers"] > 1)


def held_by(finding, leak):
    """Whether the holder that is told is the right one: one of its names as a word in the holder or its chain. Native memory has no holder, or is told as native."""
    names = leak["holder"]["names"]
    if names is None:
        return None
    text = " ".join([finding.get("holder") or "", *[str(step) for step in finding.get("chain") or []]])
    words = set(re.findall(r"[A-Za-z_][A-Za-z_0-9]*", text))
    lower = text.lower()
    if any(name in words or (not name.isidentifier() and name in text) or (name.islower() and len(name) > 5 and name in lower and "_" not in name) for name in names):
        return True
    return leak["holder"]["native"] and not finding.get("holder")


def process_right(answer, finding, truth, leak):
    """Whether the finding is of the process that keeps it; None where the answer does not tell."""
    rows = {row["process"]: row for row in answer.get("processes") or []}
    row = rows.get(finding.get("process"))
    if row is None or not rows:
        return None
    ordered = sorted(rows.values(), key=lambda one: (one.get("start") or 0.0, one["process"]))
    main = ordered[0]["pid"]
    if truth["process"] in ("main", "thread", "tree"):
        return row["pid"] == main
    if leak.get("rank") is not None:
        children = []
        for one in ordered:
            if one["pid"] != main and one.get("parent") == main and one["pid"] not in children:
                children.append(one["pid"])
        return len(children) > leak["rank"] and row["pid"] == children[leak["rank"]]
    return row["pid"] != main


def score(truth, answer, run):
    """One row: what was right about one program."""
    row = {"name": truth["name"], "truth": truth["kind"], "found": answer["verdict"] if answer else "none", "classes": classes(truth), "problem": run.get("problem")}
    if not answer:
        row.update(right=False, false_alarm=False, unsure=False, leaks=[], big=None)
        still = [leak for leak in truth["leaks"] if leak["still"]]
        row["leaks"] = [{"size": size_of(leak, 0), "late": leak["late"], "told": False, "line": False, "holder": False, "listed": False, "total": leak["total_bytes"], "rated": leak["bytes_per_round"] is not None} for leak in still]
        row["big"] = any(leak["size"] == "big" and not leak["late"] for leak in row["leaks"])
        return row
    resident = max(answer.get("last_round_rss") or 0, answer.get("peak_rss") or 0)
    still = [leak for leak in truth["leaks"] if leak["still"]]
    sizes = [size_of(leak, resident) for leak in still]
    if "big" in sizes:
        late = all(leak["late"] for leak, size in zip(still, sizes) if size == "big")
        accepted = {"leak", "unsure"} if late else set(truth["accepted"]) - {"unsure"} if truth["format"] != "measured" else set(truth["accepted"])
    elif still:
        accepted = {"leak", *truth["without_leaks"]["accepted"]}
    else:
        accepted = set(truth["accepted"])
    lead, findings = leading(answer), answer.get("findings") or []
    row["right"] = answer["verdict"] in accepted
    row["false_alarm"] = answer["verdict"] == "leak" and not still and "leak" not in accepted
    row["leakless"] = not still
    row["unsure"] = answer["verdict"] == "unsure"
    row["big"] = any(size == "big" and not leak["late"] for leak, size in zip(still, sizes))
    row["leaks"] = [leak_row(truth, answer, run, leak, size, lead, findings, len(still)) for leak, size in zip(still, sizes)]
    row["account"] = account_row(answer)
    return row


def leak_row(truth, answer, run, leak, size, lead, findings, count):
    told = answer["verdict"] == "leak"
    own = next((finding for finding in findings if same_line(finding.get("blame"), leak["blame"])), None)
    matched = own or (lead if count == 1 and told else None)
    one = {"size": size, "late": leak["late"], "total": leak["total_bytes"], "told": told, "listed": own is not None, "line": bool(leak["blame"]) and own is not None if leak["blame"] else None,
           "holder": held_by(matched, leak) if matched else (False if leak["holder"]["names"] is not None else None), "kind": leak["holder"]["kind"], "rated": leak["bytes_per_round"] is not None}
    one["leading_line"] = same_line(lead.get("blame"), leak["blame"]) if leak["blame"] else None
    one["born"] = (same_line(matched.get("born_at") or matched.get("blame"), leak["born"]) if matched else False) if leak["born"] else None
    one["cause"] = None if leak["cause"] in (None, "none") else bool(matched) and matched.get("cause") == leak["cause"]
    one["process"] = process_right(answer, matched, truth, leak) if matched else None
    rates = expected_rates(matched.get("unit"), leak, truth, run) if matched and matched.get("bytes_per_unit") and leak["bytes_per_round"] else []
    if rates:
        found = matched["bytes_per_unit"]
        right = min(rates, key=lambda rate: abs(math.log(found / rate)) if found > 0 else 99)
        one["ratio"], one["unit"] = found / right, matched.get("unit")
        interval = matched.get("bytes_per_unit_range")
        one["covered"] = any(interval[0] <= rate <= interval[1] for rate in rates) if interval else None
    return one


def account_row(answer):
    account = answer.get("account")
    if not account or account["growth"] < 5 * MB:
        return None
    total = sum(part["bytes"] for part in account["parts"])
    unknown = sum(abs(part["bytes"]) for part in account["parts"] if part["kind"] == "not explained" or part["name"] == "not explained")
    return {"growth": account["growth"], "sum": total, "unknown": unknown / account["growth"]}


def classes(truth):
    first = truth["leaks"][0] if truth["leaks"] else None
    return {"holder": [leak["holder"]["kind"] for leak in truth["leaks"]] or ["none"], "rhythm": [truth["rhythm"]], "framework": [truth["framework"]], "process": [truth["process"]], "noise": truth["noise"] or ["none"],
            "python": [truth["version"] or truth["python"]], "kept": [leak["item"] for leak in truth["leaks"]] or ["none"], "rate": [rate_class(first["bytes_per_round"])] if first and first["bytes_per_round"] else ["none"],
            "leaks": [str(len(truth["leaks"]))]}


def rate_class(rate):
    for bound, words in ((3e4, "10-30 kB"), (3e5, "30-300 kB"), (3e6, "0.3-3 MB"), (3e7, "3-30 MB")):
        if rate < bound:
            return words
    return "over 30 MB"


def share(values):
    known = [bool(value) for value in values if value is not None]
    return wilson(sum(known), len(known))


def summary(rows):
    """The figures of some rows."""
    leaks = [leak for row in rows for leak in row["leaks"]]
    big = [leak for leak in leaks if leak["size"] == "big" and not leak["late"]]
    small = [leak for leak in leaks if leak["size"] == "small" and not leak["late"]]
    tiny = [leak for leak in leaks if leak["size"] == "tiny" and not leak["late"]]
    heavy = [leak for leak in big if (leak["total"] or 12 * MB) >= 12 * MB and leak.get("rated")]
    light = [leak for leak in big + small if (leak["total"] or 0) < 12 * MB and leak.get("total") is not None]
    accounts = [row["account"] for row in rows if row.get("account")]
    return {
        "verdict right": share(row["right"] for row in rows),
        "big leaks told as leak": share(row["found"] == "leak" for row in rows if row["big"]),
        "false alarms": share(row["false_alarm"] for row in rows if row.get("leakless", not row["leaks"])),
        "unsure": share(row["unsure"] for row in rows),
        "small leaks listed with their line": share(leak["listed"] for leak in small),
        "tiny leaks listed with their line": share(leak["listed"] for leak in tiny),
        "late leaks told as leak": share(leak["told"] for leak in leaks if leak["late"]),
        "blamed line right, of each big leak": share(leak["line"] for leak in big),
        "first blamed line is one of the big leaks'": share(any(leak.get("leading_line") for leak in row["leaks"]) for row in rows if row["big"] and any(leak.get("leading_line") is not None for leak in row["leaks"])),
        "born line right": share(leak.get("born") for leak in big),
        "holder right": share(leak["holder"] for leak in big),
        "cause right, where it is known": share(leak.get("cause") for leak in big),
        "process right, where it is told": share(leak.get("process") for leak in big),
        "rate within 15 %, leaks of 12 MB and more": share("ratio" in leak and 1 / 1.15 <= leak["ratio"] <= 1.15 for leak in heavy),
        "interval holds the rate, leaks below 12 MB": share(leak.get("covered") for leak in light),
        "interval holds the rate, all": share(leak.get("covered") for leak in big + small),
        "account adds up within 5 %": share(abs(one["sum"] - one["growth"]) <= 0.05 * one["growth"] for one in accounts),
        "not explained below 10 %": share(one["unknown"] < 0.1 for one in accounts),
        "no answer": share(row["found"] == "none" for row in rows),
    }


# What must be shown: at least, or at most.
BARS = {"big leaks told as leak": (">=", 0.98), "false alarms": ("<=", 0.01), "unsure": ("<=", 0.05), "small leaks listed with their line": (">=", 0.90), "blamed line right, of each big leak": (">=", 0.95), "holder right": (">=", 0.95),
        "rate within 15 %, leaks of 12 MB and more": (">=", 0.95), "interval holds the rate, leaks below 12 MB": (">=", 0.93), "account adds up within 5 %": (">=", 0.95), "not explained below 10 %": (">=", 0.95)}


def met(name, figure):
    if name not in BARS or figure is None:
        return None
    sign, bar = BARS[name]
    return figure["share"] >= bar if sign == ">=" else figure["share"] <= bar


def all_figures(rows):
    confusion = {}
    for row in rows:
        confusion.setdefault(row["truth"], {}).setdefault(row["found"], 0)
        confusion[row["truth"]][row["found"]] += 1
    by_class = {}
    for dimension in ("holder", "rhythm", "framework", "process", "noise", "python", "kept", "rate", "leaks"):
        values = sorted({value for row in rows for value in row["classes"][dimension]})
        by_class[dimension] = {value: summary([row for row in rows if value in row["classes"][dimension]]) for value in values}
    return {"programs": len(rows), "confusion": confusion, "figures": summary(rows), "by_class": by_class}


def words(figure):
    if figure is None:
        return "-"
    return f"{figure['good']} of {figure['of']}, {100 * figure['share']:.1f} % ({100 * figure['low']:.1f} to {100 * figure['high']:.1f})"


def text(figures):
    """The figures as a person reads them."""
    lines = [f"{figures['programs']} programs", "", "truth \\ found   " + "".join(f"{name[:9]:>10}" for name in ORDER)]
    for kind in ORDER:
        if kind in figures["confusion"]:
            lines.append(f"{kind:<15}" + "".join(f"{figures['confusion'][kind].get(name, 0) or '.':>10}" for name in ORDER))
    lines += ["", f"{'figure (95 % interval)':<48} {'':<40} bar"]
    for name, figure in figures["figures"].items():
        bar = f"{BARS[name][0]} {100 * BARS[name][1]:.0f} %  {'met' if met(name, figure) else 'MISSED' if figure else 'no case'}" if name in BARS else ""
        lines.append(f"{name:<48} {words(figure):<40} {bar}")
    lines += ["", f"{'class':<34} {'programs':>8} {'right':>7} {'big told':>9} {'alarms':>7} {'unsure':>7} {'line':>7} {'holder':>7} {'rate':>7} {'small':>7}"]
    short = lambda figure: "-" if figure is None else f"{figure['good']}/{figure['of']}"
    for dimension, values in figures["by_class"].items():
        for value, one in values.items():
            columns = [one[name] for name in ("verdict right", "big leaks told as leak", "false alarms", "unsure", "blamed line right, of each big leak", "holder right", "rate within 15 %, leaks of 12 MB and more", "small leaks listed with their line")]
            lines.append(f"{dimension + ' ' + value[:26]:<34} {one['verdict right']['of']:>8} " + " ".join(f"{short(column):>{width}}" for column, width in zip(columns, (7, 9, 7, 7, 7, 7, 7, 7))))
    return "\n".join(lines)
