from itertools import pairwise

from compaction.sizes.calibration import Calibration
from compaction.sizes.meter import Verdict
from sessions.charts.prompt_sizes import OwnCompaction, PromptSize, columns, downsample
from sessions.charts.slope import slope_of


def sizes(*tokens):
    return [PromptSize(turn=turn, estimate=size, reported=size) for turn, size in enumerate(tokens)]


def test_few_points_are_not_downsampled():
    points = sizes(1, 2, 3)
    assert downsample(points, 10) == points


def test_downsampling_keeps_ends_peaks_and_compactions():
    points = [PromptSize(turn=turn, estimate=100 + turn % 7) for turn in range(10_000)]
    points[5_001] = PromptSize(turn=5_001, estimate=9_999)
    points[7_003] = PromptSize(turn=7_003, estimate=103, client_compaction={"trigger": "auto"})
    kept = downsample(points, 200)
    turns = [point.turn for point in kept]
    assert len(kept) <= 203
    assert turns == sorted(set(turns))
    assert {0, 5_001, 7_003, 9_999} <= set(turns)


def test_downsampling_keeps_reported_sizes_between_turns_without():
    points = [
        PromptSize(turn=turn, estimate=turn, reported=None if turn % 9 == 0 else 2 * turn)
        for turn in range(10_000)
    ]
    kept = downsample(points, 400)
    assert sum(point.reported is not None for point in kept) > len(kept) / 2


def test_downsampling_covers_all_turns_evenly():
    turns = [*range(0, 40_000, 400), *range(40_000, 50_000, 5)]
    kept = downsample([PromptSize(turn=turn, estimate=turn) for turn in turns], 200)
    gaps = [after.turn - before.turn for before, after in pairwise(kept)]
    assert max(gaps) < 4_000, gaps


def test_columns_name_the_compactions():
    points = [
        PromptSize(turn=0, estimate=10),
        PromptSize(
            turn=1, estimate=4, reported=5, client_compaction={"trigger": "auto", "tokens_before": 10}
        ),
    ]
    assert columns(points) == {
        "turns": [0, 1],
        "estimate": [10, 4],
        "served": [None, None],
        "reported": [None, 5],
        "cost": [None, None],
        "cache_hits": [None, None],
        "compactions": [{"turn": 1, "after": 5, "trigger": "auto", "tokens_before": 10}],
        "spikes": [],
        "own_compactions": [],
    }


def test_columns_list_own_compactions_separately():
    points = [PromptSize(turn=0, estimate=10, served=10), PromptSize(turn=1, estimate=12, served=4)]
    own = OwnCompaction(turn=1, trigger="hard", tokens_before=12, tokens_after=4)
    drawn = columns(points, [own])
    assert drawn["served"] == [10, 4]
    assert drawn["compactions"] == []
    [marker] = drawn["own_compactions"]
    assert (marker["turn"], marker["trigger"], marker["tokens_before"], marker["tokens_after"]) == (
        1,
        "hard",
        12,
        4,
    )


def test_downsampling_keeps_requested_turns():
    points = [PromptSize(turn=turn, estimate=turn, served=100) for turn in range(10_000)]
    assert 4_321 in {point.turn for point in downsample(points, 200, keep={4_321})}


def test_growth_is_measured_on_served_sizes():
    points = [PromptSize(turn=n, estimate=1_000 * n, served=5_000) for n in range(30)]
    assert slope_of(points, 16_000).verdict is Verdict.FLAT


def test_no_verdict_on_two_points():
    assert slope_of(sizes(1, 2), 100) is None


def test_a_constant_prompt_is_flat():
    assert slope_of(sizes(1_000, 1_001, 999, 1_000), 200_000).verdict is Verdict.FLAT


def test_growth_per_turn_and_turns_left():
    slope = slope_of(sizes(*range(10_000, 20_000, 1_000)), 100_000)
    assert slope.verdict is Verdict.GROWING
    assert slope.tokens_per_turn == 1_000
    assert slope.turns_left == 81


def test_growth_near_the_window_hits_the_wall():
    assert slope_of(sizes(80_000, 85_000, 90_000), 100_000).verdict is Verdict.WALL


def test_growth_is_measured_since_the_last_compaction():
    slope = slope_of(sizes(10, 50_000, 99_000, 20_000, 21_000, 22_000, 23_000), 100_000)
    assert slope.tokens_per_turn == 1_000
    assert slope.verdict is Verdict.HELD


def test_growth_is_measured_since_a_compaction_that_removed_little():
    points = sizes(*[6_000, 6_600, 7_200, 7_800] * 5)
    slope = slope_of(points, 10_000, compactions={4, 8, 12, 16})
    assert (slope.tokens_per_turn, slope.turns_left, slope.verdict) == (600, 3, Verdict.HELD)


def test_the_served_prompt_counts_in_the_provider_tokens():
    reported = [PromptSize(turn=n, estimate=n, served=5_000, reported=5_000 * n) for n in range(30)]
    assert slope_of(reported, 100_000).verdict is Verdict.FLAT
    served = [PromptSize(turn=n, estimate=n, served=1_000 * n) for n in range(30)]
    assert slope_of(served, 100_000, calibration=Calibration(initial=2.0)).tokens_per_turn == 2_000


def test_without_a_window_there_is_no_wall():
    slope = slope_of(sizes(*range(0, 300_000, 30_000)), None)
    assert slope.verdict is Verdict.GROWING
    assert slope.turns_left is None


def test_estimates_and_reports_are_not_mixed():
    points = [*sizes(50_000, 50_010, 50_020), PromptSize(turn=3, estimate=20_000)]
    assert slope_of(points, 200_000).verdict is Verdict.FLAT
