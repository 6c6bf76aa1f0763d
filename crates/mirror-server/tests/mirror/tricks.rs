//! What a hostile mirror makes of an honest answer, each with the word of the verdict that it earns.

mod asked;
mod moments;
mod parts;
mod rows;
mod sums;

use counterfoil_proof::Row;

use crate::stock::Stock;
use crate::told::Told;

/// A way to lie, or none where the answer has nothing to lie about in this way.
pub type Play = fn(Told, &Stock) -> Option<Vec<u8>>;

/// Name, the word that it earns, and how it is played.
pub const TRICKS: &[(&str, &str, Play)] = &[
    ("a row left out", "forged", rows::row_left_out),
    ("one of several equal keys left out", "forged", rows::one_of_equal_keys),
    ("a row less than the limit", "incomplete", rows::row_less_than_the_limit),
    ("a row more than the limit", "malformed", asked::beyond_the_limit),
    ("rows that end early", "incomplete", rows::rows_end_early),
    ("a row hidden beyond the edge", "forged", rows::hidden_beyond_the_edge),
    ("a row twice", "malformed", rows::row_twice),
    ("two rows exchanged", "malformed", rows::rows_exchanged),
    ("another value", "forged", rows::another_value),
    ("a node of another level", "forged", parts::another_level),
    ("a later version", "forged", moments::later_version),
    ("a later period", "forged", moments::later_period),
    ("a period that has not begun", "malformed", moments::period_to_come),
    ("an answer to another question", "answer to another question", asked::another_question),
    ("an answer to less", "incomplete", asked::less),
    ("an answer to more", "malformed", asked::more),
    ("from the other side", "incomplete", asked::other_side),
    ("cut without a limit", "incomplete", rows::cut),
    ("fewer columns", "malformed", asked::fewer_columns),
    ("no signature", "malformed", sums::infinity),
    ("a signature out of the group", "malformed", sums::out_of_the_group),
    ("a signature more", "forged", sums::signature_more),
    ("a signature of something else", "forged", sums::another_signature),
    ("the signature's negative", "forged", sums::negative_signature),
    ("a hint from p on", "malformed", sums::hint_from_p_on),
    ("a hint of the other sign", "malformed", sums::hint_of_the_other_sign),
    ("a hint less", "malformed", sums::hint_less),
    ("hints exchanged", "malformed", sums::hints_exchanged),
    ("nothing", "malformed", |_, _| Some(Vec::new())),
    ("half of it", "malformed", |told, stock| told.to_bytes(&stock.definition).map(|it| it[..it.len() / 2].to_vec())),
    ("something behind it", "malformed", |told, stock| {
        told.to_bytes(&stock.definition).map(|it| [&it[..], &[0]].concat())
    }),
    ("more than there can be", "malformed", sums::more_than_there_can_be),
    ("a row with a head's number", "malformed", parts::row_with_a_heads_number),
    ("a row with a node's number", "malformed", parts::nodes_number),
    ("a row with a filter's number", "malformed", parts::filters_number),
    ("a row with a group's number", "malformed", parts::groups_number),
    ("a filter with a row's number", "malformed", parts::filter_with_a_rows_number),
    ("the head of another order", "malformed", parts::head_of_another_order),
    ("a filter left out", "incomplete", parts::filter_left_out),
    ("a filter that denies all", "forged", parts::filter_that_denies_all),
    ("a filter of another part", "forged", parts::filter_of_another_part),
    ("a filter of another salt", "forged", parts::filter_of_another_salt),
    ("a group left out", "malformed", parts::group_left_out),
    ("groups together", "malformed", asked::groups_together),
    ("more rows than can be counted", "malformed", parts::rows_beyond_count),
    ("what was said before", "stale", moments::said_before),
    ("a part of what was said before", "stale", moments::part_of_before),
    ("what was renewed before it changed in the same period", "stale", moments::said_when_renewed),
    ("a part of what was renewed before it changed", "stale", moments::part_of_renewed),
    ("a value of before", "forged", moments::value_of_before),
    ("a record of before in the group of now", "forged", moments::record_of_before_in_its_group),
    ("digests of a group exchanged", "forged", parts::digests_exchanged),
    ("a record without its group", "malformed", parts::record_without_its_group),
    ("a record beside its group", "malformed", parts::record_beside_its_group),
    ("another table of this shape", "forged", moments::twin),
    ("another schema under the number of the table", "forged", moments::another_schema),
];

/// The longest part of rows.
fn longest(told: &mut Told) -> Option<&mut Vec<Row>> {
    told.runs().into_iter().map(|run| &mut run.rows).max_by_key(|rows| rows.len()).filter(|rows| !rows.is_empty())
}

fn is_limited(told: &Told) -> bool {
    matches!(told, Told::Rows(question, _) if question.limit().is_some())
}
