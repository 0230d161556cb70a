"""How many drafts each rule keeps: closed forms, exact, without simulation.

Laws are arrays [..., V] of float64 or of Fractions, over the same last axis; a result has the
leading axes. Inputs are trusted to be laws.

=============  =====================================================================================
`one_draft`    Probability that the one draft at a position is kept
`siblings`     The same for several drafts at one position
`optimum`      The best that any lossless rule can do there
`chain`        Probabilities that 1, 2, ... drafts of a chain are kept
`tree`         The best tree of drafts for its size
`plan`         How many drafts, by which rule, at which cost
=============  =====================================================================================
"""

from draftproof.efficiency import chain, one_draft, optimum, plan, siblings, tree

__all__ = ["chain", "one_draft", "optimum", "plan", "siblings", "tree"]
