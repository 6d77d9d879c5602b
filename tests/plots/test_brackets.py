import mdpcloud as mc
from mdpcloud.plots.brackets import FINEST, History, draw_brackets
from mdpcloud.plots.style import panels
from tests.admission import admission


def lines_of(histories, tolerance=1e-3):
    _, (axes,) = panels(1, columns=1, height=3.0)
    draw_brackets(axes, histories, tolerance=tolerance)
    return axes, {line.get_label(): line for line in axes.lines}


def test_a_line_shows_the_narrowest_bracket_so_far():
    history = History("sweeps", [1.0, 2.0, 3.0], [0.0, 1.0, 0.5], [4.0, 2.0, 3.0])
    _, lines = lines_of([history])
    assert list(lines["sweeps"].get_ydata()) == [1.0, 0.5, 0.5]


def test_the_end_is_the_certified_bracket():
    history = History("sweeps", [1.0, 2.0], [0.0, 1.9], [4.0, 2.0], (1.5, 2.0))
    assert history.widths == [1.0, 0.25]


def test_a_bracket_without_width_can_be_drawn_on_a_logarithmic_axis():
    assert History("exact", [1.0], [2.0], [2.0]).widths == [FINEST]
    assert History("free", [1.0], [0.0], [0.0]).widths == [FINEST]


def test_the_progress_of_a_solve_is_a_history():
    model, reports = admission(5), []
    solution = mc.solve(model, progress=lambda *report: reports.append(report))
    work, lower, upper = zip(*reports, strict=True)
    history = History("default", work, lower, upper, solution.bounds)
    axes, lines = lines_of([history], tolerance=1e-8)
    assert history.widths[-1] <= 1e-8
    assert len(lines["default"].get_xdata()) == len(reports)
    assert axes.get_yscale() == "log"
