"""The trial: how much evidence, in which process, beside which controls."""
