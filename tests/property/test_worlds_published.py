"""Series published by every method, against every world that they leave: rows with k owners, values to be denied."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, assume, event, given, settings
from hypothesis import strategies as st

from judged import check_published
from saved import saving
from tiny import METHODS, Story, stories
from worlds import TooMany

# A story is drawn as one number, which there is nothing to shrink about; what is saved is made smaller there.
seldom = settings(
    max_examples=14,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)


@pytest.mark.parametrize("method", METHODS)
@seldom
@given(data=st.data())
def test_nobody_is_exposed_by_a_published_series(method: str, data: st.DataObject) -> None:
    story: Story = data.draw(stories(method))
    try:
        with saving(check_published, story):
            verdict = check_published(story)
    except TooMany:
        assume(False)
    event(f"published and judged: {verdict is not None}")
    for one in verdict.events() if verdict else ():
        event(one)
