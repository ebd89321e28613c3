import numpy as np
import pytest

from arcfleet.report.dataset_plot import DatasetFigures, draw_datasets


def figures(label: str, most_routes: int, attribution: str = "") -> DatasetFigures:
    return DatasetFigures(
        label=label,
        degrees=[0.0, 0.3, 0.1, 0.5, 0.1],
        lengths=np.array([1, 20, 100, 40_000]),
        nodes=np.array([25, 26, 26, 30], dtype=np.uint8),
        demands=np.array([5, 5, 7, 10], dtype=np.uint8),
        links=np.array([30, 30, 31, 90], dtype=np.uint8),
        routes=np.array([2, 2, most_routes, 2], dtype=np.int64),
        places=np.array([[0.0, 60.0], [1.0, 60.0], [1.0, 61.0]]),
        ends=np.array([[0, 1], [1, 2]]),
        required=np.array([True, False]),
        depot=2,
        attribution=attribution,
    )


@pytest.mark.parametrize("most_routes", [2, 3, 50])
def test_every_panel_shows_all_of_its_data(most_routes: int) -> None:
    figure = draw_datasets([figures("a", most_routes, "someone"), figures("b", 2)])
    assert len(figure.axes) == 6 + 2
    assert [axes.get_xlabel() for axes in figure.axes[:6]] == [
        *("links at a node", "length of a link, m", "demand of a required link"),
        *("nodes per instance", "links per instance", "least routes"),
    ]
    for axes in figure.axes[:6]:
        highest = axes.dataLim.y1
        assert axes.get_ylim()[0] == 0
        assert highest <= axes.get_ylim()[1]
        assert highest > 5, "shares are in percent"
    (credit,) = [t.get_text() for t in figure.texts] or [figure.get_supxlabel()]
    assert credit == "someone"


def test_more_data_sets_than_places_for_pieces() -> None:
    assert len(draw_datasets([figures(str(n), 3) for n in range(6)]).axes) == 6 + 4
