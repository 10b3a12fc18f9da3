"""What a notebook shows: HTML of a few kilobytes that needs nothing else, without a script. Every text is escaped: names of files and functions, and lines of
source, are whatever the program was."""

from html import escape

from . import _amounts

_kColours = {"leak": "#b3261e", "fragmentation": "#b3261e", "retention": "#9a6700", "cache": "#9a6700", "reserve": "#9a6700", "unsure": "#9a6700", "flat": "#1a7f37"}
_kWidth, _kHeight, _kLeft, _kBottom, _kTop = 640, 150, 70, 22, 8
_kPoints = 400


def report(answer):
    colour = _kColours.get(answer.verdict or "", "#57606a")
    parts = ['<div style="font-family:system-ui,sans-serif;font-size:14px;line-height:1.45;max-width:760px;border-left:4px solid %s;padding:2px 0 2px 12px">' % colour]
    parts.append('<div><b style="color:%s">%s</b> %s</div>' % (colour, escape((answer.verdict or "no verdict").upper()), escape(answer.sentence)))
    for finding in answer.findings[:3]:
        parts.append(_finding(finding))
    series = answer.series()
    if len(series) > 1:
        parts.append(chart(series, colour))
    for remark in answer.remarks:
        parts.append('<div style="opacity:.75">%s</div>' % escape(remark))
    if answer.path:
        parts.append('<div style="opacity:.75;font-size:12px">%s</div>' % escape(answer.path))
    return "".join(parts) + "</div>"


def _finding(finding):
    out = ['<div style="margin-top:6px">']
    if finding.file:
        out.append('<div>%s:%d in <code>%s</code></div>' % (escape(finding.file), finding.line, escape(finding.function)))
    if finding.snippet:
        out.append('<pre style="margin:2px 0;padding:4px 8px;background:rgba(127,127,127,.12);overflow-x:auto">%s</pre>' % escape(finding.snippet))
    if finding.fix:
        out.append('<div><b>Fix:</b> %s</div>' % escape(finding.fix))
    return "".join(out) + "</div>"


def chart(series, colour):
    """Resident memory over time, as a drawing."""
    while len(series) > _kPoints:  # of two neighbours the higher one: peaks stay
        series = [max(series[at:at + 2], key=lambda point: point[1]) for at in range(0, len(series), 2)]
    begin, end = series[0][0], series[-1][0]
    top = max(value for _, value in series) or 1.0
    x = lambda t: _kLeft + (_kWidth - _kLeft - 8) * (t - begin) / ((end - begin) or 1.0)
    y = lambda v: _kTop + (_kHeight - _kTop - _kBottom) * (1 - v / top)
    points = " ".join("%.1f,%.1f" % (x(t), y(v)) for t, v in series)
    text = '<text x="%.1f" y="%.1f" text-anchor="%s" font-size="11" fill="currentColor">%s</text>'
    floor = _kHeight - _kBottom
    return "".join([
        '<svg role="img" viewBox="0 0 %d %d" style="width:100%%;max-width:%dpx;height:auto;margin-top:6px" xmlns="http://www.w3.org/2000/svg">' % (_kWidth, _kHeight, _kWidth),
        "<title>Resident memory: %s at the start, %s at the end, at most %s</title>" % tuple(
            escape(_amounts.text_of(int(value))) for value in (series[0][1], series[-1][1], top)),
        '<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="currentColor" stroke-opacity=".3"/>' % (_kLeft, floor, _kWidth - 8, floor),
        '<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="currentColor" stroke-opacity=".15"/>' % (_kLeft, y(top), _kWidth - 8, y(top)),
        '<polyline fill="none" stroke="%s" stroke-width="1.5" points="%s"/>' % (colour, points),
        text % (_kLeft - 6, y(top) + 8, "end", escape(_amounts.text_of(int(top)))),
        text % (_kLeft - 6, floor, "end", "0 B"),
        text % (_kLeft, _kHeight - 6, "start", "%.3g s" % begin),
        text % (_kWidth - 8, _kHeight - 6, "end", "%.3g s" % end),
        "</svg>"])


def profile(result):
    """The table of @millpond.profile; the darker a change, the larger."""
    out = ['<div style="font-family:system-ui,sans-serif;font-size:13px">']
    for function in result.functions:
        most = max([abs(line.change) for line in function.lines] or [0]) or 1
        out.append('<div style="margin-top:6px"><code>%s</code> %s:%d</div>' % (escape(function.name), escape(function.file), function.line))
        out.append('<table style="border-collapse:collapse;font-variant-numeric:tabular-nums"><thead><tr>%s</tr></thead><tbody>' % "".join(
            '<th style="text-align:%s;padding:1px 8px">%s</th>' % ("left" if name == "source" else "right", name)
            for name in ("line", "hits", "before", "after", "change", "peak", "allocated", "blocks", "source")))
        for line in function.lines:
            out.append(_row(line, most))
        out.append("</tbody></table>")
    out.append('<div style="margin-top:4px">%s</div>' % escape(result.summary()))
    for remark in result.remarks:
        out.append('<div style="opacity:.75">%s</div>' % escape(remark))
    return "".join(out) + "</div>"


def _row(line, most):
    cells = [""] * 7
    style = ""
    if line.hits or line.change or line.allocated:
        cells = [format(line.hits, ","), _amounts.text_of(line.before), _amounts.text_of(line.after), _amounts.change_of(line.change), _amounts.text_of(line.peak),
                 _amounts.text_of(line.allocated), format(line.blocks, ",")]
        style = ";background:rgba(%s,%.2f)" % ("179,38,30" if line.change > 0 else "26,127,55", 0.45 * abs(line.change) / most)
    cell = '<td style="text-align:right;padding:1px 8px;white-space:nowrap%s">%s</td>'
    return "<tr>%s%s<td style=\"text-align:left;padding:1px 8px\"><code style=\"white-space:pre\">%s</code></td></tr>" % (
        cell % ("", line.number), "".join(cell % (style if at == 3 else "", text) for at, text in enumerate(cells)), escape(line.text))
