from draftproof.proof.verdicts.finding import Finding, Grade, Outcome
from draftproof.proof.verdicts.numerical_grade import caveat, numerical_grade


def cuts(outcome, world, dtype, distance, error):
    return Finding(
        "cuts", outcome, Grade.EXACT, "m", world, total_variation=distance, error=error,
        case={"dtype": dtype},
    )  # fmt: skip


REFUSED = Finding("cuts", Outcome.NOT_DRIVABLE, Grade.EXACT, "The subject asks for rng.gumbel.")


def test_the_worst_world_speaks_for_each_precision():
    findings = [
        cuts(Outcome.PASSED, "peaked-50304", "float64", 1e-14, 6e-14),
        cuts(Outcome.PASSED, "flat-32768", "float64", 0.0, 2e-9),
        cuts(Outcome.NOTE, "flat-32768", "float32", 1.5e-4, 5e-5),
        cuts(Outcome.NOTE, "flat-262144", "float32", 1.3e-3, 5e-4),
        cuts(Outcome.PASSED, "flat-32768", "float32", 0.0, 0.5),
    ]
    assert numerical_grade(findings) == (
        "its arithmetic moves the law of one draw by a total variation below 2e-09 on float64 rows "
        "(V = 32,768), of about 1.3e-03 on float32 rows (V = 262,144)"
    )
    assert str(caveat(findings)).startswith("Its numerical grade takes it that the token of a draw")


def test_what_cannot_be_driven_has_no_grade_and_a_reason():
    assert numerical_grade([REFUSED]) is None
    assert caveat([REFUSED]) == (
        "Its arithmetic at a large vocabulary was not graded: The subject asks for rng.gumbel."
    )
    assert numerical_grade([]) is caveat([]) is None
