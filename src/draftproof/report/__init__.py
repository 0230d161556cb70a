"""What is seen of a verdict: card, page and JUnit, each a pure function of the verdict's JSON."""
