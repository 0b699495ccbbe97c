"""Mutants of membership that storms meet by chance only: each has a script in which it must be caught.

What a script returns are the promises that are broken at its end: none by the real code, and by the mutant
the one that its row names.
"""

from collections.abc import Callable

import pytest

from membership import ballot_scripts, member_scripts, mutants
from membership.mutants import Mutant
from priocast.core.guarantees import (
    AGREEMENT,
    INTEGRITY,
    LIVENESS,
    TOTAL_ORDER,
    UNIFORMITY,
    VIEW_SYNCHRONY,
)

Script = Callable[[], set[str]]
SCRIPTED: list[tuple[Mutant, Script, str]] = [
    # The flush
    (mutants.does_not_freeze_at_the_promise, member_scripts.a_frame_arrives_after_the_promise, TOTAL_ORDER),
    (
        mutants.flush_plan_counts_only_the_proposers_packets,
        member_scripts.a_last_packet_reaches_one_member_only,
        TOTAL_ORDER,
    ),
    (
        mutants.packets_of_failed_members_do_not_count,
        member_scripts.a_last_packet_reaches_one_member_only,
        AGREEMENT,
    ),
    (
        mutants.installs_without_all_packets,
        member_scripts.a_last_packet_reaches_one_member_only,
        AGREEMENT,
    ),
    (
        mutants.forgets_unstable_packets,
        member_scripts.those_who_have_a_packet_tell_each_other,
        LIVENESS,
    ),
    (
        mutants.missing_packets_are_requested_once,
        member_scripts.who_has_a_packet_becomes_unreachable,
        LIVENESS,
    ),
    (
        mutants.sends_everything_again,
        member_scripts.a_message_with_a_position_is_not_consumed_at_its_sender,
        INTEGRITY,
    ),
    (mutants.links_outlive_their_view, member_scripts.a_frame_arrives_in_the_next_view, LIVENESS),
    (
        mutants.lost_donors_are_waited_for,
        member_scripts.a_new_member_is_cut_off_before_it_has_the_state,
        LIVENESS,
    ),
    # The agreement
    (mutants.questions_are_asked_once, member_scripts.the_first_question_of_each_round_is_lost, LIVENESS),
    (
        mutants.follows_a_lower_ballot,
        ballot_scripts.a_question_is_repeated_after_a_higher_ballot,
        VIEW_SYNCHRONY,
    ),
    (
        mutants.replaces_an_accepted_proposal,
        ballot_scripts.a_decided_view_is_known_to_nobody,
        VIEW_SYNCHRONY,
    ),
    (mutants.forgets_what_it_accepted, ballot_scripts.a_decided_view_is_known_to_nobody, VIEW_SYNCHRONY),
    # What may be delivered
    (mutants.safe_is_delivered_at_once, member_scripts.a_safe_message_reaches_a_minority, UNIFORMITY),
    (mutants.one_other_is_enough_for_safe, member_scripts.a_safe_message_reaches_a_minority, UNIFORMITY),
    (mutants.each_member_judges_for_itself, member_scripts.only_one_knows_what_the_sender_knew, AGREEMENT),
]


@pytest.mark.parametrize(("mutant", "script", "promise"), SCRIPTED, ids=[row[0].__name__ for row in SCRIPTED])
def test_the_script_catches_the_mutant(
    mutant: Mutant, script: Script, promise: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert script() == set()
    mutant(monkeypatch)
    assert promise in script()
